"""The boolean agents, request by request: the messages of each mode, their order, and its decisions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from small_workspace import read_lines

from rallebench.core.choices import SERVER, weigh_options
from rallebench.core.choosing import choice_reply
from rallebench.core.types import (
    Episode,
    Flow,
    Generate,
    Hit,
    Message,
    Note,
    Outcome,
    Passage,
    Question,
    Reply,
    Request,
    Retrieve,
    Step,
    ToolCall,
)
from rallebench.corpora.chunking import PRESETS, spans
from rallebench.papers.barag import workflow as barag
from rallebench.papers.barag.decisions import boolean_texts, read_boolean
from rallebench.papers.barag.workflow import (
    NO_CALL,
    OWN,
    READ,
    SORRY_CALL,
    UNDECIDED,
    BaragAgent,
    Prompts,
    context_text,
    recent_turns,
)
from rallebench.papers.barag.workflow_uncertain import (
    Rule,
    both_branches,
    certainty,
    find_branches,
    uncertain_agent,
)
from rallebench.workflows import WORKFLOWS

PROMPTS = Prompts("naive", "basic", "decide?", "more?")
QUESTION = Question("q", "Who?")
HITS = (Hit(Passage("a#0", "Title: A\nAda did."), 9.0), Hit(Passage("b", "Bea did.", "B"), 4.0))
CONTEXT = "\n \nTitle: A\nAda did.\n \nTitle: B\nBea did.\n \n"
FOUND = Reply("", HITS)


def agent(**more: Any) -> BaragAgent:
    return BaragAgent("llm", PROMPTS, "index", **more)


def call(name: str, arguments: str) -> Reply:
    return Reply("", tool_calls=(ToolCall("1", name, arguments),))


def play(flow: Flow, replies: Sequence[Reply]) -> tuple[list[Request], Outcome]:
    """The flow's requests and its outcome; every reply must be used. A note is its own reply."""
    asked: list[Request] = []
    waiting, reply = list(replies), None
    try:
        while True:
            asked.append(flow.send(reply) if reply else next(flow))
            reply = Reply("noted") if isinstance(asked[-1], Note) else waiting.pop(0)
    except StopIteration as end:
        assert not waiting
        return asked, end.value


def sent_messages(request: Request) -> Any:
    """The messages of a generation; any other request unchanged."""
    if not isinstance(request, Generate):
        return request
    return [(message.role, message.content) for message in request.messages]


ADA, BEA = Reply("Ada"), Reply("Bea")
WHO = ("user", "Who?")
SEARCH = Retrieve("index", "Who?", 5)
BARE = [WHO]
WITH_PASSAGES = [("system", "naive"), ("user", CONTEXT), WHO]
BASIC = [("system", "basic"), WHO]
BASIC_READ = [("system", "basic"), ("user", CONTEXT), WHO]
DRAFTED, ASKED = [WHO, ("assistant", "Ada")], ("user", "more?")


EMPTY = [("system", ""), ("user", ""), WHO]
MERGED = [("user", f"naive\n\n{CONTEXT.strip()}\n\nWho?")]
IN_WORDS = [("system", "basic"), ("user", "Who?\n\ndecide?")]
DO, DO_NOT = (call("databaseRetrieval", f'{{"retrieve": {value}}}') for value in ("true", "false"))
MORE, NO_MORE = (call("moreInformation", f'{{"moreInfo": {value}}}') for value in ("true", "false"))


DECLINES = choice_reply(weigh_options(boolean_texts("retrieve"), (-2.0, -0.5), SERVER), Reply(""))
WANTS = choice_reply(weigh_options(boolean_texts("moreInfo"), (-0.5, -2.0), SERVER), Reply(""))


