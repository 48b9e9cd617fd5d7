"""Groups against the rest, by article."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rallebench.engine.contrasts import contrast

RNG = np.random.default_rng(2)


def test_single_questions_are_compared_by_the_t_test_of_welch() -> None:
    values = (RNG.uniform(size=200) < 0.4).astype(float)
    inside = np.arange(200) < 60
    found = contrast(values, inside, np.arange(200))
    plain = stats.ttest_ind(values[inside], values[~inside], equal_var=False)
    assert found.value == pytest.approx(values[:60].mean() - values[60:].mean())
    assert found.p == pytest.approx(plain.pvalue, rel=0.01)
    low, high = plain.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.002)


def test_articles_on_both_sides_cancel() -> None:
    # Each article is as hard on both sides, so their difference does not vary with articles.
    hard = RNG.uniform(size=50)
    values, inside = np.repeat(hard, 2), np.tile([True, False], 50)
    within = contrast(values, inside, np.repeat(np.arange(50), 2))
    apart = contrast(values, inside, np.arange(100))
    assert within.value == pytest.approx(0) and within.error < apart.error


def test_the_interval_and_p_are_corrected_for_several_groups_and_agree() -> None:
    for shift in np.linspace(0, 0.4, 9):
        values = np.concatenate(
            [np.tile([1.0, 0.0], 20), (np.arange(100) % 10 < 10 * shift).astype(float)]
        )
        found = contrast(values, np.arange(140) < 40, np.arange(140), comparisons=8)
        assert found.low is not None and found.high is not None and found.corrected is not None
        assert (found.corrected < 0.05) == (found.low > 0 or found.high < 0)
        assert found.corrected == pytest.approx(min(1.0, 8 * (found.p or 0)))


def test_a_group_whose_answers_are_all_wrong_still_has_a_wide_interval() -> None:
    values = np.concatenate([np.ones(6), np.tile([1.0, 0.0], 50)])
    found = contrast(values, np.arange(106) < 6, np.arange(106))
    assert found.low is not None and found.value == 0.5 and found.low < 0.15


def test_few_articles_have_no_interval() -> None:
    found = contrast(np.array([1.0, 0.0] * 10), np.arange(20) < 4, np.arange(20))
    assert found.low is None and found.note == "too few articles"


def test_the_interval_covers() -> None:
    rng, held, draws = np.random.default_rng(0), 0, 400
    for _ in range(draws):
        hard = np.clip(rng.normal(0.5, 0.2, 40), 0, 1)
        articles = np.repeat(np.arange(40), 4)
        values = (rng.uniform(size=160) < hard[articles]).astype(float)
        inside = rng.uniform(size=160) < 0.2
        found = contrast(values, inside, articles)
        assert found.low is not None and found.high is not None
        held += found.low <= 0 <= found.high
    assert 0.93 - 3 * math.sqrt(0.05 * 0.95 / draws) < held / draws
