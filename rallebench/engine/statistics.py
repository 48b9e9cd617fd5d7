"""Means and mean differences of clustered questions, with 95 % intervals: the cluster is the unit, not the question.

Means: a cluster-robust variance (CR2; Bell and McCaffrey 2002) with Satterthwaite's degrees of freedom under an estimated
intra-cluster correlation (Imbens and Kolesár 2016). Metrics with two bounds use the interval of Agresti and Coull (1998)
with the effective number of questions. Differences: one sign-flip test over clusters (Fisher 1935; Canay, Romano and
Shaikh 2017) with mid-p (Lancaster 1961). The interval is the inversion of this test (Hartigan 1969), so the two never
disagree. ``docs/statistics.md`` has the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.core.numbers import LEVEL, NOISE
from rallebench.core.report import Bounds, Estimate
from rallebench.core.tables import ALL_EQUAL, FEWEST, TOO_FEW

Floats = NDArray[np.float64]
FEWEST_PAIRED = 10
"""Clusters below which a difference has no interval."""
FLIPS, MOST_FLIPS, EXACT = 10_000, 100_000, 13
AMPLE, WIDER = 50, 200
"""With G < AMPLE clusters the ends are moved 1 + (AMPLE − G) / WIDER times as far from the difference, for skewed
differences."""
AT_BOUND = 1e-6
"""Share of a metric's range within which a value counts as a bound: KILT's ROUGE-L of equal texts is 0.999999995."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean of paired differences. ``p``: two-sided, None below FEWEST_PAIRED clusters. ``corrected``: ``p`` times the
    number of comparisons (Bonferroni), at most 1; tables put Holm's in its place. ``low``..``high``: the interval,
    simultaneous with those of all comparisons at 95 %: 0 lies outside if and only if ``corrected`` < .05. ``error``: the
    standard error. ``note``: the reason for a missing interval, or ''."""

    value: float
    low: float | None
    high: float | None
    p: float | None
    corrected: float | None
    error: float
    clusters: int
    note: str


def means(
    columns: Mapping[str, Sequence[float | None]],
    clusters: Sequence[int] | None = None,
    ranges: Mapping[str, Bounds] | None = None,
) -> dict[str, Estimate]:
    """Metric → estimate. Columns have equal length, one entry per question, None = not scored.

    ``clusters``: the cluster of each question; by default each question is its own. ``ranges``: metric → (lowest, highest)
    value, None = no bound; an absent metric has no bounds.
    """
    intervals = {}
    for name, column in columns.items():
        values = np.array([np.nan if v is None else float(v) for v in column])
        scored = ~np.isnan(values)
        labels = np.arange(len(values)) if clusters is None else np.asarray(clusters)
        intervals[name] = _mean(
            values[scored], labels[scored], (ranges or {}).get(name) or (None, None)
        )
    return intervals


def _mean(values: Floats, labels: Any, bounds: Sequence[float | None]) -> Estimate:
    from scipy import special

    if not len(values):
        return Estimate(None, None, None, 0)
    mean, n = float(values.mean()), len(values)
    totals, sizes = _by_cluster(values, labels)
    if len(sizes) < FEWEST:
        return Estimate(mean, None, None, n)
    error, freedom = _error(values, totals, sizes)
    # A bound that some value exceeds must be wrong, so it is ignored.
    low, high = bounds
    low = None if low is not None and values.min() < low else low
    high = None if high is not None and values.max() > high else high
    exact = error <= NOISE * max(1.0, float(np.abs(values).max()))
    if low is None or high is None:
        if exact:
            return Estimate(mean, None, None, n)
        half = float(special.stdtrit(freedom, 1 - LEVEL / 2)) * error
        least = mean - half if low is None else max(low, mean - half)
        return Estimate(mean, least, mean + half if high is None else min(high, mean + half), n)
    share = min(1.0, max(0.0, (mean - low) / (high - low)))
    if exact and np.ptp(values) <= NOISE and AT_BOUND < share < 1 - AT_BOUND:
        # One value everywhere, not a bound, as precision@5 with one gold page: it does not vary as hits and misses do.
        return Estimate(mean, None, None, n)
    if exact:
        # Every cluster has the same mean: Clopper and Pearson 1934, with as many trials as clusters of equal size.
        ends = _clopper_pearson(share, float(sizes.sum() ** 2 / (sizes**2).sum()))
    else:
        per_trial = error**2 / (share * (1 - share) * (high - low) ** 2)
        # Few clusters hardly show how alike the questions of an article are: count them as partly equal.
        alike = max(0.0, 1 - len(sizes) / AMPLE) / 2
        per_trial = max(per_trial, (1 - alike) * per_trial + alike / len(sizes))
        ends = _agresti_coull(share, 1 / per_trial, float(special.stdtrit(freedom, 1 - LEVEL / 2)))
    wide = high - low
    return Estimate(mean, low + wide * ends[0], low + wide * ends[1], n)


def _agresti_coull(share: float, trials: float, t: float) -> tuple[float, float]:
    """Wilson's score interval, widened if the share is near 0 or 1: few articles understate their own spread there."""
    widened = trials + t * t
    middle = (share * trials + t * t / 2) / widened
    half = t * math.sqrt(middle * (1 - middle) / widened)
    return max(0.0, middle - half), min(1.0, middle + half)


