"""A mean of paired differences watched while the answers arrive: its interval holds at every moment at once.

A confidence sequence by betting (Waudby-Smith and Ramdas 2024): against each candidate mean θ one bets on the sum of an
article's differences, D − θ · n for an article of n questions, whose expectation is 0 if θ is the question-weighted mean.
The capital is a nonnegative martingale, so at the true θ it exceeds 1 / α with a probability of at most α, however often
one looks and whenever one stops (Ville 1939). The stake is mixed over a fixed grid (Robbins 1970), so the result
depends on the articles that were asked, not on their order. It needs metrics with two bounds, and no normality.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rallebench.core.deciding import Watched
from rallebench.core.numbers import LEVEL

Floats = NDArray[np.float64]
STAKES: Floats = np.geomspace(0.02, 1.0, 8)
"""Shares of the largest possible stake, each with an equal part of the capital."""
PRECISION = 20
"""Halvings when an end is searched: 2 / 2²⁰ of the metric's range."""


def watch(
    totals: Sequence[float] | Floats,
    sizes: Sequence[int] | NDArray[np.int64],
    largest: int,
    spread: float = 1.0,
    level: float = LEVEL,
) -> Watched:
    """The confidence sequence of a mean difference after some articles.

    ``totals``: the sum of each article's differences; ``sizes``: its questions. ``largest``: the questions of the largest
    article of the *whole* dataset, known before the first answer. ``spread``: the metric's range, so a difference
    lies in [−spread, spread]; ``level``: 1 − the confidence. The articles must come in a random order.
    """
    counts = np.asarray(sizes, dtype=float)
    sums = np.asarray(totals, dtype=float) / spread
    if not len(counts):
        return Watched(None, -spread, spread, 0, 0)
    pairs, repeats = np.unique(np.stack([sums, counts]), axis=1, return_counts=True)
    needed = math.log(2 / level)  # half of α for each end
    low = -_highest_refuted(-pairs[0], pairs[1], repeats, largest, needed)
    high = _highest_refuted(pairs[0], pairs[1], repeats, largest, needed)
    mean = float(sums.sum() / counts.sum())
    return Watched(
        spread * mean,
        spread * min(low, mean),
        spread * max(high, mean),
        len(counts),
        int(counts.sum()),
    )


def _highest_refuted(
    sums: Floats, sizes: Floats, counts: NDArray[np.int64], largest: int, needed: float
) -> float:
    """The upper end: the least θ above which every candidate is refuted by bets that the mean is lower."""
    low, high = -1.0, 1.0
    for _ in range(PRECISION):
        middle = (low + high) / 2
        if _log_capital(-sums, sizes, counts, -middle, largest) >= needed:
            high = middle
        else:
            low = middle
    return high


def _log_capital(
    sums: Floats, sizes: Floats, counts: NDArray[np.int64], mean: float, largest: int
) -> float:
    """The logarithm of what bets against ``mean`` from above have made of 1: it falls as ``mean`` rises."""
    unit = (
        (sums - mean * sizes) / (largest * (1 + mean)) if mean > -1 else np.full_like(sums, np.inf)
    )
    with np.errstate(divide="ignore"):
        grown = np.log1p(np.maximum(STAKES[:, None] * unit[None, :], -1.0)) @ counts
    return float(np.logaddexp.reduce(grown) - math.log(len(STAKES)))


def watch_questions(
    gaps: Sequence[float] | Floats,
    clusters: Sequence[int | str],
    largest: int,
    spread: float = 1.0,
    level: float = LEVEL,
) -> Watched:
    """``watch`` of (n,) differences of questions in ``clusters``."""
    if not len(gaps):
        return watch((), (), largest, spread, level)
    _, places = np.unique(np.asarray(clusters), return_inverse=True)
    sizes = np.bincount(places)
    totals = np.bincount(places, weights=np.asarray(gaps, dtype=float)).astype(np.float64)
    return watch(totals, sizes, max(largest, int(sizes.max())), spread, level)


def watched_mean(
    values: Floats, clusters: Sequence[int | str], bounds: tuple[float, float], largest: int
) -> tuple[float, float]:
    """The anytime-valid interval of a mean of values between two bounds."""
    low, high = bounds
    middle, half = (low + high) / 2, (high - low) / 2
    interval = watch_questions((values - middle) / half, clusters, largest)
    return middle + half * interval.low, middle + half * interval.high
