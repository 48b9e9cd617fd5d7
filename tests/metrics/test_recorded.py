"""Evidence in an episode for a metric: an answer, a retrieval, or neither."""

from __future__ import annotations

import pytest
from scored import score

from rallebench.core.types import (
    Episode,
    Generate,
    Gold,
    Hit,
    Message,
    Note,
    Outcome,
    Passage,
    Reply,
    Retrieve,
    Step,
)
from rallebench.metrics.recorded import has_answer, has_retrieval

HIT = Hit(Passage("d1", "Titan is a moon.", "Titan", "p1"), 1.0)
SEARCH = Step(Retrieve("tiny", "moon", 1), Reply("Titan is a moon.", (HIT,)))
NO_HITS = Step(Retrieve("tiny", "xyz", 1), Reply(""))
NOTHING = Step(Retrieve("nothing:tiny", "moon", 1), Reply(""))
SILENT = Step(Generate("m", (Message("user", "Which moon?"),)), Reply(""))
OPENED = Step(Note("Opened Titan.", (HIT.passage,)), Reply("Opened Titan.", (HIT,)))
GOLD = Gold(("Titan",), provenance=(frozenset({"p1"}),))


def episode(*steps: Step, answer: str = "") -> Episode:
    return Episode("q", "chain", steps, Outcome(answer))


@pytest.mark.parametrize(
    ("value", "answers", "retrieves"),
    [
        (episode(SEARCH), False, True),
        (
            episode(
                SEARCH,
                Step(Note(HIT.passage.text), Reply(HIT.passage.text)),
                answer=HIT.passage.text,
            ),
            False,
            True,
        ),
        (episode(SEARCH, Step(Note("Titan"), Reply("Titan")), answer="Titan"), True, True),
        (episode(SEARCH, SILENT), True, True),
        (episode(SILENT), True, False),
        (episode(NOTHING, SILENT), True, False),
        (episode(NO_HITS, SILENT), True, True),
        (episode(OPENED, SILENT), True, True),
        (Episode("q", "chain", (), Outcome("", "empty_template")), False, False),
    ],
)
def test_passages_are_no_answer_and_a_silent_model_gave_one(
    value: Episode, answers: bool, retrieves: bool
) -> None:
    assert (has_answer(value), has_retrieval(value)) == (answers, retrieves)


def test_an_agent_that_did_not_search_for_one_question_scores_0_there() -> None:
    searched, silent = episode(SEARCH, SILENT), episode(SILENT, answer="Titan")
    pairs = [(searched, GOLD), (silent, GOLD)]
    assert score(["Rprec"], pairs)["Rprec"].values == (1.0, 0.0)
    alone = score(["Rprec", "answer_in_context@1"], [(silent, GOLD)])
    assert alone["Rprec"].values == alone["answer_in_context@1"].values == (None,)
    assert alone["Rprec"].notes == ("not scored: nothing is retrieved",)


def test_an_empty_answer_of_a_model_is_wrong_and_no_answer_is_not_scored() -> None:
    scored = score(["em"], [(episode(SILENT), GOLD), (episode(SEARCH), GOLD)])["em"]
    assert scored.values == (0.0, None)
    assert scored.notes[1].startswith("not scored: no answer is produced")
