"""Means and paired differences of a judge's scores, corrected by the labels that people gave to some of the questions.

A judge scores every question, people label a sample of them. The judge's mean over the unlabelled questions is corrected by its mean error on the
labelled ones (prediction-powered inference; Angelopoulos et al. 2023, Science 382, 669–674). The judge counts by ``weight``,
which makes the estimate as certain as possible (PPI++; Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453): 0 leaves the
labels alone. The standard error counts clusters, which may hold questions of both kinds, and the interval is Student's. A
judge who agrees with every label may still err: the error is never below that of one wrong cluster among the labelled ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rallebench.core.numbers import LEVEL, NOISE
from rallebench.core.report import NO_BOUNDS, Bounds
from rallebench.core.tables import ALL_EQUAL, FEWEST, TOO_FEW
from rallebench.engine.statistics import FEWEST_PAIRED, agresti_coull, t_quantile

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """Scores of one run. ``labels``, ``judged``: (n,) labels of people and scores of the judge for the labelled questions;
    ``unlabelled``: (m,) scores of the judge for the others; without any, the labels count alone.

    ``chances``: (n,) probabilities with which the labelled questions were drawn, if they differ; ``unlabelled_chances``:
    (m,) probabilities with which the others were left unlabelled. Questions count by their inverse. ``clusters``,
    ``unlabelled_clusters``: articles; by default every question is its own.
    """

    labels: Floats
    judged: Floats
    unlabelled: Floats
    chances: Floats | None = None
    unlabelled_chances: Floats | None = None
    clusters: Sequence[int | str] | None = None
    unlabelled_clusters: Sequence[int | str] | None = None

    @property
    def weights(self) -> tuple[Floats, Floats]:
        """The weights of labelled and of unlabelled questions; the mean of each is 1."""
        return _weights(self.chances, len(self.labels)), _weights(
            self.unlabelled_chances, len(self.unlabelled)
        )


@dataclass(frozen=True, slots=True)
class CorrectedEstimate:
    """A mean or difference. ``weight``: of the judge, from 0 to 1; ``independent_error``: the standard error if all questions
    were independent; ``error``: the standard error over ``clusters`` that hold a label. ``p``: of a difference of 0, else
    None. ``note``: the reason for a missing interval, or ''."""

    value: float
    low: float | None
    high: float | None
    p: float | None
    weight: float
    independent_error: float
    error: float
    freedom: float
    clusters: int
    note: str = ""


def corrected_mean(
    scores: LabelledScores, bounds: Bounds = NO_BOUNDS, weight: float | None = None
) -> CorrectedEstimate:
    """The mean with its 95 % interval, at least 2 labels. ``weight``: of the judge, by default the best one.

    Scores between two ``bounds`` have the interval of Agresti and Coull (1998) with the effective number of labels.
    """
    low, high = bounds
    reach = None if low is None or high is None else high - low
    estimate = _estimate(scores, weight, reach)
    if estimate.note or estimate.clusters < FEWEST:
        return replace(estimate, note=TOO_FEW if estimate.clusters < FEWEST else estimate.note)
    t = t_quantile(estimate.freedom, LEVEL)
    half = t * estimate.error
    ends = estimate.value - half, estimate.value + half
    if low is not None and high is not None:
        share = (estimate.value - low) / (high - low)
        if NOISE < share < 1 - NOISE:
            trials = share * (1 - share) * (high - low) ** 2 / estimate.error**2
            lower, upper = agresti_coull(share, trials, t)
            ends = low + (high - low) * lower, low + (high - low) * upper
    least = ends[0] if low is None else min(max(ends[0], low), estimate.value)
    most = ends[1] if high is None else max(min(ends[1], high), estimate.value)
    return replace(estimate, low=least, high=most)


def corrected_difference(
    first: LabelledScores, second: LabelledScores, weight: float | None = None
) -> CorrectedEstimate:
    """The mean of the second run less that of the first, over the same questions in the same order; ``first`` names their
    clusters and chances. 0 lies outside the interval if and only if p < .05."""
    from scipy import special

    gaps = replace(
        first,
        labels=second.labels - first.labels,
        judged=second.judged - first.judged,
        unlabelled=second.unlabelled - first.unlabelled,
    )
    estimate = _estimate(gaps, weight, None)
    if estimate.note or estimate.clusters < FEWEST_PAIRED:
        return replace(
            estimate, note=TOO_FEW if estimate.clusters < FEWEST_PAIRED else estimate.note
        )
    half = t_quantile(estimate.freedom, LEVEL) * estimate.error
    p = 2 * float(special.stdtr(estimate.freedom, -abs(estimate.value) / estimate.error))
    return replace(estimate, low=estimate.value - half, high=estimate.value + half, p=p)


def best_weight(scores: LabelledScores) -> float:
    """The weight of the judge that makes the variance of independent questions least (PPI++, example 6.1), cut to 0 to 1."""
    of_labelled, of_others = scores.weights
    n, m = len(of_labelled), len(of_others)
    if not m:
        return 0.0
    middle = _value(scores, 1.0)
    labels = of_labelled * (scores.labels - middle)
    judged = of_labelled * (scores.judged - middle)
    others = of_others * (scores.unlabelled - middle)
    spread = float(np.var(np.concatenate([judged, others]), ddof=1))
    if spread <= NOISE**2:
        return 0.0
    shared = float(((labels - labels.mean()) * (judged - judged.mean())).mean())
    return min(1.0, max(0.0, shared / ((1 + n / m) * spread)))


def _weights(chances: Floats | None, count: int) -> Floats:
    inverse: Floats = np.ones(count) if chances is None else 1 / np.asarray(chances, np.float64)
    return inverse / float(inverse.mean()) if count else inverse


def _value(scores: LabelledScores, weight: float) -> float:
    of_labelled, of_others = scores.weights
    errors = of_labelled * (scores.labels - weight * scores.judged)
    if not len(of_others):
        return float((of_labelled * scores.labels).mean())
    return float((of_others * weight * scores.unlabelled).mean() + errors.mean())


def _estimate(
    scores: LabelledScores, weight: float | None, reach: float | None
) -> CorrectedEstimate:
    """The estimate with its errors, still without an interval. ``reach``: the largest error of the judge, by default the
    largest distance of two scores."""
    of_labelled, of_others = scores.weights
    n, m = len(of_labelled), len(of_others)
    weight = best_weight(scores) if weight is None or not m else weight
    rest, judged = scores.labels - weight * scores.judged, weight * scores.unlabelled
    variance = float(np.var(of_labelled * rest)) / n
    independent = math.sqrt(variance + (float(np.var(of_others * judged)) / m if m else 0.0))
    names = np.concatenate(
        [cluster_names(scores.clusters, n, "l"), cluster_names(scores.unlabelled_clusters, m, "u")]
    )
    _, numbers = np.unique(names, return_inverse=True)
    total = int(numbers.max()) + 1
    labelled = cluster_part(of_labelled, rest, numbers[:n], total)
    others = cluster_part(of_others, judged, numbers[n:], total)
    if reach is None:
        reach = float(np.ptp(np.concatenate([scores.labels, scores.judged])))
    variances = [float((part.shares**2).sum()) for part in (labelled, others)]
    one_wrong = (weight * reach / (labelled.freedom + 1)) ** 2
    missing = max(0.0, one_wrong - variances[0])
    error = math.sqrt(float(((labelled.shares + others.shares) ** 2).sum()) + missing)
    return CorrectedEstimate(
        *(_value(scores, weight), None, None, None, weight, independent, error),
        welch_freedom((variances[0] + missing, labelled.freedom), (variances[1], others.freedom)),
        labelled.clusters,
        ALL_EQUAL if error <= NOISE * max(1.0, float(np.abs(scores.labels).max())) else "",
    )


@dataclass(frozen=True, slots=True)
class ClusterPart:
    """A weighted mean. ``shares``: each cluster's part of its deviation, with the correction of CR2 (Bell and McCaffrey 2002);
    ``freedom``: Kish's (1965) effective number of clusters, less one."""

    shares: Floats
    clusters: int
    freedom: float


