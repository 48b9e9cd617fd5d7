"""A metric over a whole run: a value or a reason for every question, and never a silent 0."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from scored import score

from rallebench.core.errors import NotFoundError
from rallebench.core.registry import Entry
from rallebench.core.scoring import Pair
from rallebench.core.types import Episode, Example, Gold, Outcome, Question
from rallebench.metrics.scorers import MetricScorer

RIGHT = (Episode("a", "chain", (), Outcome("Titan")), Gold(("Titan",)))
EMPTY = (Episode("b", "chain", (), Outcome("")), Gold(("Io",)))
NO_GOLD = (Episode("c", "chain", (), Outcome("Io")), Gold())
FAILED = (Episode("d", "chain", (), None, "far is down"), Gold(("Io",)))
PAIRS = [RIGHT, EMPTY, NO_GOLD, FAILED]


def test_every_question_has_a_value_or_a_reason() -> None:
    found = score(["em", "has_answer", "mrr", "passage_mrr", "length"], PAIRS)
    assert found["em"].values == (1, 0, None, None)
    assert found["em"].notes == ("", "", "no gold answers", "far is down")
    empty = "not scored: the answer is empty (RaLLe's denominator), or the gold has no answers."
    assert found["has_answer"].notes == ("", empty, "no gold answers", "far is down")
    assert found["mrr"].values == (None,) * 4 and found["mrr"].notes[0] == "no gold provenance"
    assert found["length"].values == (5, 0, 2, None)


def test_a_question_without_gold_passages_says_so() -> None:
    pages = [(RIGHT[0], Gold(("Titan",), provenance=(frozenset({"1"}),)))]
    assert score(["passage_mrr"], pages)["passage_mrr"].notes == (
        "not scored: the gold names no passage, as in trec_eval.",
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_not_scored_and_says_so(value: float) -> None:
    entry: Entry[Callable[..., float]] = Entry("em", lambda episode, gold: value)
    episode, gold = RIGHT
    (row,) = MetricScorer((entry,)).values(
        [Pair(Example(Question("a", ""), gold), episode)], [None]
    )
    assert row.values == {"em": None}
    assert row.notes == {"em": f"not scored: the value is not a number ({value})"}


def test_the_figure_over_all_answers_leaves_out_what_is_not_scored() -> None:
    with_gold = [pair for pair in PAIRS if pair[1].answers and not pair[0].error]
    assert (
        score(["bleu"], PAIRS)["bleu"].corpus_level
        == score(["bleu"], with_gold)["bleu"].corpus_level
    )
    nothing = score(["bleu"], [NO_GOLD, FAILED])["bleu"]
    assert nothing.values == (None, None) and nothing.corpus_level is None
    assert score(["em"], PAIRS)["em"].corpus_level is None


def test_names_are_canonical_and_a_name_given_twice_is_one_column() -> None:
    assert list(score(["recall_at_5", "recall@5", " em "], PAIRS)) == ["recall@5", "em"]
    with pytest.raises(NotFoundError, match="There is no metric 'ems'"):
        score(["ems"], PAIRS)
