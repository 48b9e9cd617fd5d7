"""The waterfall shows for each question, without a judge, the stage at which it was lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rallebench.analysis.waterfall import figure, notes, waterfall
from rallebench.core.types import (
    Episode,
    Example,
    Generate,
    Gold,
    Hit,
    Message,
    Note,
    Outcome,
    Passage,
    Question,
    Reply,
    Retrieve,
    Step,
)
from rallebench.core.waterfall import OF_UNANSWERABLE, STAGES, Waterfall

GOLD = Passage("d1", "Titan is a moon of Saturn.", "Titan", "p1")
OTHER = Passage("d2", "Rome is a city.", "Rome", "p2")
SECOND = Passage("d3", "Saturn is a planet.", "Saturn", "p3")
CORPUS = {"p1", "p2", "p3"}


PAGE = Gold(("Titan",), provenance=(frozenset({"p1"}),))
BOTH = Gold(("Titan",), provenance=(frozenset({"p1", "p3"}),))
EITHER = Gold(("Titan",), provenance=(frozenset({"p1", "p3"}), frozenset({"p3"})))
LONG = Gold((" ".join(["word"] * 30),), provenance=(frozenset({"p1"}),))
DECLINE = Gold(unanswerable=True)
UNANSWERED = Gold(provenance=(frozenset({"p1"}),))


def search_step(*passages: Passage) -> Step:
    hits = tuple(Hit(passage, 1.0 / rank) for rank, passage in enumerate(passages, 1))
    return Step(Retrieve("r", "q", len(hits)), Reply("", hits))


def page_step(passage: Passage) -> Step:
    told = Note(f"Opened the page {passage.title!r}.", (passage,))
    return Step(told, told.reply())


def model_step(prompt: str, reply: str) -> Step:
    return Step(Generate("m", (Message("user", prompt),)), Reply(reply))


def place_question(
    *steps: Step,
    answer: str = "",
    gold: Gold = PAGE,
    corpus: set[str] | None = CORPUS,
    error: str = "",
    given: tuple[str, ...] = (),
) -> Waterfall:
    """One question; ``given``: the passages supplied with it."""
    passages = tuple(Passage(f"document {n}", text) for n, text in enumerate(given, 1))
    example = Example(Question("q", "Which moon?", passages), gold)
    episode = Episode("q", "chain", steps, None if error else Outcome(answer), error)
    result = waterfall([example], [episode], corpus)
    assert sum(result.counts().values()) == 1
    return result


NO, RHEA, TITAN = (
    model_step(OTHER.text, "no"),
    model_step(GOLD.text, "Rhea"),
    model_step(GOLD.text, "Titan"),
)
CASES: dict[str, tuple[tuple[Step, ...], str, str, dict[str, Any]]] = {
    "not retrieved": ((search_step(OTHER), NO), "no", "not_retrieved", {}),
    "retrieved and cut": ((search_step(OTHER, GOLD), NO), "no", "not_in_prompt", {}),
    "in the prompt, another answer": ((search_step(GOLD), RHEA), "Rhea", "not_in_answer", {}),
    "a sentence around the answer": (
        (search_step(GOLD), TITAN),
        "It is Titan",
        "lost_by_format",
        {},
    ),
    "right": ((search_step(GOLD), TITAN), "Titan", "right", {}),
    "a page that was opened": ((page_step(GOLD), TITAN), "Titan", "right", {}),
    "another page was opened": ((page_step(OTHER), NO), "no", "not_retrieved", {}),
    "known without the page": ((search_step(OTHER), NO), "Titan", "right_without_support", {}),
    "known without a retrieval": ((NO,), "Titan", "right_without_support", {}),
    "a closed book's wrong answer": ((NO,), "Rhea", "not_in_answer", {}),
    "a closed book's sentence": ((NO,), "It is Titan.", "lost_by_format", {}),
    "a closed book outside the corpus": ((NO,), "Rhea", "not_in_answer", {"corpus": {"p2"}}),
    "a closed book without gold pages": (
        (NO,),
        "Rhea",
        "not_in_answer",
        {"gold": Gold(("Titan",))},
    ),
    "retrieved, and nothing generated": ((search_step(GOLD),), "", "retrieved", {}),
    "not retrieved, and nothing generated": ((search_step(OTHER),), "", "not_retrieved", {}),
    "the corpus lacks the page": ((search_step(OTHER),), "no", "not_in_corpus", {"corpus": {"p2"}}),
    "the corpus cannot be read": ((search_step(OTHER),), "no", "not_found", {"corpus": None}),
    "gold without pages": ((search_step(OTHER),), "no", "not_found", {"gold": Gold(("Titan",))}),
    "failed whatever it retrieved": (
        (search_step(GOLD),),
        "",
        "failed",
        {"error": "the model is gone"},
    ),
    "half an evidence set": ((search_step(GOLD), TITAN), "no", "not_retrieved", {"gold": BOTH}),
    "a whole evidence set": (
        (search_step(GOLD, SECOND), model_step(f"{GOLD.text}\n{SECOND.text}", "Titan")),
        "Titan",
        "right",
        {"gold": BOTH},
    ),
    "one of two evidence sets": (
        (search_step(SECOND), model_step(SECOND.text, "Titan")),
        "Titan",
        "right",
        {"gold": EITHER},
    ),
    "two retrievals together": (
        (search_step(OTHER), NO, search_step(GOLD), TITAN),
        "Titan",
        "right",
        {},
    ),
    "shown before it was retrieved": ((TITAN, search_step(GOLD)), "no", "not_in_prompt", {}),
    "a note of the first title": (
        (search_step(GOLD), Step(Note("Titan"), Reply("Titan"))),
        "Titan",
        "right",
        {},
    ),
    "long gold answers": ((search_step(GOLD), TITAN), "something", "in_prompt", {"gold": LONG}),
    "no gold answers": (
        (search_step(GOLD), TITAN),
        "some",
        "without_answers",
        {"gold": UNANSWERED},
    ),
    "no gold answers, empty": (
        (search_step(GOLD), TITAN),
        "",
        "without_answers",
        {"gold": UNANSWERED},
    ),
    "no gold answers, lost": (
        (search_step(OTHER), NO),
        "some",
        "not_retrieved",
        {"gold": UNANSWERED},
    ),
    "no gold at all": ((search_step(GOLD), TITAN), "Titan", "unanswerable", {"gold": Gold()}),
    "declining is right": ((search_step(GOLD), NO), "Unknown.", "declined", {"gold": DECLINE}),
    "declining by silence": ((search_step(GOLD), NO), "", "declined", {"gold": DECLINE}),
    "an answer where there is none": (
        (search_step(GOLD), TITAN),
        "Titan",
        "not_declined",
        {"gold": DECLINE},
    ),
    "only retrieved, where there is no answer": (
        (search_step(GOLD),),
        "",
        "retrieved",
        {"gold": replace(DECLINE, provenance=PAGE.provenance)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_question_falls_where_it_was_lost(case: str) -> None:
    steps, answer, expected, more = CASES[case]
    assert place_question(*steps, answer=answer, **more).placed[0].stage == expected


def test_without_gold_pages_a_passage_that_holds_an_answer_is_the_support_as_is_said() -> None:
    result = place_question(search_step(GOLD), TITAN, answer="Titan", gold=Gold(("Titan",)))
    assert (result.placed[0].stage, result.placed[0].by) == ("right", "answers")
    assert result.without_pages == 1


@pytest.mark.parametrize(
    ("given", "prompt", "answer", "gold", "expected"),
    [
        ((OTHER.text, GOLD.text), f"{OTHER.text}\n{GOLD.text}", "Rhea", "Titan", "not_in_answer"),
        ((GOLD.text,), GOLD.text, "It is Titan", "Titan", "lost_by_format"),
        ((GOLD.text,), "Which moon?", "Rhea", "Titan", "not_in_prompt"),
        ((OTHER.text,), OTHER.text, "Rhea", "Titan", "not_given"),
        (("罗马是一座城市。",), "罗马是一座城市。", "北京", "罗马", "not_in_answer"),
    ],
)
def test_passages_that_came_with_a_question_are_looked_at_and_no_corpus_is_missed(
    given: tuple[str, ...], prompt: str, answer: str, gold: str, expected: str
) -> None:
    step = model_step(prompt, answer)
    result = place_question(step, answer=answer, gold=Gold((gold,)), corpus=None, given=given)
    assert (result.placed[0].stage, result.placed[0].by) == (expected, "given")
    assert (result.given_passages, result.without_pages) == (1, 0)
    assert result.tells and not result.misses_corpus
    (note,) = notes([("a", result)])
    assert note.startswith("a: 1 question came with passages") and "corpus" not in note


def test_the_stages_come_in_order_and_every_question_is_in_one() -> None:
    examples = [Example(Question(f"q{i}", "Which moon?"), PAGE) for i in range(3)]
    episodes = [
        Episode("q0", "chain", (search_step(OTHER),), Outcome("")),
        Episode("q1", "chain", (search_step(GOLD), TITAN), Outcome("Titan")),
        Episode("q2", "chain", (), None, "failed"),
    ]
    result = waterfall(examples, episodes, CORPUS)
    assert list(result.counts()) == [stage for stage in STAGES if stage not in OF_UNANSWERABLE]
    assert sum(result.counts().values()) == 3
    assert result.questions("right") == ["q1"]


def test_where_nothing_was_retrieved_and_no_pages_are_named_there_is_no_way_to_be_lost_on() -> None:
    alone = place_question(NO, answer="Rhea", gold=Gold(("Titan",)), corpus=None)
    assert not alone.tells and not alone.within({"q"}).tells
    (note,) = notes([("a", alone)])
    assert note.startswith("a: nothing was retrieved and no question names gold pages")
    assert not figure([("a", alone)]).series
    assert place_question(
        search_step(OTHER), answer="Rhea", gold=Gold(("Titan",)), corpus=None
    ).tells