def cluster_part(
    weights: Floats, values: Floats, numbers: NDArray[np.intp], total: int
) -> ClusterPart:
    """Return the parts of (n,) weighted values in clusters with these ``numbers`` from 0 to ``total``."""
    if not len(values):
        return ClusterPart(np.zeros(total), 0, 1.0)
    deviations = weights * (values - float((weights * values).mean()))
    sums = np.bincount(numbers, deviations, total) / len(values)
    sizes = np.bincount(numbers, weights, total) / len(values)
    clusters = int((sizes > 0).sum())
    if clusters < 2:
        return ClusterPart(np.zeros(total), clusters, 1.0)
    return ClusterPart(
        sums / np.sqrt(1 - sizes), clusters, max(1.0, float(1 / (sizes**2).sum()) - 1)
    )


def welch_freedom(*parts: tuple[float, float]) -> float:
    """Degrees of freedom of a sum (Welch 1947). ``parts``: the variance and degrees of freedom of each."""
    spread = sum(variance**2 / freedom for variance, freedom in parts)
    return max(1.0, sum(variance for variance, _ in parts) ** 2 / spread) if spread > 0 else 1.0


def cluster_names(clusters: Sequence[int | str] | None, count: int, kind: str) -> NDArray[np.str_]:
    if clusters is None:
        return np.array([f"{kind} {i}" for i in range(count)], dtype=str)
    return np.array([f"c {name}" for name in clusters], dtype=str)
