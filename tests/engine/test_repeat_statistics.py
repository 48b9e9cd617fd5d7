"""The spread of a metric over repeats, against enumeration and the analysis of variance by hand."""

from __future__ import annotations

from itertools import combinations
from statistics import mean

import numpy as np
import pytest

from rallebench.core.errors import UsageError
from rallebench.core.repeats import repeat_options
from rallebench.engine.repeat_statistics import metric_repeats

ROWS = [[1, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 1, 0], [1, 1, 0, 1]]


def test_pass_at_k_and_pass_all_k_are_shares_of_all_choices_of_k_repeats() -> None:
    spread = metric_repeats(ROWS, None)
    for k in range(1, 5):
        chosen = [[*combinations(row, k)] for row in ROWS]
        some = mean(mean(any(part) for part in parts) for parts in chosen)
        every = mean(mean(all(part) for part in parts) for parts in chosen)
        assert spread.pass_at[k - 1] == pytest.approx(some)
        assert spread.pass_all[k - 1] == pytest.approx(every)
    assert spread.pass_at[0] == spread.pass_all[0] == pytest.approx(np.mean(ROWS))
    assert spread.unstable == 3 / 5 and spread.n == 5


def test_the_variances_are_those_of_the_analysis_of_variance() -> None:
    values = np.array([[0.2, 0.4, 0.3], [0.9, 0.8, 1.0], [0.5, 0.5, 0.2], [0.1, 0.6, 0.2]])
    within = values.var(axis=1, ddof=1).mean()
    between = values.mean(axis=1).var(ddof=1) - within / 3
    spread = metric_repeats(values.tolist(), None)
    assert spread.between_repeats == pytest.approx(within)
    assert spread.between_questions == pytest.approx(between)
    assert spread.pass_at == spread.pass_all == (), "not 0 or 1, and no threshold"


def test_simulated_variances_are_found_again() -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(2, 7, 3000)
    rows = [
        (rng.normal(0, 0.5) + rng.normal(0, 0.2, size)).tolist() for size in sizes
    ]  # unequal numbers of repeats, because some failed
    spread = metric_repeats(rows, None)
    assert spread.between_questions == pytest.approx(0.25, rel=0.08)
    assert spread.between_repeats == pytest.approx(0.04, rel=0.08)


def test_a_negative_estimate_is_zero_and_equal_repeats_have_no_variance() -> None:
    alike = metric_repeats([[0, 1], [1, 0]], None)
    assert (alike.between_questions, alike.between_repeats) == (0.0, 0.5)
    same = metric_repeats([[1, 1], [0, 0]], None)
    assert (same.between_repeats, same.unstable) == (0.0, 0.0)


def test_a_stated_threshold_decides_what_passes() -> None:
    spread = metric_repeats([[0.9, 0.4], [0.8, 0.8]], 0.8)
    assert spread.pass_at == (0.75, 1.0) and spread.pass_all == (0.75, 0.5)


def test_questions_that_were_scored_once_are_left_out() -> None:
    assert metric_repeats([[1], []], None).n == 0
    one = metric_repeats([[1, 0], [1]], None)
    assert (one.n, one.between_questions, one.between_repeats) == (1, None, 0.5)


@pytest.mark.parametrize(
    ("number", "thresholds", "sentence"),
    [
        (0, (), "The number of repeats is 0; it must be from 1 to 100."),
        (101, (), "The number of repeats is 101"),
        (2, ("f1",), "The threshold 'f1' is not METRIC=SCORE, as in f1=0.8."),
        (2, ("=0.8",), "The threshold '=0.8' is not METRIC=SCORE"),
        (2, ("f1=nan",), "The threshold 'f1=nan' is not METRIC=SCORE"),
    ],
)
def test_wrong_options_are_one_sentence(
    number: int, thresholds: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(UsageError) as error:
        repeat_options(number, thresholds)
    assert str(error.value).startswith(sentence)
