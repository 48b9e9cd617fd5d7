"""Compare two runs of one dataset question by question, and test whether the difference is more than chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from rallebench.analysis.power import questions_needed
from rallebench.core.comparison import PairedComparison
from rallebench.core.numbers import LEVEL, NOISE
from rallebench.core.report import NO_BOUNDS
from rallebench.core.report import Bounds as Range
from rallebench.engine.statistics import difference as difference_of
from rallebench.engine.statistics import watched_difference
from rallebench.metrics import METRICS

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
    level: float = LEVEL,
    largest: int | None = None,
) -> PairedComparison:
    """Compare two runs, each given as question id → score. Questions without a score in either run are left out.

    NaN counts as not scored. ``wins`` follow ``higher_is_better``; the difference keeps its sign. ``clusters``:
    question id → cluster; by default every question is its own cluster. ``comparisons``: the number of comparisons in
    the table. ``bounds``: ranges of a suite's own metrics, to which intervals are clipped. ``level``:
    1 − the confidence of the interval. ``largest``: the questions of the dataset's largest article, if a run ended when it
    was decided; the interval is then anytime-valid, and there is no p.
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
    labels = None if clusters is None else [clusters[qid] for qid in common]
    limits = _range(metric, bounds)
    pair = (
        difference_of(gaps, labels, comparisons, limits, level)
        if largest is None
        else watched_difference(gaps, labels, comparisons, limits, level, largest)
    )
    return PairedComparison(
        metric=metric,
        n=len(common),
        a=float(left.mean()),
        b=float(right.mean()),
        difference=float(gaps.mean()),
        low=pair.low,
        high=pair.high,
        p=pair.p,
        wins=int((better > 0).sum()),
        ties=int((better == 0).sum()),
        losses=int((better < 0).sum()),
        gained=tuple(qid for qid, gap in zip(common, better) if gap > 0),
        lost=tuple(qid for qid, gap in zip(common, better) if gap < 0),
        needed=questions_needed(pair, len(common)) if largest is None else None,
        corrected=pair.corrected,
        comparisons=comparisons,
        clusters=pair.clusters,
        note=pair.note,
        standard_error=pair.error,
        watched=largest is not None,
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


def _range(metric: str, bounds: Bounds | None) -> Range:
    """Return the (lowest, highest) value of a metric; None: no bound."""
    registered = METRICS.entry(metric).traits.get("range") if metric in METRICS else None
    return (bounds or {}).get(metric) or registered or NO_BOUNDS


def shared_scores(a: Scores, b: Scores) -> list[str]:
    """Return the questions that both have scored, in the order of ``a``."""
    return [qid for qid in a if is_scored(a[qid]) and is_scored(b.get(qid))]


def is_scored(value: float | None) -> bool:
    """Return whether a score is a number, not None or NaN."""
    return value is not None and not math.isnan(value)
