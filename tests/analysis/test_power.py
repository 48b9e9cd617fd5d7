"""The number of questions for a comparison has the printed power, even if questions share articles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rallebench.analysis.paired import questions_needed
from rallebench.engine.statistics import Difference, difference
from rallebench.services.forecasts import CHANGING, smallest_difference

SAMPLES = 1000


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
@pytest.mark.parametrize(("win", "loss"), [(0.30, 0.10), (0.45, 0.10), (0.55, 0.05), (0.15, 0.05)])
@pytest.mark.parametrize(("size", "alike"), [(1, 0.0), (4, 0.4)])
def test_the_questions_needed_have_the_power_that_is_printed(
    win: float, loss: float, size: int, alike: float
) -> None:
    mean = win - loss
    variance = (win + loss - mean**2) * (1 + (size - 1) * alike) / size
    pilot = Difference(mean, None, None, None, None, math.sqrt(variance / 50), 50, "")
    needed = questions_needed(pilot, 50 * size)
    assert needed is not None
    assert 0.75 <= power(math.ceil(needed / size), size, win, loss, alike) <= 0.86


@pytest.mark.slow
@pytest.mark.parametrize("questions", [25, 222])
def test_the_difference_that_a_plan_says_is_shown_with_at_least_that_power(questions: int) -> None:
    shown = smallest_difference(questions)
    assert shown is not None
    changing = max(CHANGING, shown)
    assert power(questions, 1, (changing + shown) / 2, (changing - shown) / 2, 0.0) >= 0.77


def test_more_questions_are_needed_where_they_share_articles_and_fewer_than_10_articles_never_suffice() -> (
    None
):
    alone = Difference(0.2, None, None, None, None, 0.08, 50, "")
    assert questions_needed(alone, 200) == 4 * (questions_needed(alone, 50) or 0)
    certain = Difference(0.9, None, None, None, None, 0.02, 50, "")
    assert questions_needed(certain, 50) == 10 and questions_needed(certain, 200) == 40
    assert questions_needed(Difference(0.0, None, None, None, None, 0.1, 50, ""), 50) is None