@pytest.mark.parametrize(
    ("mode", "replies", "requests", "answer", "reason"),
    [
        ("baseline", [ADA], [BARE], "Ada", OWN),
        ("baseline compat=original", [ADA], [EMPTY], "Ada", OWN),
        ("naive", [FOUND, ADA], [SEARCH, WITH_PASSAGES], "Ada", READ),
        ("naive layout=merged", [FOUND, ADA], [SEARCH, MERGED], "Ada", READ),
        ("basic", [DO_NOT, ADA], [BASIC, BASIC], "Ada", OWN),
        ("basic", [DO, FOUND, ADA], [BASIC, SEARCH, BASIC_READ], "Ada", READ),
        ("basic", [BEA, FOUND, ADA], [BASIC, Note(UNDECIDED), SEARCH, BASIC_READ], "Ada", READ),
        ("basic compat=original", [Reply('{"retrieve": true}')], [BASIC], SORRY_CALL, NO_CALL),
        ("basic calls=text", [Reply("no"), ADA], [IN_WORDS, BASIC], "Ada", OWN),
        ("basic calls=choice", [DECLINES, ADA], [IN_WORDS, BASIC], "Ada", OWN),
        ("basic calls=choice", [Reply("no"), ADA], [IN_WORDS, BASIC], "Ada", OWN),
        (
            "basic calls=choice",
            [BEA, FOUND, ADA],
            [IN_WORDS, Note(UNDECIDED), SEARCH, BASIC_READ],
            "Ada",
            READ,
        ),
        (
            "advanced calls=choice",
            [ADA, WANTS, FOUND, BEA],
            [BARE, [*DRAFTED, ASKED], SEARCH, WITH_PASSAGES],
            "Bea",
            READ,
        ),
        ("advanced", [ADA, NO_MORE], [BARE, DRAFTED], "Ada", OWN),
        ("advanced", [ADA, MORE, FOUND, BEA], [BARE, DRAFTED, SEARCH, WITH_PASSAGES], "Bea", READ),
        ("advanced calls=text", [ADA, Reply("No.")], [BARE, [*DRAFTED, ASKED]], "Ada", OWN),
    ],
)
def test_a_mode_sends_these_requests_and_ends_so(
    mode: str, replies: list[Reply], requests: list[Any], answer: str, reason: str
) -> None:
    name, *pairs = mode.split()
    settings = dict(pair.split("=") for pair in pairs)
    asked, outcome = play(barag.MODES[name](QUESTION, agent=agent(**settings)), replies)
    assert list(map(sent_messages, asked)) == requests
    assert outcome == Outcome(answer, reason)


def test_a_cheaper_model_drafts_and_decides_and_the_other_answers_with_passages() -> None:
    cheap = agent(draft_llm="small")
    asked, outcome = play(
        barag.advanced_agent(Question("q", "Who?"), agent=cheap), [ADA, MORE, FOUND, BEA]
    )
    models = [request.llm for request in asked if isinstance(request, Generate)]
    assert models == ["small", "small", "llm"] and outcome.answer == "Bea"
    asked, outcome = play(barag.advanced_agent(Question("q", "Who?"), agent=cheap), [ADA, NO_MORE])
    assert [request.llm for request in asked] == ["small", "small"] and outcome.answer == "Ada"
    asked, _ = play(barag.basic_agent(Question("q", "Who?"), agent=cheap), [DO_NOT, ADA])
    assert [request.llm for request in asked] == ["small", "llm"]


def test_the_right_article_can_be_the_context() -> None:
    question = Question("q", "Who?", (Passage("a", "Ada did.", "A"),))
    (asked,), outcome = play(barag.ground_truth(question, agent=agent()), [ADA])
    context = ("user", "\n \nTitle: A\nAda did.\n \n")
    assert sent_messages(asked) == [("system", "naive"), context, WHO]
    assert outcome.stop_reason == READ


