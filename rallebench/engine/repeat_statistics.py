"""The spread of a metric over the repeats of a run: two variances, unstable questions, pass@k and pass^k.

pass@k is the unbiased estimate of Chen et al. (arXiv:2107.03374), pass^k that of Yao et al. (arXiv:2406.12045).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rallebench.core.numbers import NOISE
from rallebench.core.repeats import MetricRepeats


def metric_repeats(scores: Sequence[Sequence[float]], threshold: float | None) -> MetricRepeats:
    """Summarise a metric. ``scores``: of each question, its scores in the repeats; questions with one score are left out.
    ``threshold``: the score from which an answer passes; None: 1 if all scores are 0 or 1, otherwise none.

    The variances belong to a one-way random effects model, estimated by the analysis of variance; a negative estimate
    is 0.

    >>> spread = metric_repeats([[1, 1, 0], [0, 0, 0], [1, 1, 1]], None)
    >>> [round(share, 2) for share in (*spread.pass_at, *spread.pass_all, spread.unstable)]
    [0.56, 0.67, 0.67, 0.56, 0.44, 0.33, 0.33]
    """
    rows = [row for row in scores if len(row) > 1]
    if not rows:
        return MetricRepeats(0, None, None, None)
    if threshold is None and all(value in (0, 1) for row in rows for value in row):
        threshold = 1.0
    between, within = _variances(rows)
    unstable = sum(max(row) - min(row) > NOISE for row in rows) / len(rows)
    at: list[float] = []
    every: list[float] = []
    for k in range(1, max(map(len, rows)) + 1) if threshold is not None else ():
        counts = [(len(row), _passes(row, threshold)) for row in rows if len(row) >= k]
        at.append(_mean([1 - math.comb(n - c, k) / math.comb(n, k) for n, c in counts]))
        every.append(_mean([math.comb(c, k) / math.comb(n, k) for n, c in counts]))
    return MetricRepeats(len(rows), between, within, unstable, tuple(at), tuple(every))


def _passes(row: Sequence[float], threshold: float | None) -> int:
    return sum(threshold is not None and value >= threshold - NOISE for value in row)


def _variances(rows: Sequence[Sequence[float]]) -> tuple[float | None, float]:
    """(variance between questions, None for one question; variance between the repeats of a question)."""
    means, total = [_mean(row) for row in rows], sum(map(len, rows))
    squares = sum((value - mean) ** 2 for row, mean in zip(rows, means) for value in row)
    within = squares / (total - len(rows))
    if len(rows) < 2:
        return None, within
    grand = sum(map(sum, rows)) / total
    among = sum(len(row) * (mean - grand) ** 2 for row, mean in zip(rows, means)) / (len(rows) - 1)
    size = (total - sum(len(row) ** 2 for row in rows) / total) / (len(rows) - 1)
    return max(0.0, (among - within) / size), within


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
