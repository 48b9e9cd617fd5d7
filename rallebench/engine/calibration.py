"""Calibration of confidences: the share of right answers at each confidence, the calibration error, and the Brier score.

Bins hold equal numbers of answers (adaptive calibration error; Nguyen and O'Connor 2015, arXiv:1508.05154; Nixon et al. 2019,
arXiv:1904.01685). The plain error of a calibrated grader is above 0 by chance (Roelofs et al. 2022, arXiv:2012.08668). Its
interval therefore holds 0 unless the error exceeds that of a calibrated grader, and its lower end is set off by the expected
excess of each bin, the mean of a folded normal less its centre. Everything counts articles. ``docs/statistics.md`` has the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rallebench.core.audits import Calibration, ConfidenceBin
from rallebench.core.numbers import LEVEL, NOISE
from rallebench.core.report import Bounds
from rallebench.core.run_results import MetricEstimate
from rallebench.core.tables import ALL_EQUAL, FEWEST, TOO_FEW
from rallebench.engine.statistics import SHARE, means, t_quantile

Floats = NDArray[np.float64]
Whole = NDArray[np.intp]

BIN_SIZE, FEWEST_BINS, MOST_BINS = 20, 5, 15
"""Answers in a bin, and the fewest and most bins."""
FEWEST_ANSWERS = BIN_SIZE * FEWEST_BINS
FEW_ANSWERS = "{} answers are too few for a calibration error; that takes {}"
FEW_BINS = "equal confidences fill only {} bins, too few for a calibration error; that takes {}"
"""Reasons for a missing calibration error."""
NO_ANSWER = "No answer has both a confidence and a truth."
ONE_TRUTH = "All answers are {}, so the confidences cannot be audited."
ONE_CONFIDENCE = (
    "All answers have the same confidence, so it cannot tell right ones from wrong ones."
)


def calibrate(
    confidences: Floats,
    truth: Floats,
    clusters: Sequence[int | str] | None = None,
    most_bins: int = MOST_BINS,
) -> Calibration:
    """Return the calibration of (n,) confidences from 0 to 1 by (n,) truths from 0 to 1, n may be 0.

    ``clusters``: the article of each answer; by default each is its own. If all truths or all confidences are equal, ``note``
    says so, and the parts that are defined are given. With fewer than FEWEST_ANSWERS or FEWEST_BINS there is no calibration error.
    ``most_bins``: the most bins, for equal numbers in several parts.
    """
    n = len(truth)
    numbers = number_clusters(clusters, n)
    right, gap, brier = (
        _mean(name, values, numbers, bounds)
        for name, values, bounds in (
            ("right", truth, SHARE),
            ("gap", confidences - truth, (-1.0, 1.0)),
            ("brier", (confidences - truth) ** 2, SHARE),
        )
    )
    if not n:
        nothing = MetricEstimate("ece", None, note=NO_ANSWER)
        return Calibration(0.0, right, gap, nothing, None, brier, 0.0, (), NO_ANSWER)
    bins = cut_bins(confidences, min(most_bins, count_bins(n)))
    error, by_chance = _calibration_error(confidences - truth, bins, numbers)
    return Calibration(
        float(confidences.mean()),
        right,
        gap,
        error,
        by_chance,
        brier,
        float(np.var(truth)),
        tuple(
            _bin(confidences[bins == b], truth[bins == b], numbers[bins == b]) for b in _each(bins)
        ),
        constant_note(confidences, truth),
    )


def count_bins(n: int) -> int:
    """Return the number of bins for ``n`` answers.

    >>> count_bins(60), count_bins(119), count_bins(1000)
    (3, 5, 15)
    """
    return max(2, min(MOST_BINS, n // BIN_SIZE))


def constant_note(confidences: Floats, truth: Floats) -> str:
    """Return the sentence on confidences or truths that are all equal; '' if both vary."""
    if not len(truth):
        return NO_ANSWER
    if np.ptp(truth) <= NOISE:
        share = float(truth[0])
        return ONE_TRUTH.format(
            "right" if share == 1 else "wrong" if share == 0 else "partly right"
        )
    return ONE_CONFIDENCE if np.ptp(confidences) <= NOISE else ""


def number_clusters(clusters: Sequence[int | str] | None, n: int) -> Whole:
    """Return the clusters of ``n`` answers as numbers from 0."""
    if clusters is None:
        return np.arange(n)
    _, numbers = np.unique(np.asarray(clusters), return_inverse=True)
    return np.asarray(numbers, np.intp).reshape(n)


def cut_bins(confidences: Floats, count: int) -> Whole:
    """Return the bin of each confidence, from 0 for the lowest: at most ``count`` bins of equal size. Equal confidences share a bin.

    >>> cut_bins(np.array([0.9, 0.1, 0.2, 0.1, 0.8, 0.7]), 3).tolist()
    [2, 0, 1, 0, 2, 1]
    """
    order = np.argsort(confidences, kind="stable")
    ordered = confidences[order]
    cuts = {int(np.searchsorted(ordered, ordered[len(ordered) * i // count])) for i in range(count)}
    places = np.zeros(len(ordered), np.intp)
    places[order] = np.searchsorted(sorted(cuts), np.arange(len(ordered)), side="right") - 1
    return places


def expected_calibration_error(confidences: Floats, truth: Floats, bins: Whole) -> float:
    """Return the mean over answers of the distance of mean confidence and share of right answers in their bin."""
    sums = np.bincount(bins, confidences - truth)
    return float(np.abs(sums).sum() / len(truth))


@dataclass(frozen=True, slots=True)
class _BinGap:
    """The mean of confidence less truth in a bin, its standard error by article, its share of all answers, and its deviation of each
    article."""

    mean: float
    error: float
    share: float
    deviations: Floats

    @property
    def excess(self) -> float:
        """The expected absolute value of a normal with this centre and error, less the centre."""
        if self.error <= 0:
            return 0.0
        centre, error = abs(self.mean), self.error
        density = math.sqrt(2 / math.pi) * math.exp(-((centre / error) ** 2) / 2)
        return error * density - centre * math.erfc(centre / error / math.sqrt(2))


def _calibration_error(
    gaps: Floats, bins: Whole, numbers: Whole
) -> tuple[MetricEstimate, float | None]:
    """The calibration error with its interval, and the one that chance alone would make; both None for too few answers or bins."""
    n, count = len(gaps), int(numbers.max()) + 1
    places = int(bins.max()) + 1
    if n < FEWEST_ANSWERS or places < FEWEST_BINS:
        note = FEW_BINS.format(places, FEWEST_BINS)
        if n < FEWEST_ANSWERS:
            note = FEW_ANSWERS.format(n, FEWEST_ANSWERS)
        return MetricEstimate("ece", None, n=n, units=count, note=note), None
    parts = [_bin_gap(gaps[bins == b], numbers[bins == b], count, n) for b in _each(bins)]
    plain = sum(part.share * abs(part.mean) for part in parts)
    by_chance = math.sqrt(2 / math.pi) * sum(part.share * part.error for part in parts)
    estimate = MetricEstimate("ece", plain, n=n, units=count)
    if count < FEWEST:
        return MetricEstimate("ece", plain, n=n, units=count, note=TOO_FEW), by_chance
    shares = np.bincount(numbers, minlength=count) / n
    residuals = sum(math.copysign(1.0, part.mean) * part.deviations for part in parts)
    error = math.sqrt(float((np.asarray(residuals) ** 2 / (1 - shares)).sum())) / n
    if error <= NOISE:
        return MetricEstimate("ece", plain, n=n, units=count, note=ALL_EQUAL), by_chance
    t = t_quantile(max(1.0, float(1 / (shares**2).sum()) - 1), LEVEL)
    spread = math.sqrt(sum((part.share * part.error) ** 2 for part in parts) * (1 - 2 / math.pi))
    low = 0.0
    if plain - by_chance > t * spread:
        low = max(0.0, plain - sum(part.share * part.excess for part in parts) - t * error)
    high = min(1.0, plain + t * error)
    return MetricEstimate("ece", plain, low, high, estimate.n, units=count), by_chance


def _bin_gap(gaps: Floats, numbers: Whole, count: int, n: int) -> _BinGap:
    mean = float(gaps.mean())
    deviations = np.asarray(np.bincount(numbers, gaps - mean, count), np.float64)
    shares = np.bincount(numbers, minlength=count) / len(gaps)
    error = 0.0
    if shares.max() < 1:
        error = math.sqrt(float((deviations**2 / (1 - shares)).sum())) / len(gaps)
    return _BinGap(mean, error, len(gaps) / n, deviations)


def _bin(confidences: Floats, truth: Floats, numbers: Whole) -> ConfidenceBin:
    mean = means({"right": truth.tolist()}, numbers.tolist(), {"right": SHARE})["right"]
    return ConfidenceBin(
        float(confidences.min()), float(confidences.max()), float(confidences.mean()), mean
    )


def _each(bins: Whole) -> range:
    return range(int(bins.max()) + 1)


def _mean(name: str, values: Floats, numbers: Whole, bounds: Bounds) -> MetricEstimate:
    units = len(set(numbers.tolist()))
    mean = means({name: values.tolist()}, numbers.tolist(), {name: bounds})[name]
    note = "" if mean.low is not None else TOO_FEW if units < FEWEST else ALL_EQUAL
    return MetricEstimate(name, mean.value, mean.low, mean.high, mean.n, units=units, note=note)