def test_decisions_are_greedy_tool_calls_and_answers_name_their_evidence() -> None:
    (decision, *_, answer), _ = play(barag.basic_agent(QUESTION, agent=agent()), [DO, FOUND, ADA])
    assert isinstance(decision, Generate) and isinstance(answer, Generate)
    assert (decision.temperature, answer.temperature, decision.options) == (0, 1.0, {})
    assert decision.tools[0].name == "databaseRetrieval"
    assert answer.evidence is not None and len(answer.evidence.passages) == 2
    (_, decision), _ = play(barag.advanced_agent(QUESTION, agent=agent()), [ADA, NO_MORE])
    assert isinstance(decision, Generate)
    assert decision.options["tool_choice"]["function"]["name"] == "moreInformation"
    (decision, _), _ = play(
        barag.basic_agent(QUESTION, agent=agent(calls="text")), [Reply("no"), ADA]
    )
    assert isinstance(decision, Generate) and not decision.tools


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        (call("f", '{"moreInfo": true}'), True),
        (call("f", '{"MOREINFO": "No"}'), False),
        (Reply('So: {"moreInfo": 1}'), True),
        (Reply('{"name": "moreInformation", "arguments": {"moreInfo": false}}'), False),
        (Reply("moreInfo = false"), False),
        (Reply("I think the answer is yes."), True),
        (Reply("No. A yes would cost tokens."), False),
        (Reply("Yes and no."), None),
        (Reply("Perhaps yes, perhaps no."), None),
        (call("f", "{broken"), None),
        (Reply(""), None),
        (Reply("Paris"), None),
    ],
)
def test_a_boolean_is_read_from_calls_json_and_words(reply: Reply, wanted: bool | None) -> None:
    assert read_boolean(reply, "moreInfo") is wanted


@pytest.mark.parametrize("name", sorted(barag.MODES))
def test_blank_and_too_long_queries_ask_nobody(name: str) -> None:
    flow = WORKFLOWS[f"barag-{name}"]
    assert play(flow(Question("q", " \n"), agent=agent()), []) == ([], Outcome("", "blank"))
    asked, outcome = play(flow(Question("q", "x" * 2001), agent=agent()), [])
    assert asked == [] and outcome.stop_reason == "too long" and "2000" in outcome.answer
    longest = barag.baseline(Question("q", "x" * 2000), agent=agent())
    assert play(longest, [ADA])[1].answer == "Ada"


def test_history_is_the_last_three_turns_and_fewer_where_they_are_long() -> None:
    turns = [Message(role, f"{role} {n}") for n in range(5) for role in ("user", "assistant")]
    assert recent_turns(turns) == tuple(turns[4:])
    lengths = (("user", 20_000), ("assistant", 1), ("user", 5000), ("assistant", 1))
    long = [Message(role, "x" * length) for role, length in lengths]
    assert recent_turns(long) == tuple(long[2:])
    question = Question("q", "Who?", history=tuple(turns[-2:]))
    for history, before in (
        (True, [("user", "user 4"), ("assistant", "assistant 4")]),
        (False, []),
    ):
        (asked,), _ = play(barag.baseline(question, agent=agent(history=history)), [ADA])
        assert sent_messages(asked) == [*before, WHO]


# the agent that decides by a number


def sure(text: str, confidence: float | None = None, logprobs: tuple[float, ...] = ()) -> Reply:
    return Reply(text, confidence=confidence, logprobs=logprobs)


