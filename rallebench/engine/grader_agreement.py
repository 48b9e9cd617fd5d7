"""Agreement of a grader with people's labels, and the labels that would narrow a corrected interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rallebench.core.numbers import LEVEL, NOISE
from rallebench.core.run_results import MetricEstimate
from rallebench.core.tables import TOO_FEW
from rallebench.engine.label_corrected import LabelledScores
from rallebench.engine.statistics import FEWEST_PAIRED, t_quantile

Floats = NDArray[np.float64]

KAPPA = "kappa"
EQUAL_LABELS, EQUAL_SCORES = "all labels are equal", "all scores are equal"
AGREED = "all or all but one article agree: no interval"


def weighted_kappa(
    labels: Floats, scores: Floats, weights: Floats, clusters: Sequence[int | str]
) -> MetricEstimate:
    """Cohen's weighted kappa (1968) with squared distances, as (n,) numbers on one scale, with its 95 % interval.

    With these weights only the distances of values count, so kappa is defined for graded scores, too, and equals Lin's
    concordance (1989). The interval is that of a jackknife over articles on Fisher's scale, with Student's quantile.
    """
    for values, why in ((labels, EQUAL_LABELS), (scores, EQUAL_SCORES)):
        if np.ptp(values) <= NOISE:
            return MetricEstimate(KAPPA, None, n=len(labels), note=why)
    _, numbers = np.unique(np.asarray(clusters), return_inverse=True)
    count = int(numbers.max()) + 1
    products = (np.ones_like(labels), labels, scores, labels**2, scores**2, labels * scores)
    sums = np.array([np.bincount(numbers, weights * x, count) for x in products])
    total = sums.sum(axis=1)
    value = float(_kappa(total))
    if count < FEWEST_PAIRED:
        return MetricEstimate(KAPPA, value, n=len(labels), units=count, note=TOO_FEW)
    without = _kappa(total[:, None] - sums)
    if not (np.abs([value, *without]) < 1 - NOISE).all():  # also if one of them is not a number
        return MetricEstimate(KAPPA, value, n=len(labels), units=count, note=AGREED)
    places = np.arctanh(without)
    error = math.sqrt((count - 1) / count * float(((places - places.mean()) ** 2).sum()))
    freedom = max(1.0, float(total[0] ** 2 / (sums[0] ** 2).sum()) - 1)
    half = t_quantile(freedom, LEVEL) * error
    low, high = (math.tanh(math.atanh(value) + side * half) for side in (-1, 1))
    return MetricEstimate(KAPPA, value, low, high, len(labels), units=count)


def _kappa(sums: Floats) -> Floats:
    """Kappa from the weighted sums of 1, x, y, x², y², xy; NaN if it is not defined."""
    _, x, y, xx, yy, xy = sums / np.where(sums[0] > 0, sums[0], np.nan)
    by_chance = xx + yy - 2 * x * y
    kappa: Floats = 1 - (xx + yy - 2 * xy) / np.where(by_chance > NOISE, by_chance, np.nan)
    return kappa


def labels_to_halve(scores: LabelledScores, *, alone: bool) -> int | None:
    """The number of labels with which the interval would be half as wide, if further ones are like those so far; None if
    there are not as many answers. ``alone``: the labels count without the grader.

    With n of N answers labelled, the variance of a mean with the best weight is proportional to (1 − r²) / n + r² / N, where r
    is the correlation of labels and scores (0 for labels alone): labels cannot replace answers.
    """
    n, every = len(scores.labels), len(scores.labels) + len(scores.unlabelled)
    shared = 0.0 if alone else _correlation(scores) ** 2
    share = (1 - shared) / (4 * n) - 3 * shared / (4 * every)
    if share <= 0:
        return None
    needed = math.ceil((1 - shared) / share - NOISE)
    return needed if needed <= every else None


def _correlation(scores: LabelledScores) -> float:
    """The weighted correlation of labels and scores; 0 if it is negative or not defined."""
    weights, _ = scores.weights
    covariance = np.cov(scores.labels, scores.judged, aweights=weights)
    spread = math.sqrt(float(covariance[0, 0] * covariance[1, 1]))
    return max(0.0, float(covariance[0, 1]) / spread) if spread > NOISE**2 else 0.0
