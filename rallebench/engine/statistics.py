"""Means and mean differences of clustered questions, with 95 % intervals: the cluster is the unit, not the question.

Everything starts from a cluster-robust variance (CR2; Bell and McCaffrey 2002) with Satterthwaite's degrees of freedom under
an estimated intra-cluster correlation (Imbens and Kolesár 2016). Means with two bounds use the interval of Agresti and Coull
(1998) with the effective number of questions; means with one bound are skewed, and use the wider of a t interval of the
logarithm and Hall's interval (1992). Differences: Student's t, or the skewness-corrected t of Hall where that is less sure.
The interval holds the differences that this test does not reject, so the two never disagree. Single questions that are right
or wrong have exact methods (``exact``). ``docs/statistics.md`` has the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.core.deciding import UNBOUNDED
from rallebench.core.numbers import LEVEL, NOISE
from rallebench.core.report import NO_BOUNDS, Bounds, Estimate
from rallebench.core.tables import ALL_EQUAL, FEWEST, ONE_SIDED, TOO_FEW
from rallebench.engine.exact import clopper_pearson, mcnemar_interval, mcnemar_p
from rallebench.engine.sequential import watch_questions, watched_mean

Floats = NDArray[np.float64]
FEWEST_PAIRED = 10
"""Clusters below which a difference has no interval."""
FEWEST_ON_A_SIDE, MANY_TIES, FARTHER = 5, 1 / 3, 2
"""Fewer clusters on the rarer side do not show how far differences reach there, if graded differences have at least this
share of tied clusters, or the few reach this many times as far as those on the other side."""
FEWEST_ANSWERS = 4
"""Sum of graded scores, as distances from the nearer bound, below which they count like right or wrong ones."""
AT_BOUND = 1e-6
"""Share of a metric's range within which a value counts as a bound: KILT's ROUGE-L of equal texts is 0.999999995."""
SHARE: Bounds = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean of paired differences. ``p``: two-sided, None below FEWEST_PAIRED clusters. ``corrected``: ``p`` times the
    number of comparisons (Bonferroni), at most 1; tables put Holm's in its place. ``low``..``high``: the interval,
    simultaneous with those of all comparisons at 1 − ``level``: 0 lies outside if and only if ``corrected`` is below it.
    ``error``: the standard error, with its degrees of ``freedom``. ``note``: the reason for a missing interval, or ''. ``changed``: the
    questions that are won and lost, if the test is McNemar's."""

    value: float
    low: float | None
    high: float | None
    p: float | None
    corrected: float | None
    error: float
    clusters: int
    note: str
    freedom: float = 1.0
    changed: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Moments:
    """A mean over clusters. ``error``: CR2; ``jackknife``: CR3, which few skewed clusters need; ``skewness``: of the mean,
    its third moment over the cube of its error; ``noise``: the error of that skewness if differences were symmetric;
    ``independent``: the number of independent questions that say as much (Kish 1965)."""

    mean: float
    error: float
    jackknife: float
    freedom: float
    skewness: float
    noise: float
    independent: float


def means(
    columns: Mapping[str, Sequence[float | None]],
    clusters: Sequence[int] | None = None,
    ranges: Mapping[str, Bounds] | None = None,
    largest: int | None = None,
) -> dict[str, Estimate]:
    """Metric → estimate. Columns have equal length, one entry per question, None = not scored.

    ``clusters``: the cluster of each question; by default each question is its own. ``ranges``: metric → (lowest, highest)
    value, None = no bound; an absent metric has no bounds, or 0 if no value is below. ``largest``: the questions of the
    largest article of the dataset, for a run that ended when it was decided: its intervals hold whenever one stops.
    """
    intervals = {}
    for name, column in columns.items():
        values = np.array([np.nan if v is None else float(v) for v in column])
        scored = ~np.isnan(values)
        labels = np.arange(len(values)) if clusters is None else np.asarray(clusters)
        bounds = (ranges or {}).get(name) or NO_BOUNDS
        intervals[name] = (
            _mean(values[scored], labels[scored], bounds)
            if largest is None
            else _watch_mean(values[scored], labels[scored], bounds, largest)
        )
    return intervals


