"""The boolean agents, request by request: what each mode sends, in which order, and how it decides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

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
from rallebench.workflows import WORKFLOWS, barag
from rallebench.workflows.barag import (
    NO_CALL,
    OWN,
    READ,
    UNDECIDED,
    BaragAgent,
    Prompts,
    context_of,
    recent,
)
from rallebench.workflows.barag_decisions import read_boolean
from rallebench.workflows.barag_uncertain import Rule, both, branches_of, certainty, uncertain

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
    """The flow's requests and its end; every reply must be used up. Notes are answered with themselves."""
    asked: list[Request] = []
    waiting, reply = list(replies), None
    try:
        while True:
            asked.append(flow.send(reply) if reply else next(flow))
            reply = Reply("noted") if isinstance(asked[-1], Note) else waiting.pop(0)
    except StopIteration as end:
        assert not waiting
        return asked, end.value


def sent(request: Request) -> list[tuple[str, str]]:
    assert isinstance(request, Generate)
    return [(message.role, message.content) for message in request.messages]


def test_baseline_sends_the_bare_query_and_the_original_sends_empty_messages_with_it() -> None:
    (asked,), outcome = play(barag.baseline(QUESTION, agent=agent()), [Reply("Ada")])
    assert sent(asked) == [("user", "Who?")] and outcome == Outcome("Ada", OWN)
    assert isinstance(asked, Generate) and asked.temperature == 1.0
    (asked,), _ = play(barag.baseline(QUESTION, agent=agent(compat="original")), [Reply("Ada")])
    assert sent(asked) == [("system", ""), ("user", ""), ("user", "Who?")]


def test_naive_sends_context_and_query_as_two_user_messages() -> None:
    asked, outcome = play(barag.naive(QUESTION, agent=agent()), [FOUND, Reply("Ada")])
    assert asked[0] == Retrieve("index", "Who?", 5)
    expected = [("system", "naive"), ("user", CONTEXT), ("user", "Who?")]
    assert sent(asked[1]) == expected
    assert outcome == Outcome("Ada", READ)
    assert isinstance(asked[1], Generate)
    assert asked[1].evidence is not None
    assert len(asked[1].evidence.passages) == 2


def test_the_right_article_can_be_the_context() -> None:
    question = Question("q", "Who?", (Passage("a", "Ada did.", "A"),))
    (asked,), outcome = play(barag.ground_truth(question, agent=agent()), [Reply("Ada")])
    expected = [("system", "naive"), ("user", "\n \nTitle: A\nAda did.\n \n"), ("user", "Who?")]
    assert sent(asked) == expected
    assert outcome.stop_reason == READ


def test_a_model_that_takes_one_message_gets_all_of_it_in_one() -> None:
    asked, _ = play(barag.naive(QUESTION, agent=agent(layout="merged")), [FOUND, Reply("Ada")])
    assert sent(asked[1]) == [("user", f"naive\n\n{CONTEXT.strip()}\n\nWho?")]


@pytest.mark.parametrize(
    ("said", "reads"),
    [
        (call("databaseRetrieval", '{"retrieve": true}'), True),
        (call("databaseRetrieval", '{"retrieve": false}'), False),
    ],
)
def test_basic_reads_if_the_model_wants_to_and_decides_greedily(said: Reply, reads: bool) -> None:
    asked, outcome = play(
        barag.basic(QUESTION, agent=agent()), [said, *([FOUND] if reads else []), Reply("Ada")]
    )
    decision = asked[0]
    assert isinstance(decision, Generate) and decision.temperature == 0 and decision.options == {}
    assert sent(decision) == [("system", "basic"), ("user", "Who?")]
    assert decision.tools[0].name == "databaseRetrieval"
    expected = [("system", "basic"), *([("user", CONTEXT)] if reads else []), ("user", "Who?")]
    assert sent(asked[-1]) == expected
    assert outcome == Outcome("Ada", READ if reads else OWN)


def test_a_basic_agent_without_a_call_reads_and_the_original_apologises() -> None:
    asked, outcome = play(
        barag.basic(QUESTION, agent=agent()), [Reply("Paris."), FOUND, Reply("Ada")]
    )
    assert asked[1] == Note(UNDECIDED) and outcome == Outcome("Ada", READ)
    asked, outcome = play(
        barag.basic(QUESTION, agent=agent(compat="original")), [Reply('{"retrieve": true}')]
    )
    assert len(asked) == 1
    assert outcome.stop_reason == NO_CALL
    assert outcome.answer.endswith("(getContext).")


def test_advanced_drafts_is_asked_and_keeps_its_draft_or_reads_without_it() -> None:
    kept, outcome = play(
        barag.advanced(QUESTION, agent=agent()),
        [Reply("Ada"), call("moreInformation", '{"moreInfo": false}')],
    )
    assert sent(kept[0]) == [("user", "Who?")] and outcome == Outcome("Ada", OWN)
    assert sent(kept[1]) == [("user", "Who?"), ("assistant", "Ada")]
    assert isinstance(kept[1], Generate)
    assert kept[1].options["tool_choice"]["function"]["name"] == "moreInformation"
    yes = call("moreInformation", '{"moreInfo": true}')
    asked, outcome = play(
        barag.advanced(QUESTION, agent=agent()), [Reply("Ada"), yes, FOUND, Reply("Bea")]
    )
    expected = [("system", "naive"), ("user", CONTEXT), ("user", "Who?")]
    assert sent(asked[-1]) == expected
    assert outcome == Outcome("Bea", READ)