def _clopper_pearson(share: float, trials: float) -> tuple[float, float]:
    from scipy import special

    hits, misses = share * trials, (1 - share) * trials
    low = 0.0 if hits <= NOISE else float(special.betaincinv(hits, misses + 1, LEVEL / 2))
    return low, 1.0 if misses <= NOISE else float(
        special.betaincinv(hits + 1, misses, 1 - LEVEL / 2)
    )


def _by_cluster(values: Floats, labels: Any) -> tuple[Floats, Floats]:
    """(sums, sizes) of the clusters, sorted, so that no result depends on the order of questions."""
    _, number = np.unique(np.asarray(labels), return_inverse=True)
    sizes = np.bincount(number).astype(np.float64)
    totals = np.bincount(number, weights=values)
    order = np.lexsort((np.round(totals, 9), sizes))
    return totals[order], sizes[order]


def _error(values: Floats, totals: Floats, sizes: Floats) -> tuple[float, float]:
    """(CR2 standard error of the mean, degrees of freedom); at least two clusters."""
    n = sizes.sum()
    mean = totals.sum() / n
    share = sizes / n
    residuals = totals - mean * sizes
    variance = float((residuals**2 / (1 - share)).sum() / n**2)
    squares = float(((values - mean) ** 2).sum())
    pairs = float((sizes * (sizes - 1)).sum())
    rho = 0.0
    if pairs and squares > 0:
        rho = min(1.0, max(0.0, (float((residuals**2).sum()) - squares) / pairs / (squares / n)))
    return math.sqrt(variance), _freedom(np.asarray(sizes), rho)


def _freedom(sizes: Floats, rho: float) -> float:
    """Satterthwaite's degrees of freedom of the CR2 variance of a mean under an equal intra-cluster correlation ``rho``.

    The variance is a quadratic form with the matrix diag(d) + a·u·uᵀ + b·(w·uᵀ + u·wᵀ); only traces of it are needed,
    so no matrix of clusters × clusters is made. With equal sizes it is the number of clusters less one.
    """
    n = sizes.sum()
    q = sizes / n
    u = q / (1 - q) ** 0.5
    w = u * q
    d = ((1 - rho) * n * q + rho * n * n * q * q) / (1 - q)
    a = rho * n * n * float(q @ q) - (1 - rho) * n
    b = -rho * n * n
    uu, uw, ww = float(u @ u), float(u @ w), float(w @ w)
    trace = float(d.sum()) + a * uu + 2 * b * uw
    squared = float(d @ d) + 2 * (a * float(d @ (u * u)) + 2 * b * float(d @ (u * w)))
    squared += a * a * uu * uu + 4 * a * b * uu * uw + 2 * b * b * (uu * ww + uw * uw)
    return float(max(1.0, trace * trace / squared))


# differences