def _watch_mean(values: Floats, labels: Any, bounds: Bounds, largest: int) -> Estimate:
    """A mean that may be looked at after every article; without two bounds it has no interval."""
    low, high = bounds
    mean = float(values.mean()) if len(values) else None
    if low is None or high is None or not len(values) or values.min() < low or values.max() > high:
        return Estimate(mean, None, None, len(values))
    least, most = watched_mean(values, labels, (low, high), largest)
    return Estimate(mean, least, most, len(values))


def _mean(values: Floats, labels: Any, bounds: Bounds) -> Estimate:
    if not len(values):
        return Estimate(None, None, None, 0)
    mean, n = float(values.mean()), len(values)
    totals, sizes = _by_cluster(values, labels)
    if len(sizes) < FEWEST:
        return Estimate(mean, None, None, n)
    moments = _moments(values, totals, sizes)
    # A bound that some value exceeds must be wrong, so it is ignored.
    low, high = bounds
    low = None if low is not None and values.min() < low else low
    high = None if high is not None and values.max() > high else high
    if low is not None and high is not None:
        ends = _between(values, sizes, moments, low, high)
        least, most = ends or (None, None)
        return Estimate(mean, least, most, n)
    if moments.error <= NOISE * max(1.0, float(np.abs(values).max())):
        return Estimate(mean, None, None, n)
    if low is None and high is None and values.min() >= 0:
        low = 0.0  # Amounts, as tokens are; values of either sign would show some below 0.
    if low is not None:
        least, most = _above(low, moments, len(sizes))
        return Estimate(mean, least, most, n)
    if high is not None:
        # An upper bound is a lower one of the mirrored values.
        mirrored = _moments(-values, -totals, sizes)
        least, most = _above(-high, mirrored, len(sizes))
        return Estimate(mean, -most, -least, n)
    return Estimate(mean, *_ends(moments, LEVEL), n)


def _between(
    values: Floats, sizes: Floats, moments: _Moments, low: float, high: float
) -> tuple[float, float] | None:
    """The interval of a mean of values between two bounds."""
    wide = high - low
    share = min(1.0, max(0.0, (moments.mean - low) / wide))
    places = (values - low) / wide
    exact = moments.error <= NOISE * max(1.0, float(np.abs(values).max()))
    if exact and np.ptp(values) <= NOISE and AT_BOUND < share < 1 - AT_BOUND:
        # One value everywhere, not a bound, as precision@5 with one gold page: it does not vary as hits and misses do.
        return None
    whole = bool((np.minimum(places, 1 - places) <= AT_BOUND).all())
    if whole and len(sizes) == len(values):
        ends = clopper_pearson(float(np.round(places).mean()), len(values))
    elif exact:
        # Every cluster has the same mean: as many trials as clusters of equal size (Kish 1965).
        ends = clopper_pearson(share, float(sizes.sum() ** 2 / (sizes**2).sum()))
    else:
        trials = share * (1 - share) * wide**2 / moments.error**2
        if not whole and min(share, 1 - share) * moments.independent < FEWEST_ANSWERS:
            # Graded scores near a bound may all look alike, while a rare one at the other bound is missing by chance.
            trials = min(trials, moments.independent)
        ends = agresti_coull(share, trials, t_quantile(moments.freedom, LEVEL))
    return low + wide * ends[0], low + wide * ends[1]


def agresti_coull(share: float, trials: float, t: float) -> tuple[float, float]:
    """Wilson's score interval, widened if the share is near 0 or 1: few articles understate their own spread there."""
    widened = trials + t * t
    middle = (share * trials + t * t / 2) / widened
    half = t * math.sqrt(middle * (1 - middle) / widened)
    return max(0.0, middle - half), min(1.0, middle + half)


def _above(bound: float, moments: _Moments, clusters: int) -> tuple[float, float]:
    """The interval of a mean of values above a bound, as seconds are above 0, which no interval of a logarithm reaches.

    A long tail shows in few samples: the upper end is at least that of Hall's interval, with the sample skewness of Joanes
    and Gill (1998), and the variance is that of the jackknife.
    """
    distance, t = moments.mean - bound, t_quantile(moments.freedom, LEVEL)
    factor = math.exp(min(t * moments.jackknife / distance, math.log(np.finfo(float).max) / 2))
    skewness = max(0.0, moments.skewness) * math.sqrt(clusters * (clusters - 1)) / (clusters - 2)
    hall = moments.mean - moments.jackknife * _hall_inverse(-t, skewness)
    return bound + distance / factor, max(bound + distance * factor, hall)


