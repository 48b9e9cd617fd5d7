"""A metric over a whole run: a value or a reason for every question, and nothing is 0 in silence."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from rallebench.core.errors import NotFoundError
from rallebench.core.registry import Entry
from rallebench.core.types import Episode, Gold, Outcome
from rallebench.metrics.columns import ScoreSeries, _column, columns

RIGHT = (Episode("a", "chain", (), Outcome("Titan")), Gold(("Titan",)))
EMPTY = (Episode("b", "chain", (), Outcome("")), Gold(("Io",)))
NO_GOLD = (Episode("c", "chain", (), Outcome("Io")), Gold())
FAILED = (Episode("d", "chain", (), None, "far is down"), Gold(("Io",)))
PAIRS = [RIGHT, EMPTY, NO_GOLD, FAILED]


def test_every_question_has_a_value_or_a_reason() -> None:
    found = columns(["em", "has_answer", "mrr", "passage_mrr", "length"], PAIRS)
    assert found["em"] == ScoreSeries(
        (1, 0, None, None), ("", "", "no gold answers", "far is down")
    )
    empty = "not scored: the answer is empty (RaLLe's denominator), or the gold has no answers."
    assert found["has_answer"].notes == ("", empty, "no gold answers", "far is down")
    assert found["mrr"].values == (None,) * 4 and found["mrr"].notes[0] == "no gold provenance"
    assert found["length"].values == (5, 0, 2, None)


def test_a_question_without_gold_passages_says_so() -> None:
    pages = [(RIGHT[0], Gold(("Titan",), provenance=(frozenset({"1"}),)))]
    assert columns(["passage_mrr"], pages)["passage_mrr"].notes == (
        "not scored: the gold names no passage, as in trec_eval.",
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_not_scored_and_says_so(value: float) -> None:
    entry: Entry[Callable[..., float]] = Entry("em", lambda episode, gold: value)
    found = _column(entry, [RIGHT], [value])
    assert found.values == (None,) and found.notes == (
        f"not scored: the value is no number ({value})",
    )


def test_the_figure_over_all_answers_leaves_out_what_is_not_scored() -> None:
    with_gold = [pair for pair in PAIRS if pair[1].answers and not pair[0].error]
    assert (
        columns(["bleu"], PAIRS)["bleu"].over_all == columns(["bleu"], with_gold)["bleu"].over_all
    )
    assert columns(["bleu"], [NO_GOLD, FAILED])["bleu"] == ScoreSeries(
        (None, None), ("no gold answers", "far is down"), None
    )
    assert columns(["em"], PAIRS)["em"].over_all is None


def test_names_are_canonical_and_a_name_given_twice_is_one_column() -> None:
    assert list(columns(["recall_at_5", "recall@5", " em "], PAIRS)) == ["recall@5", "em"]
    with pytest.raises(NotFoundError, match="There is no metric 'ems'"):
        columns(["ems"], PAIRS)
