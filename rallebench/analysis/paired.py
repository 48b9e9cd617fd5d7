"""Compare two runs of one dataset question by question, and test whether the difference is more than chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from rallebench.core.comparison import PairedComparison
from rallebench.core.numbers import NOISE
from rallebench.engine.statistics import AMPLE, FEWEST_PAIRED, Difference, widening
from rallebench.engine.statistics import difference as difference_of
from rallebench.metrics import METRICS

Z_95, Z_POWER_80 = 1.959964, 0.841621
Key = TypeVar("Key")

Bounds = Mapping[str, "tuple[float | None, float | None]"]
"""Unregistered metric → its (lowest, highest) value; None means unbounded."""
Scores = Mapping[str, "float | None"]
"""Question id → score; None or NaN means not scored."""


def compare(
    metric: str,
    a: Scores,
    b: Scores,
    *,
    higher_is_better: bool = True,
    clusters: Mapping[str, int | str] | None = None,
    comparisons: int = 1,
    bounds: Bounds | None = None,
) -> PairedComparison:
    """Compare two runs, each given as question id → score. Questions without a score in either run are left out.

    NaN counts as not scored. ``wins`` follow ``higher_is_better``; the difference keeps its sign. ``clusters``:
    question id → cluster; by default every question is its own cluster. ``comparisons``: the number of comparisons in
    the table. ``bounds``: ranges of a suite's own metrics, to which intervals are clipped.
    """
    import numpy as np

    common = shared_scores(a, b)
    if not common:
        return PairedComparison(
            metric, 0, None, None, None, None, None, None, 0, 0, 0, (), (), None
        )
    left, right = (np.array([scores[qid] for qid in common], dtype=np.float64) for scores in (a, b))
    gaps = np.where(np.isclose(left, right, rtol=NOISE, atol=NOISE), 0.0, right - left)
    better = gaps if higher_is_better else -gaps
    pair = difference_of(
        gaps, None if clusters is None else [clusters[qid] for qid in common], comparisons
    )
    low, high = _bound_interval(metric, pair, bounds)
    return PairedComparison(
        metric=metric,
        n=len(common),
        a=float(left.mean()),
        b=float(right.mean()),
        difference=float(gaps.mean()),
        low=low,
        high=high,
        p=pair.p,
        wins=int((better > 0).sum()),
        ties=int((better == 0).sum()),
        losses=int((better < 0).sum()),
        gained=tuple(qid for qid, gap in zip(common, better) if gap > 0),
        lost=tuple(qid for qid, gap in zip(common, better) if gap < 0),
        needed=questions_needed(pair, len(common)),
        corrected=pair.corrected,
        comparisons=comparisons,
        clusters=pair.clusters,
        note=pair.note,
    )


def with_holm(pairs: Sequence[PairedComparison]) -> list[PairedComparison]:
    """Return the comparisons of one table, with Holm's step-down p (Holm 1979) as ``corrected``.

    Holm's p is never above Bonferroni's. Intervals at 1 − .05 / comparisons hold together at 95 % (Bonferroni): if
    such an interval excludes 0, ``corrected`` is below .05. The converse does not hold: the test may find a
    difference whose interval includes 0, because no finite simultaneous intervals match Holm's decisions exactly
    (Strassburger and Bretz 2008). A pair without p still counts as a comparison.
    """
    order = sorted(
        (i for i, pair in enumerate(pairs) if pair.p is not None), key=lambda i: pairs[i].p or 0.0
    )
    adjusted, highest = list(pairs), 0.0
    for step, i in enumerate(order):
        highest = max(highest, min(1.0, (len(pairs) - step) * (pairs[i].p or 0.0)))
        adjusted[i] = replace(pairs[i], corrected=highest)
    return adjusted


Sides = tuple[str, Scores, Scores, Mapping[str, "int | str"]]
"""A metric, the scores of runs A and B, and question id → cluster."""


def compare_all(
    sides: Mapping[Key, Sides], bounds: Bounds | None = None
) -> dict[Key, PairedComparison]:
    """Compare all pairs of one table, corrected for their number; pairs without a common question are left out.

    ``bounds``: see ``compare``.
    """
    common = {key: side for key, side in sides.items() if shared_scores(side[1], side[2])}
    pairs = [
        compare(metric, a, b, clusters=clusters, comparisons=len(common), bounds=bounds)
        for metric, a, b, clusters in common.values()
    ]
    return dict(zip(common, with_holm(pairs)))


def _bound_interval(
    metric: str, pair: Difference, bounds: Bounds | None
) -> tuple[float | None, float | None]:
    """Return the interval of a difference, clipped to the metric's range."""
    low, high = (bounds or {}).get(metric) or (
        METRICS.entry(metric).traits.get("range", (None, None))
        if metric in METRICS
        else (None, None)
    )
    if pair.low is None or pair.high is None or low is None or high is None:
        return pair.low, pair.high
    return max(pair.low, low - high), min(pair.high, high - low)


def shared_scores(a: Scores, b: Scores) -> list[str]:
    """Return the questions that both have scored, in the order of ``a``."""
    return [qid for qid in a if is_scored(a[qid]) and is_scored(b.get(qid))]


def is_scored(value: float | None) -> bool:
    """Return whether a score is a number, not None or NaN."""
    return value is not None and not math.isnan(value)


def questions_needed(pair: Difference, n: int) -> int | None:
    """Return the number of questions, with articles of the same size, at which this difference would be significant
    with 80 % power.

    At least FEWEST_PAIRED articles are needed, because fewer are never significant. None if the difference is 0 or
    has no standard error; see ``has_power``.
    """
    if not pair.value or pair.error <= NOISE * abs(pair.value):
        return None
    ratio = pair.error * math.sqrt(pair.clusters) / abs(pair.value)
    few = next((g for g in range(FEWEST_PAIRED, AMPLE) if has_power(ratio, g)), None)
    # With AMPLE articles or more, intervals are not widened. The mean adds to the spread, which costs z² articles.
    many = math.ceil((ratio * (Z_95 + Z_POWER_80)) ** 2 + Z_95**2)
    return math.ceil(n * (few or max(AMPLE, many)) / pair.clusters)


def has_power(ratio: float, articles: int) -> bool:
    """Return whether this number of articles shows a difference with 80 % power. ``ratio``: the standard deviation
    of the articles' differences, divided by the difference.

    The sign-flip test over G articles with standard deviation s rejects if the mean exceeds ``widening(G)`` · 1.96 ·
    s / √(G − 1.96²), because the spread includes the mean itself (Pitman 1937, J. R. Stat. Soc. Suppl. 4, 119–130).
    In one of five samples the mean is more than .84 · s / √G below its expectation.

    >>> has_power(2.9, 60), has_power(2.9, 75)
    (False, True)
    """
    if articles < FEWEST_PAIRED:
        return False
    critical = widening(articles) * Z_95 / math.sqrt(articles - Z_95**2)
    return ratio * (critical + Z_POWER_80 / math.sqrt(articles)) <= 1