def _by_cluster(values: Floats, labels: Any) -> tuple[Floats, Floats]:
    """(sums, sizes) of the clusters, sorted, so that no result depends on the order of questions."""
    _, number = np.unique(np.asarray(labels), return_inverse=True)
    sizes = np.bincount(number).astype(np.float64)
    totals = np.bincount(number, weights=values)
    order = np.lexsort((np.round(totals, 9), sizes))
    return totals[order], sizes[order]


def _moments(values: Floats, totals: Floats, sizes: Floats) -> _Moments:
    """The moments of the mean; at least two clusters."""
    n = sizes.sum()
    mean = totals.sum() / n
    rest = 1 - sizes / n
    residuals = totals - mean * sizes
    squares = float(((np.sort(values) - mean) ** 2).sum())
    pairs = float((sizes * (sizes - 1)).sum())
    rho = 0.0
    if pairs and squares > 0:
        rho = min(1.0, max(0.0, (float((residuals**2).sum()) - squares) / pairs / (squares / n)))
    scaled = residuals / rest**0.5
    second, third = float((scaled**2).sum()), float((scaled**3).sum())
    cubed = second**1.5 or 1.0
    return _Moments(
        mean=float(mean),
        error=math.sqrt(second) / n,
        jackknife=math.sqrt(float(((residuals / rest) ** 2).sum())) / n,
        freedom=_freedom(np.asarray(sizes), rho),
        skewness=third / cubed,
        noise=math.sqrt(float((scaled**6).sum())) / cubed,
        independent=float(n / (1 + rho * (float((sizes**2).sum()) / n - 1))),
    )


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
    gaps: Floats,
    clusters: Sequence[int | str] | None = None,
    comparisons: int = 1,
    bounds: Bounds = SHARE,
    level: float = LEVEL,
) -> Difference:
    """The mean of (n,) paired differences, n ≥ 1; ``clusters`` as for ``means``; ``comparisons``: number of comparisons in
    the table; ``bounds``: the (lowest, highest) value of the metric, which limit the interval; ``level``: 1 − the confidence of
    the interval."""
    labels = np.arange(len(gaps)) if clusters is None else clusters
    totals, sizes = _by_cluster(gaps, labels)
    count = len(sizes)
    if count < FEWEST_PAIRED:
        mean = float(totals.sum() / sizes.sum())
        error = _moments(gaps, totals, sizes).error if count > 1 else 0.0
        return Difference(mean, None, None, None, None, error, count, TOO_FEW)
    moments = _moments(gaps, totals, sizes)
    if moments.mean < -NOISE * float(np.abs(gaps).max()):
        # If both runs change places, the result only changes its sign.
        other = difference(-gaps, clusters, comparisons, bounds, level)
        low = None if other.high is None else -other.high
        high = None if other.low is None else -other.low
        changed = other.changed and (other.changed[1], other.changed[0])
        return replace(other, value=-other.value, low=low, high=high, changed=changed)
    largest = float(np.abs(gaps).max())
    mean = 0.0 if moments.mean <= NOISE * largest else moments.mean
    empty = Difference(mean, None, None, None, None, moments.error, count, "", moments.freedom)
    if np.ptp(gaps) <= NOISE * max(1.0, largest) or moments.error <= NOISE * largest:
        p = 2.0 ** (1 - count) if mean else 1.0
        return replace(empty, p=p, corrected=min(1.0, comparisons * p), note=ALL_EQUAL)
    limit = _largest_difference(bounds, largest)
    whole = limit is not None and bool(
        np.isclose(np.abs(gaps[np.abs(gaps) > NOISE]), limit, rtol=AT_BOUND).all()
    )
    if limit is not None and whole and count == len(gaps):
        wins, losses = int((gaps > NOISE).sum()), int((gaps < -NOISE).sum())
        p, ends = (
            mcnemar_p(wins, losses),
            mcnemar_interval(wins, losses, count, level / comparisons),
        )
        low, high = limit * ends[0], limit * ends[1]
        empty = replace(empty, changed=(wins, losses))
    elif _is_one_sided(totals / sizes, graded=not whole):
        return replace(empty, note=ONE_SIDED)
    else:
        p = _p(moments) if mean else 1.0
        low, high = _ends(moments, level / comparisons)
    corrected = min(1.0, comparisons * p)
    # Both are one function read in two ways; only the last bit can differ.
    low = min(low, 0.0) if corrected >= level else max(low, math.ulp(0.0))
    if limit is not None:
        low, high = max(low, -limit), min(high, limit)
    return replace(empty, low=low, high=high, p=p, corrected=corrected)


