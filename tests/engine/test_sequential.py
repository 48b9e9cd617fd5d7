"""Intervals that may be looked at after every article: exact at every stopping time, quick, and worth their looks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rallebench.core.deciding import Decision, StoppingRule
from rallebench.engine.sequential import STAKES, watch, watch_questions, watched_mean

RULE = StoppingRule("base", "em", margin=0.02)


def test_the_upper_end_is_where_the_capital_against_it_reaches_its_limit() -> None:
    totals, sizes = [1.0, -1.0, 0.0, 2.0, 1.0, -3.0], [1, 2, 1, 4, 2, 5]
    found = watch(totals, sizes, 6)

    def capital(theta: float, sign: int) -> float:
        grown = 0.0
        for stake in STAKES:
            each = [
                1 + stake * sign * (d - theta * n) / (6 * (1 + sign * theta))
                for d, n in zip(totals, sizes)
            ]
            grown += math.prod(each) / len(STAKES)
        return grown

    assert found.value == pytest.approx(0.0)
    assert (found.articles, found.questions) == (6, 15)
    assert found.low == -1.0 or capital(found.low, 1) == pytest.approx(40, rel=1e-3)
    assert found.high == 1.0 or capital(found.high, -1) == pytest.approx(40, rel=1e-3)


@pytest.mark.parametrize("end", ["low", "high"])
def test_after_many_articles_each_end_has_a_capital_of_2_over_alpha(end: str) -> None:
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 5, 400)
    totals = rng.binomial(sizes, 0.3) - rng.binomial(sizes, 0.2)
    found = watch(totals, sizes, 4, level=0.1)
    theta, sign = (found.low, 1) if end == "low" else (found.high, -1)
    with np.errstate(divide="ignore"):  # the largest stake may lose everything
        grown = [
            np.log1p(stake * sign * (totals - theta * sizes) / (4 * (1 + sign * theta))).sum()
            for stake in STAKES
        ]
    assert np.logaddexp.reduce(grown) - math.log(len(STAKES)) == pytest.approx(
        math.log(20), abs=0.01
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["single", "equal", "unequal", "telling sizes"])
def test_of_200_runs_that_are_watched_after_every_article_at_most_5_percent_ever_miss_the_truth(
    kind: str,
) -> None:
    rng, missed = np.random.default_rng(7), 0
    for _ in range(200):
        sizes = {"single": np.ones(120, int), "equal": np.full(60, 3)}.get(
            kind, rng.integers(1, 31, 60)
        )
        # The larger an article, the worse its answers: the mean over questions is not that over articles.
        slope = 0.2 if kind == "telling sizes" else 0.0
        lean = 0.15 - slope * (sizes - 1) / 29
        alike = rng.choice([-1, 1], len(sizes)) * (rng.random(len(sizes)) < 0.3)
        gaps = [rng.choice([-1, 0, 1], n, p=_odds(p)) for n, p in zip(sizes, lean)]
        totals = [float(n * a) if a else float(g.sum()) for g, n, a in zip(gaps, sizes, alike)]
        truth = 0.7 * 0.15 if not slope else 0.7 * float(_weighted_lean())
        largest = 30 if kind in ("unequal", "telling sizes") else int(sizes.max())
        looks = range(5, len(sizes) + 1, 5)
        missed += any(
            not (w.low <= truth <= w.high)
            for w in (watch(totals[:k], sizes[:k], largest) for k in looks)
        )
    assert missed <= 10


def _odds(lean: float) -> list[float]:
    return [(0.4 - lean) / 2, 0.6, (0.4 + lean) / 2]


def _weighted_lean() -> float:
    sizes = np.arange(1, 31)
    return float((sizes * (0.15 - 0.2 * (sizes - 1) / 29)).sum() / sizes.sum())


def test_a_clear_difference_is_decided_early_and_equal_runs_stay_open() -> None:
    rng = np.random.default_rng(1)
    worse = rng.choice([-1.0, 0.0], 400, p=[0.3, 0.7])
    assert watch(worse[:100], [1] * 100, 1).decide(RULE) is Decision.WORSE
    same = rng.choice([-1.0, 0.0, 1.0], 100, p=[0.1, 0.8, 0.1])
    assert watch(same, [1] * 100, 1).decide(RULE) is Decision.OPEN
    assert watch(-worse, [1] * 400, 1).decide(RULE) is Decision.NO_WORSE


def test_of_a_metric_of_which_less_is_better_the_decision_is_flipped() -> None:
    down = watch([-1.0] * 60, [1] * 60, 1)
    assert down.decide(RULE) is Decision.WORSE
    flipped = StoppingRule("base", "errors", margin=0.02, upward=False)
    assert down.decide(flipped) is Decision.NO_WORSE


def test_neither_the_order_of_articles_nor_the_unit_of_the_metric_changes_the_interval() -> None:
    rng = np.random.default_rng(3)
    gaps, labels = rng.uniform(-1, 1, 90), np.repeat(np.arange(30), 3)
    found = watch_questions(gaps, labels, 3)
    order = rng.permutation(90)
    again = watch_questions(gaps[order], labels[order], 3)
    assert (again.low, again.high) == pytest.approx((found.low, found.high))
    hundred = watch_questions(100 * gaps, labels, 3, spread=100)
    assert (hundred.low, hundred.high) == pytest.approx((100 * found.low, 100 * found.high))


def test_without_an_article_the_interval_is_the_whole_range() -> None:
    nothing = watch((), (), 1)
    assert (nothing.value, nothing.low, nothing.high, nothing.articles) == (None, -1, 1, 0)


def test_the_interval_of_a_mean_lies_within_its_bounds() -> None:
    values = np.array([1.0, 0.0, 1.0, 1.0] * 20)
    low, high = watched_mean(values, np.arange(80), (0.0, 1.0), 1)
    assert 0 <= low < 0.75 < high <= 1
    assert watched_mean(1 + 4 * values, np.arange(80), (1.0, 5.0), 1) == pytest.approx(
        (1 + 4 * low, 1 + 4 * high)
    )
