"""A grader's mean or difference set against people's labels: raw, corrected, its bias, and its agreement with the labels.

Below FEWEST_CORRECTED labelled articles, and where the grader tells nothing of the other answers, the labels count alone; they
then have the interval that any metric with their values has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rallebench.core.corrections import ALL_LABELLED, FEWEST_CORRECTED, LabelCorrection
from rallebench.core.numbers import NOISE
from rallebench.core.report import Bounds
from rallebench.core.run_results import MetricEstimate
from rallebench.core.tables import ALL_EQUAL, FEWEST, TOO_FEW
from rallebench.engine.grader_agreement import (
    EQUAL_LABELS,
    labels_to_halve,
    weighted_kappa,
)
from rallebench.engine.label_corrected import (
    CorrectedEstimate,
    LabelledScores,
    corrected_difference,
    corrected_mean,
)
from rallebench.engine.statistics import SHARE, Difference, difference, means

Floats = NDArray[np.float64]

CORRECTED, BIAS = "corrected", "bias"


def correct_mean(
    raw: MetricEstimate, run: str, scores: LabelledScores, notes: Sequence[str] = ()
) -> LabelCorrection:
    """Correct the mean of a grader, named by ``raw``, in one run; at least 2 labels, scores and labels from 0 to 1."""
    reason = _reason(scores, raw.metric)
    if reason:
        corrected, weight = _mean_alone(CORRECTED, scores, SHARE), 0.0
    else:
        estimate = corrected_mean(scores, SHARE)
        corrected, weight = _estimate(CORRECTED, estimate, scores), estimate.weight
    weights, _ = scores.weights
    return LabelCorrection(
        *(raw.metric, (run,), raw, corrected, _bias(scores, 1.0)),
        weighted_kappa(scores.labels, scores.judged, weights, scores.clusters or ()),
        *(len(scores.labels), _articles(scores), weight),
        "labels alone" if reason else "corrected",
        reason,
        labels_to_halve(scores, alone=bool(reason)),
        notes=tuple(notes),
    )


def correct_difference(
    raw: MetricEstimate,
    runs: tuple[str, str],
    first: LabelledScores,
    second: LabelledScores,
    notes: Sequence[str] = (),
) -> LabelCorrection:
    """Correct the difference of two runs over the same questions in the same order, the second less the first."""
    gaps = _gaps(first, second)
    reason = _reason(gaps, raw.metric)
    weight = 0.0
    if reason and gaps.chances is None:
        alone = difference(gaps.labels, gaps.clusters)
        corrected, p = _estimate(CORRECTED, alone, gaps), alone.p
    else:
        estimate = corrected_difference(first, second, 0.0 if reason else None)
        corrected, p, weight = _estimate(CORRECTED, estimate, gaps), estimate.p, estimate.weight
    weights, _ = gaps.weights
    kappa = weighted_kappa(
        np.concatenate([first.labels, second.labels]),
        np.concatenate([first.judged, second.judged]),
        np.tile(weights, 2),
        [*(gaps.clusters or ())] * 2,
    )
    return LabelCorrection(
        *(raw.metric, runs, raw, corrected, _bias(gaps, 2.0), kappa),
        *(len(gaps.labels), _articles(gaps), weight),
        "labels alone" if reason else "corrected",
        reason,
        labels_to_halve(gaps, alone=bool(reason)),
        p,
        tuple(notes),
    )


def _gaps(first: LabelledScores, second: LabelledScores) -> LabelledScores:
    return replace(
        first,
        labels=second.labels - first.labels,
        judged=second.judged - first.judged,
        unlabelled=second.unlabelled - first.unlabelled,
    )


def _articles(scores: LabelledScores) -> int:
    return len(set(scores.clusters or ()))


def _reason(scores: LabelledScores, grader: str) -> str:
    """Return why the labels count alone; '' if the grader helps."""
    every = np.concatenate([scores.judged, scores.unlabelled])
    if not len(scores.unlabelled):
        return ALL_LABELLED
    if _articles(scores) < FEWEST_CORRECTED:
        return f"fewer than {FEWEST_CORRECTED} labelled articles"
    if len(scores.unlabelled) < 2:
        return "hardly any answer is unlabelled"
    if np.ptp(scores.labels) <= NOISE:
        return EQUAL_LABELS
    return f"{grader} scores all answers alike" if np.ptp(every) <= NOISE else ""


def _mean_alone(name: str, scores: LabelledScores, bounds: Bounds) -> MetricEstimate:
    """The mean of the labels without the grader."""
    if scores.chances is not None:
        return _estimate(name, corrected_mean(scores, bounds, weight=0.0), scores)
    _, numbers = np.unique(np.asarray(scores.clusters), return_inverse=True)
    mean = means({name: scores.labels.tolist()}, numbers.tolist(), {name: bounds})[name]
    units = _articles(scores)
    note = "" if mean.low is not None else TOO_FEW if units < FEWEST else ALL_EQUAL
    return MetricEstimate(name, mean.value, mean.low, mean.high, mean.n, units=units, note=note)


def _bias(scores: LabelledScores, reach: float) -> MetricEstimate:
    """The mean of scores less labels over the labelled answers. ``reach``: the largest difference."""
    gaps = replace(scores, labels=scores.judged - scores.labels)
    return _mean_alone(BIAS, gaps, (-reach, reach))


def _estimate(
    name: str, estimate: CorrectedEstimate | Difference, scores: LabelledScores
) -> MetricEstimate:
    return MetricEstimate(
        *(name, estimate.value, estimate.low, estimate.high, len(scores.labels)),
        units=_articles(scores),
        note=estimate.note,
    )