def test_decisions_can_be_asked_for_in_words() -> None:
    asked, _ = play(barag.basic(QUESTION, agent=agent(calls="text")), [Reply("no"), Reply("Ada")])
    assert sent(asked[0]) == [("system", "basic"), ("user", "Who?\n\ndecide?")]
    assert isinstance(asked[0], Generate)
    assert not asked[0].tools
    asked, _ = play(
        barag.advanced(QUESTION, agent=agent(calls="text")),
        [Reply("Ada"), Reply('{"moreInfo": false}')],
    )
    assert sent(asked[1])[-1] == ("user", "more?")


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        (call("f", '{"moreInfo": true}'), True),
        (call("f", '{"MOREINFO": "No"}'), False),
        (Reply('So: {"moreInfo": 1}'), True),
        (Reply('{"name": "moreInformation", "arguments": {"moreInfo": false}}'), False),
        (Reply("moreInfo = false"), False),
        (Reply("<think>yes?</think>No."), False),
        (Reply("I think the answer is yes."), True),
        (Reply("No. A yes would cost tokens."), False),
        (Reply("Yes and no."), None),
        (Reply("Perhaps yes, perhaps no."), None),
        (call("f", "{broken"), None),
        (Reply(""), None),
        (Reply("Paris"), None),
    ],
)
def test_a_boolean_is_read_from_a_call_from_json_and_from_words(
    reply: Reply, wanted: bool | None
) -> None:
    assert read_boolean(reply, "moreInfo") is wanted


@pytest.mark.parametrize("name", sorted(barag.MODES))
def test_blank_and_too_long_queries_ask_nobody(name: str) -> None:
    flow = WORKFLOWS[f"barag-{name}"]
    assert play(flow(Question("q", " \n"), agent=agent()), []) == ([], Outcome("", "blank"))
    asked, outcome = play(flow(Question("q", "x" * 2001), agent=agent()), [])
    assert asked == [] and outcome.stop_reason == "too long" and "2000" in outcome.answer
    assert (
        play(barag.baseline(Question("q", "x" * 2000), agent=agent()), [Reply("Ada")])[1].answer
        == "Ada"
    )


def test_history_is_the_last_three_turns_and_fewer_where_they_are_long() -> None:
    turns = [Message(role, f"{role} {n}") for n in range(5) for role in ("user", "assistant")]
    assert [m.content for m in recent(turns)] == [
        f"{role} {n}" for n in (2, 3, 4) for role in ("user", "assistant")
    ]
    long = [
        Message("user", "x" * 20_000),
        Message("assistant", "a"),
        Message("user", "y" * 5000),
        Message("assistant", "b"),
    ]
    assert recent(long) == tuple(long[2:])
    question = Question("q", "Who?", history=tuple(turns[-2:]))
    (asked,), _ = play(barag.baseline(question, agent=agent(history=True)), [Reply("Ada")])
    assert sent(asked) == [("user", "user 4"), ("assistant", "assistant 4"), ("user", "Who?")]
    (asked,), _ = play(barag.baseline(question, agent=agent()), [Reply("Ada")])
    assert sent(asked) == [("user", "Who?")]


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
def test_passages_are_read_where_the_number_says_so(
    rule: Rule, replies: list[Reply], stops: str
) -> None:
    asked, outcome = play(uncertain(QUESTION, agent=agent(seed=5), rule=rule), replies)
    assert outcome.stop_reason == stops and outcome.answer == ("Bea" if stops == READ else "Ada")
    drafts = [request for request in asked if isinstance(request, Generate)][: 1 + rule.samples]
    assert [request.seed for request in drafts] == [5, 6, 7][: 1 + rule.samples]
    if rule.draft_passages:
        assert sent(drafts[0])[1] == ("user", "\n \nTitle: A\nAda did.\n \n")


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
    asked, outcome = play(both(QUESTION, agent=agent(), rule=Rule(samples=1), ask=True), replies)
    episode = Episode(
        "q", "barag-both", tuple(Step(one, reply) for one, reply in zip(asked, replies)), outcome
    )
    found = branches_of(episode, 1, True)
    assert found is not None and (found.draft.reply.text, found.read.reply.text) == ("Ada", "Bea")
    assert found.decision is not None and found.decision.reply.tool_calls and found.hits == HITS
    assert branches_of(Episode("q", "barag-both", (), Outcome("", "blank")), 1, True) is None


# as the published runs have it


def test_published_contexts_are_our_chunks_of_these_articles_with_our_joints(
    shared_data: Path,
) -> None:
    """2 of the 11 runs keep a draft as the context where nothing was retrieved; no other context is of another form."""
    folder = shared_data / "barag"
    articles: dict[str, str] = {}
    for name in ("articles_A_d", "articles_A_r_first300"):
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            articles.setdefault(row["title"], row["content"])
    chunks: dict[str, set[str]] = {}
    found = 0
    for line in (
        (folder / "runs" / "A_f_20240123_100551.jsonl").read_text(encoding="utf-8").splitlines()
    ):
        context = json.loads(line)["context"]
        texts = [
            f"Title: {text}" for text in context.removesuffix("\n \n").split("\n \nTitle: ")[1:]
        ]
        assert context == context_of(
            [Hit(Passage(str(n), text), 1.0) for n, text in enumerate(texts)]
        )
        assert len(texts) == 5
        for text in texts:
            title = text.partition("\n")[0].removeprefix("Title: ")
            if title in articles:
                content = articles[title]
                chunks.setdefault(
                    title,
                    {
                        f"Title: {title}\n{content[a:b]}"
                        for a, b in spans(content, PRESETS["barag-code"])
                    },
                )
                assert text in chunks[title]
                found += 1
    assert found > 500
