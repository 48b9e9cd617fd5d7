"""The number of questions for a comparison has the printed power, even if questions share articles."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from rallebench.analysis.paired import compare
from rallebench.analysis.power import (
    articles_needed,
    questions_needed,
    smallest_difference,
    t_power,
)
from rallebench.core.comparison import QuestionsNeeded
from rallebench.core.forecast import CHANGING
from rallebench.engine.exact import mcnemar_power
from rallebench.engine.statistics import Difference, difference

SAMPLES = 1000
PILOT = Difference(0.2, 0.04, 0.36, 0.01, 0.01, 0.08, 50, "", 49.0)


def power(articles: int, size: int, win: float, loss: float, alike: float, seed: int = 7) -> float:
    """Share of simulated comparisons that show the difference. ``alike``: correlation of questions about one article."""
    rng = np.random.default_rng(seed)
    labels, count = np.repeat(np.arange(articles), size), 0
    for _ in range(SAMPLES):
        own, common = rng.random((articles, size)), rng.random((articles, 1))
        drawn = np.where(rng.random((articles, size)) < math.sqrt(alike), common, own)
        gaps = np.where(drawn < win, 1.0, np.where(drawn < win + loss, -1.0, 0.0)).ravel()
        p = difference(gaps, labels.tolist()).p
        count += p is not None and p < 0.05
    return count / SAMPLES


@pytest.mark.slow
@pytest.mark.parametrize(("win", "loss"), [(0.30, 0.10), (0.45, 0.10), (0.15, 0.05)])
@pytest.mark.parametrize(("size", "alike"), [(1, 0.0), (3, 0.2), (4, 0.4)])
def test_the_questions_needed_have_the_power_that_is_printed(
    win: float, loss: float, size: int, alike: float
) -> None:
    mean, n = win - loss, 200 * size
    variance = (win + loss - mean**2) * (1 + (size - 1) * alike) / size
    changed = (round(win * n), round(loss * n)) if size == 1 else None
    pilot = Difference(
        *(mean, mean / 2, 2 * mean, 0.01, 0.01), math.sqrt(variance / 200), 200, "", 199.0, changed
    )
    needed = questions_needed(pilot, n)
    assert needed is not None and needed.high is not None
    assert needed.low < needed.value < needed.high
    assert 0.75 <= power(math.ceil(needed.value / size), size, win, loss, alike) <= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("questions", [25, 222])
def test_the_difference_that_a_plan_says_is_shown_with_at_least_that_power(questions: int) -> None:
    shown = smallest_difference(questions)
    assert shown is not None
    changing = max(CHANGING, shown)
    assert 0.77 <= power(questions, 1, (changing + shown) / 2, (changing - shown) / 2, 0.0) <= 0.87


@pytest.mark.parametrize(("n", "wins", "losses"), [(12, 0.9, 0.1), (30, 0.3, 0.1), (60, 0.1, 0.02)])
def test_the_power_of_the_exact_test_is_the_sum_over_all_outcomes(
    n: int, wins: float, losses: float
) -> None:
    shown = 0.0
    for changed in range(1, n + 1):
        of_changed = stats.binom.pmf(changed, n, wins + losses)
        for won in range(changed + 1):
            if stats.binomtest(won, changed).pvalue < 0.05:
                shown += of_changed * stats.binom.pmf(won, changed, wins / (wins + losses))
    assert mcnemar_power(n, wins, losses) == pytest.approx(shown, abs=1e-9)


@pytest.mark.parametrize(("ratio", "articles"), [(0.8, 10), (2.0, 34), (5.0, 200)])
def test_the_power_of_students_t_is_that_of_the_noncentral_distribution(
    ratio: float, articles: int
) -> None:
    critical = stats.t.ppf(0.975, articles - 1)
    theirs = stats.nct(articles - 1, math.sqrt(articles) / ratio)
    expected = theirs.sf(critical) + theirs.cdf(-critical)
    assert t_power(ratio, articles) == pytest.approx(expected, abs=1e-6)


def test_more_questions_are_needed_where_they_share_articles() -> None:
    alone, shared = questions_needed(PILOT, 50), questions_needed(PILOT, 200)
    assert alone is not None and shared is not None and shared.value == 4 * alone.value


def test_the_ends_of_the_interval_give_the_ends_of_the_number() -> None:
    found = questions_needed(PILOT, 50)
    at_ends = [questions_needed(replace(PILOT, value=end), 50) for end in (0.36, 0.04)]
    assert found is not None and all(at_ends)
    assert [found.low, found.high] == [each.value for each in at_ends if each]
    assert questions_needed(replace(PILOT, value=-0.2, low=-0.36, high=-0.04), 50) == found
    open_end = questions_needed(replace(PILOT, low=-0.01), 50)
    assert open_end is not None and open_end.high is None
    assert str(QuestionsNeeded(84, 36, None)) == "84 (36 or more)"


def test_no_number_is_given_where_ten_articles_have_more_power() -> None:
    certain = Difference(0.9, 0.8, 1.0, 0.0, 0.0, 0.02, 50, "", 49.0)
    assert questions_needed(certain, 50) is None and questions_needed(certain, 200) is None
    large = questions_needed(replace(PILOT, value=0.5, low=0.05, high=0.95), 50)
    assert large is not None and large.low == 10, "fewer are never significant"


def test_no_number_is_given_where_the_difference_has_no_interval_or_is_0() -> None:
    assert questions_needed(replace(PILOT, value=0.0), 50) is None
    assert questions_needed(replace(PILOT, low=None, high=None), 50) is None
    a = {f"q{i}": 0.0 for i in range(60)}
    b = a | {f"q{i}": 0.2 for i in range(9)}
    pair = compare("f1", a, b)
    assert (pair.note, pair.needed) == ("too few in one direction", None)
    assert questions_needed(replace(PILOT, value=1e-6, low=-0.1, high=0.1), 50) is None


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.2, 0.01])
def test_the_articles_needed_exclude_a_value_at_that_distance_at_any_confidence(
    level: float,
) -> None:
    spread, distance = 0.6, 0.12
    needed = articles_needed(distance, spread / math.sqrt(40), 40, level)
    assert needed is not None
    rng = np.random.default_rng(11)
    ends = [
        difference(rng.normal(0.05, spread, needed), level=level).low for _ in range(SAMPLES // 2)
    ]
    assert 0.74 <= np.mean([end is not None and end > 0.05 - distance for end in ends]) <= 0.86


def test_a_closer_value_and_a_higher_confidence_take_more_articles() -> None:
    assert articles_needed(0.0, 0.1, 40) is None
    alone, close, sure = (
        articles_needed(distance, 0.1, 40, level) or 0
        for distance, level in ((0.2, 0.05), (0.1, 0.05), (0.2, 0.01))
    )
    assert 10 <= alone < sure < close