@pytest.mark.parametrize(
    ("rule", "replies", "stops"),
    [
        (Rule("confidence", 0.5), [sure("Ada", 0.7)], OWN),
        (Rule("confidence", 0.5), [sure("Ada", 0.3), FOUND, Reply("Bea")], READ),
        (Rule("confidence", 0.5), [sure("Ada"), FOUND, Reply("Bea")], READ),
        (Rule("confidence", 0.5), [sure("I don't know.", 0.9), FOUND, Reply("Bea")], READ),
        (Rule("logprob", 0.5), [sure("Ada", logprobs=(-0.1, -0.2))], OWN),
        (Rule("logprob", 0.5), [sure("Ada", logprobs=(-1.0, -2.0)), FOUND, Reply("Bea")], READ),
        (
            Rule("agreement", 0.6, samples=2),
            [sure("Ada"), sure("Ada"), sure("Bea"), FOUND, Reply("Bea")],
            READ,
        ),
        (Rule("agreement", 0.5, samples=2), [sure("Ada"), sure("Ada"), sure("Bea")], OWN),
        (Rule("retrieval", 9.0), [FOUND, Reply("Bea")], READ),
        (Rule("retrieval", 9.1), [FOUND, sure("Ada")], OWN),
        (Rule("retrieval", 0.0), [Reply("", ()), sure("Ada")], OWN),
        (Rule("confidence", 0.5, draft_passages=1), [FOUND, sure("Ada", 0.9)], OWN),
        (Rule("confidence", 0.5, draft_passages=1), [FOUND, sure("Ada", 0.1), Reply("Bea")], READ),
    ],
)
def test_passages_are_read_as_numbers_say(rule: Rule, replies: list[Reply], stops: str) -> None:
    asked, outcome = play(uncertain_agent(QUESTION, agent=agent(seed=5), rule=rule), replies)
    assert outcome.stop_reason == stops and outcome.answer == ("Bea" if stops == READ else "Ada")
    drafts = [request for request in asked if isinstance(request, Generate)][: 1 + rule.samples]
    assert [request.seed for request in drafts] == [5, 6, 7][: 1 + rule.samples]
    if rule.draft_passages:
        assert sent_messages(drafts[0])[1] == ("user", "\n \nTitle: A\nAda did.\n \n")


def test_certainty_is_a_share_and_a_draft_that_declines_has_none() -> None:
    assert certainty("logprob", sure("Ada", logprobs=(0.0, 0.0))) == 1.0
    assert certainty("agreement", sure("in Rome"), [sure("Rome in"), sure("Paris")]) == 0.5
    for words in (
        "I'm sorry, but I couldn't find any information regarding a story.",
        "",
        "As of 2021, I don't have specific information.",
    ):
        assert certainty("confidence", sure(words, 0.9)) == 0.0


def test_both_branches_are_told_apart_again() -> None:
    replies = [
        FOUND,
        sure("Ada", 0.4),
        sure("Ada"),
        call("moreInformation", '{"moreInfo": true}'),
        Reply("Bea"),
    ]
    asked, outcome = play(
        both_branches(QUESTION, agent=agent(), rule=Rule(samples=1), ask=True), replies
    )
    episode = Episode(
        "q", "barag-both", tuple(Step(one, reply) for one, reply in zip(asked, replies)), outcome
    )
    found = find_branches(episode, 1, True)
    assert found is not None and (found.draft.reply.text, found.read.reply.text) == ("Ada", "Bea")
    assert found.decision is not None and found.decision.reply.tool_calls and found.hits == HITS
    assert find_branches(Episode("q", "barag-both", (), Outcome("", "blank")), 1, True) is None


# contexts of the published runs


def test_published_contexts_are_our_chunks_of_these_articles_joined(shared_data: Path) -> None:
    """2 of the 11 runs keep a draft as the context if nothing was retrieved; all other contexts have the same form."""
    folder = shared_data / "barag"
    articles: dict[str, str] = {}
    for name in ("articles_A_d", "articles_A_r_first300"):
        for row in read_lines(folder / f"{name}.jsonl"):
            articles.setdefault(row["title"], row["content"])
    chunks: dict[str, set[str]] = {}
    found = 0
    for run in read_lines(folder / "runs" / "A_f_20240123_100551.jsonl"):
        context = run["context"]
        parts = context.removesuffix("\n \n").split("\n \nTitle: ")[1:]
        texts = [f"Title: {text}" for text in parts]
        hits = [Hit(Passage(str(n), text), 1.0) for n, text in enumerate(texts)]
        assert context == context_text(hits) and len(texts) == 5
        for text in texts:
            title = text.partition("\n")[0].removeprefix("Title: ")
            if content := articles.get(title):
                if title not in chunks:
                    cuts = spans(content, PRESETS["barag-code"])
                    chunks[title] = {f"Title: {title}\n{content[a:b]}" for a, b in cuts}
                assert text in chunks[title]
                found += 1
    assert found > 500