def difference(
    gaps: Floats, clusters: Sequence[int | str] | None = None, comparisons: int = 1, seed: int = 0
) -> Difference:
    """The mean of (n,) paired differences, n ≥ 1; ``clusters`` as for ``means``; ``comparisons``: number of comparisons in
    the table."""
    labels = np.arange(len(gaps)) if clusters is None else clusters
    totals, sizes = _by_cluster(gaps, labels)
    mean, count = float(totals.sum() / sizes.sum()), len(sizes)
    error = _error(gaps, totals, sizes)[0] if count > 1 else 0.0
    if count < FEWEST_PAIRED:
        return Difference(mean, None, None, None, None, error, count, TOO_FEW)
    if mean < 0:
        # If both runs change places, the flips are the same, so the result only changes its sign.
        other = difference(-gaps, clusters, comparisons, seed)
        low = None if other.high is None else -other.high
        high = None if other.low is None else -other.low
        return Difference(mean, low, high, other.p, other.corrected, error, count, other.note)
    scale = float(np.abs(totals / sizes).max())
    if scale <= NOISE or mean <= NOISE * scale:
        mean = 0.0
    below, above, total = _flipped_means(totals, sizes, scale or 1.0, comparisons, seed)
    wide = widening(count)
    p = min(1.0, _mass(below, mean - mean / wide, total)) if mean else 1.0
    corrected = min(1.0, comparisons * p)
    spread = np.ptp(gaps)
    if spread <= NOISE * max(1.0, float(np.abs(gaps).max())) or error <= NOISE * scale:
        return Difference(mean, None, None, p, corrected, error, count, ALL_EQUAL)
    if LEVEL / comparisons * total <= 1:
        return Difference(mean, None, None, p, corrected, error, count, TOO_FEW)
    low = mean - wide * (mean - _end(below, LEVEL / comparisons, total))
    high = mean + wide * (-_end(-above, LEVEL / comparisons, total) - mean)
    # Both are one function read in two ways; only the last bit can differ.
    low = min(low, 0.0) if corrected >= LEVEL else max(low, math.ulp(0.0))
    return Difference(mean, low, high, p, corrected, error, count, "")


def widening(clusters: int) -> float:
    """The factor by which few clusters move the ends of an interval away from the difference."""
    return 1 + max(0, AMPLE - clusters) / WIDER


def _flipped_means(
    totals: Floats, sizes: Floats, scale: float, comparisons: int, seed: int
) -> tuple[Floats, Floats, int]:
    """For every flip of the clusters' signs, the lower and the higher of two means: of the clusters with + and with −.

    A shift by δ makes a flip at least as extreme as the observation exactly if δ lies between the two means. Up to EXACT
    clusters all flips are used, beyond that random ones. Returned with their number, unchanged signs included.
    """
    count = len(sizes)
    if count <= EXACT:
        numbers = np.arange(1, 2 ** (count - 1)) << (16 - count)
        flips = numbers.astype(">u2").view(np.uint8).reshape(-1, 2)
    else:
        flips = _random_bits(count, min(MOST_FLIPS, max(FLIPS, 200 * comparisons)), seed)
    plus, members = _sums_of_flips(totals, sizes, flips)
    mixed = (members > 0) & (members < sizes.sum())
    plus, members = plus[mixed], members[mixed]
    pair = np.stack([plus / members, (totals.sum() - plus) / (sizes.sum() - members)])
    pair = np.round(pair / scale, 11) * scale
    return np.sort(pair.min(axis=0)), np.sort(pair.max(axis=0)), len(plus) + 1


def _sums_of_flips(totals: Floats, sizes: Floats, flips: Any) -> tuple[Floats, Floats]:
    """For every flip, (flips, bytes) with a bit for each cluster, the sums of ``totals`` and ``sizes`` over its set bits.

    Eight clusters have 256 sums. Looking them up by byte is far faster than a product over every bit.
    """
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.complex128)
    # A cluster is one complex number: its total is the real part, its size the imaginary one.
    pairs = np.zeros(8 * flips.shape[1], dtype=np.complex128)
    pairs[: len(totals)] = totals + 1j * sizes
    sums = np.zeros(len(flips), dtype=np.complex128)
    for eight, column in zip(pairs.reshape(-1, 8), np.ascontiguousarray(flips.T)):
        sums += (bits @ eight)[column]
    return sums.real, sums.imag


@lru_cache(maxsize=1)
def _random_bits(count: int, flips: int, seed: int) -> Any:
    """(flips, count / 8 rounded up) bytes, a bit for every cluster. Cached, because a table has many comparisons over the
    same articles."""
    return np.random.default_rng(seed).integers(0, 256, (flips, -(-count // 8)), dtype=np.uint8)


def _steps(ends: Floats, total: int) -> tuple[Floats, Floats]:
    """(distinct ends, mid-p at each): the count below, half of the count at the end, and the unchanged signs, over all."""
    places, counts = np.unique(ends, return_counts=True)
    return places, (1 + np.cumsum(counts) - counts / 2) / total


def _mass(ends: Floats, at: float, total: int) -> float:
    """p of a true difference ``at`` below the observed one; linear between the steps."""
    places, mass = _steps(ends, total)
    return float(np.interp(at, places, mass, left=1 / total))


def _end(ends: Floats, level: float, total: int) -> float:
    """The difference at which p is ``level``."""
    places, mass = _steps(ends, total)
    return float(np.interp(level, mass, places))