def watched_difference(
    gaps: Floats,
    clusters: Sequence[int | str] | None,
    comparisons: int,
    bounds: Bounds,
    level: float,
    largest: int,
) -> Difference:
    """The mean of paired differences of a run that ended when it was decided: its interval holds whenever one stops, and it
    has no p. ``largest``: the questions of the dataset's largest article."""
    labels = np.arange(len(gaps)) if clusters is None else clusters
    spread = _largest_difference(bounds, float(np.abs(gaps).max()))
    if spread is None:
        count = len(_by_cluster(gaps, labels)[1])
        return Difference(float(gaps.mean()), None, None, None, None, 0.0, count, UNBOUNDED)
    interval = watch_questions(gaps, [*labels], largest, spread, level / comparisons)
    mean = float(gaps.mean())
    return Difference(mean, interval.low, interval.high, None, None, 0.0, interval.articles, "")


def _largest_difference(bounds: Bounds, largest: float) -> float | None:
    """The largest possible difference; None without two bounds. A bound that some value exceeds must be wrong."""
    low, high = bounds
    if low is None or high is None or largest > (high - low) * (1 + AT_BOUND):
        return None
    return high - low


def _is_one_sided(averages: Floats, *, graded: bool) -> bool:
    """Return whether so few clusters lie on the rarer side that rare large differences may be missing by chance."""
    least = NOISE * float(np.abs(averages).max())
    rarer, common = sorted((averages[averages > least], -averages[averages < -least]), key=len)
    if len(rarer) >= FEWEST_ON_A_SIDE:
        return False
    ties = len(averages) - len(rarer) - len(common)
    if graded and ties >= MANY_TIES * len(averages):
        return True
    return 0 < len(rarer) < len(common) and bool(rarer.max() >= FARTHER * common.max())


# Student's t, and Hall's correction for skewness


def t_quantile(freedom: float, level: float) -> float:
    """Student's two-sided quantile."""
    from scipy import special

    return float(special.stdtrit(freedom, 1 - level / 2))


def _skewness(moments: _Moments) -> float:
    """The skewness of the mean, shrunk towards 0 by its noise (James and Stein 1961): a few articles look skewed by chance,
    and a correction of chance costs power."""
    if moments.noise >= abs(moments.skewness):
        return 0.0
    return moments.skewness * (1 - (moments.noise / moments.skewness) ** 2)


def _hall(t: float, skewness: float) -> float:
    """Hall's transformation (1992, J. R. Stat. Soc. B 54, 221–228), which makes the t of skewed values nearly symmetric.

    >>> round(_hall(-2.0, 0.3), 3), round(_hall_inverse(_hall(-2.0, 0.3), 0.3), 3)
    (-1.577, -2.0)
    """
    return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6


def _hall_inverse(transformed: float, skewness: float) -> float:
    if abs(skewness) <= NOISE:
        return transformed
    return 3 / skewness * float(np.cbrt(1 + skewness * (transformed - skewness / 6)) - 1)


def _p(moments: _Moments) -> float:
    """The p of a mean of 0: the larger of Student's and of Hall's."""
    from scipy import special

    t = moments.mean / moments.error
    least = min(abs(t), abs(_hall(t, _skewness(moments))))
    return min(1.0, 2 * float(special.stdtr(moments.freedom, -least)))


def _ends(moments: _Moments, level: float) -> tuple[float, float]:
    """The interval at 1 − ``level``: the means with a p of at least ``level``."""
    t, skewness = t_quantile(moments.freedom, level), _skewness(moments)
    upper, lower = max(t, _hall_inverse(t, skewness)), min(-t, _hall_inverse(-t, skewness))
    return moments.mean - upper * moments.error, moments.mean - lower * moments.error
