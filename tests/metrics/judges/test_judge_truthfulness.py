"""The judge of truthfulness and relevance: its requests, their number, and its result."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rallebench.core.prompts import prompt_text
from rallebench.core.types import Episode, Generate, Message, Reply, Step
from rallebench.llms.scripted import Scripted
from rallebench.metrics import METRICS
from rallebench.metrics.judges import JUDGED, UNPARSED, Case, read_judgement
from rallebench.metrics.judges.truthfulness import ARTICLE_CHARACTERS, JudgePrompt, article_text

CASE = Case("Who {answer}?", "Ada {article}.", "Ada\nAda wrote it.")
PROMPT = JudgePrompt(
    "rubric", "A {article}\nQ {query}\nS {answer}", "swapped Q {query}\nS {answer}\nA {article}"
)


def judged(replies: Any, **settings: Any) -> tuple[Episode, list[Generate]]:
    """A judge played to its end: the episode, and its requests."""
    llm, steps = Scripted(replies), []
    flow = METRICS["truthfulness"](CASE, llm="judge", prompt=PROMPT, **settings)
    reply: Any = None
    try:
        while True:
            request = flow.send(reply)
            assert isinstance(request, Generate)
            (reply,) = llm.generate([request])
            assert isinstance(reply, Reply)
            steps.append(Step(request, reply))
    except StopIteration as end:
        return Episode("q", "judge", tuple(steps), end.value), llm.requests


def test_the_system_prompt_is_sent_and_the_original_leaves_it_out() -> None:
    user = Message("user", "A Ada\nAda wrote it.\nQ Who {answer}?\nS Ada {article}.")
    _, sent = judged(["4, 5"])
    assert sent[0].messages == (Message("system", "rubric"), user) and sent[0].temperature == 0
    _, sent = judged(["4, 5"], compat="original", form="tool")
    assert sent[0].messages == (user,)
    assert sent[0].tools[0].parameters["required"] == ["truthfulness", "relevance"]
    assert (
        sent[0].options["tool_choice"]["function"]["name"]
        == sent[0].tools[0].name
        == "setEvaluation"
    )


def test_a_form_is_asked_for_where_it_is_wanted() -> None:
    _, sent = judged(["4, 5"], form="schema")
    schema = sent[0].options["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["truthfulness", "relevance"] and sent[0].tools == ()
    _, sent = judged(["4, 5"], form="text")
    assert sent[0].options == {} and sent[0].tools == ()


def test_repeats_have_seeds_of_their_own_and_every_second_may_be_swapped() -> None:
    episode, sent = judged(
        ["4, 5", "5, 4", '{"truthfulness": 1, "relevance": 5}'], repeats=3, swap=True, seed=7
    )
    assert [request.seed for request in sent] == [7, 8, 9]
    assert [request.messages[1].content.startswith("swapped") for request in sent] == [
        False,
        True,
        False,
    ]
    found = read_judgement(episode)
    assert [dict(one.values) for one in found.each] == [
        {"truthfulness": 4, "relevance": 5},
        {"relevance": 5, "truthfulness": 4},
        {"truthfulness": 1, "relevance": 5},
    ]
    assert found.values == {"truthfulness": 3.0, "relevance": 5.0}


def test_swapping_asks_at_least_twice() -> None:
    assert len(judged(["4, 5", "5, 4"], swap=True)[1]) == 2


def test_what_could_be_read_is_averaged_and_what_could_not_is_kept_as_a_failure() -> None:
    found = read_judgement(judged(["Hm.", "2, 3"], repeats=2)[0])
    assert found.values == {"truthfulness": 2, "relevance": 3} and found.failure == ""
    assert [bool(one.failure) for one in found.each] == [True, False]


def test_a_judgement_can_be_read_again_from_its_episode() -> None:
    episode, _ = judged(['{"truthfulness": 4, "relevance": 5, "reason": "so"}'])
    assert json.loads(episode.answer) == {
        "values": {"truthfulness": 4.0, "relevance": 5.0},
        "reason": "so",
    }
    assert episode.outcome is not None and episode.outcome.stop_reason == JUDGED
    unread, _ = judged(["No idea."])
    assert unread.outcome is not None and unread.outcome.stop_reason == UNPARSED
    assert read_judgement(unread).failure == "The reply contains no score for truthfulness."
    assert read_judgement(Episode("q", "judge", (), None, "It broke.")).failure == "It broke."


@pytest.mark.parametrize("content", ["", "one two three", "x" * 2_000_000])
def test_an_article_of_any_length_is_shown_up_to_fifteen_thousand_characters(content: str) -> None:
    shown = article_text("Title", content)
    assert shown == f"Title\n{content}"[:15_000] and len(shown) <= ARTICLE_CHARACTERS


def test_the_shipped_rubric_gives_an_answer_that_does_not_know_a_relevance_of_one() -> None:
    traits = METRICS.entry("truthfulness").traits["judge"]
    prompt = traits.prompt(*(prompt_text(traits.folder, name) for name in traits.prompts))
    assert "Relevance is 1 if the answer is that the chatbot does not know." in prompt.system
    assert all(
        field in text
        for text in (prompt.user, prompt.swapped)
        for field in ("{article}", "{query}", "{answer}")
    )
