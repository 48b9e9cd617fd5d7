"""Answers withheld below a confidence: risk against coverage, and a threshold with a proved precision.

Risk is the share of wrong answers among those taken, coverage their share of all (El-Yaniv and Wiener 2010, JMLR 11; Geifman and
El-Yaniv 2017, arXiv:1705.08500). AURC is the mean risk over all coverages 1/n, 2/n … 1 (Geifman et al. 2019,
arXiv:1805.08206); answers of equal confidence count as if in random order. Its interval uses the influence of each answer,
summed by article.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rallebench.core.audits import CoveragePoint, ProvenThreshold, SelectiveRisk
from rallebench.core.errors import UsageError
from rallebench.core.numbers import LEVEL, NOISE, plural
from rallebench.core.report import Estimate
from rallebench.core.run_results import MetricEstimate
from rallebench.core.tables import ALL_EQUAL, FEWEST, TOO_FEW
from rallebench.engine.calibration import NO_ANSWER, constant_note, number_clusters
from rallebench.engine.statistics import SHARE, means, t_quantile

Floats = NDArray[np.float64]
Whole = NDArray[np.intp]

POINTS = 20
"""Coverages at which the curve is given."""
MOST_THRESHOLDS, FEWEST_GIVEN = 100, 20
"""Thresholds that are tried, and the answers that one of them must leave."""
MARGIN = 1.5
"""With a margin of so many half-widths on one half of the articles, the other half confirms it in about 3 of 4 cases."""


def measure_risk(
    confidences: Floats, truth: Floats, clusters: Sequence[int | str] | None = None
) -> SelectiveRisk:
    """Return risk against coverage of (n,) confidences and (n,) truths from 0 to 1. ``clusters``: the article of each answer."""
    n, numbers = len(truth), number_clusters(clusters, len(truth))
    if not n:
        return SelectiveRisk(MetricEstimate("aurc", None, note=NO_ANSWER), 0.0, 0.0, (), NO_ANSWER)
    wrong = 1 - truth
    area = _area(confidences, wrong, numbers)
    best, _ = _area_and_influence(truth, wrong)
    return SelectiveRisk(
        area,
        float(wrong.mean()),
        best,
        _points(confidences, wrong, numbers),
        constant_note(confidences, truth),
    )


def area_under_risk(confidences: Floats, truth: Floats) -> float:
    """Return the AURC of (n,) confidences and truths, n ≥ 1.

    >>> area_under_risk(np.array([0.9, 0.8, 0.3]), np.array([1.0, 0.0, 1.0]))
    0.27777777777777773
    """
    return _area_and_influence(confidences, 1 - truth)[0]


def _area_and_influence(confidences: Floats, wrong: Floats) -> tuple[float, Floats]:
    """The AURC, and the derivative of n times it by the weight of each answer, less its mean."""
    order = np.argsort(-confidences, kind="stable")
    ordered, errors = confidences[order], wrong[order]
    _, blocks, sizes = np.unique(-ordered, return_inverse=True, return_counts=True)
    smooth = (np.bincount(blocks, errors) / sizes)[blocks]
    ranks = np.arange(1, len(errors) + 1)
    risks = np.cumsum(smooth) / ranks
    area = float(risks.mean())
    later = np.cumsum((1 / ranks)[::-1])[::-1]
    later_risks = np.cumsum((risks / ranks)[::-1])[::-1]
    risk, ahead, ahead_risk = (
        (np.bincount(blocks, values) / sizes)[blocks] for values in (risks, later, later_risks)
    )
    influence = np.empty(len(errors))
    influence[order] = risk + errors * ahead - ahead_risk - area
    return area, influence


def _area(confidences: Floats, wrong: Floats, numbers: Whole) -> MetricEstimate:
    area, influence = _area_and_influence(confidences, wrong)
    n, count = len(wrong), int(numbers.max()) + 1
    if count < FEWEST:
        return MetricEstimate("aurc", area, n=n, units=count, note=TOO_FEW)
    shares = np.bincount(numbers) / n
    sums = np.bincount(numbers, influence - influence.mean())
    error = math.sqrt(float((sums**2 / (1 - shares)).sum())) / n
    if error <= NOISE:
        return MetricEstimate("aurc", area, n=n, units=count, note=ALL_EQUAL)
    half = t_quantile(max(1.0, float(1 / (shares**2).sum()) - 1), LEVEL) * error
    low, high = max(0.0, area - half), min(1.0, area + half)
    return MetricEstimate("aurc", area, low, high, n, units=count)


def _points(confidences: Floats, wrong: Floats, numbers: Whole) -> tuple[CoveragePoint, ...]:
    """The risk at about POINTS coverages, each at the end of a group of equal confidences."""
    ordered = np.sort(confidences)[::-1]
    wished = {
        float(ordered[math.ceil(len(ordered) * i / POINTS) - 1]) for i in range(1, POINTS + 1)
    }
    points = []
    for threshold in sorted(wished, reverse=True):
        taken = confidences >= threshold
        points.append(
            CoveragePoint(float(taken.mean()), threshold, _share(wrong[taken], numbers[taken]))
        )
    return tuple(points)


def _share(values: Floats, numbers: Whole) -> Estimate:
    return means({"share": values.tolist()}, numbers.tolist(), {"share": SHARE})["share"]


# a threshold with a proof


@dataclass(frozen=True, slots=True)
class _Half:
    confidences: Floats
    truth: Floats
    numbers: Whole

    def precision(self, threshold: float) -> MetricEstimate:
        """The share of right answers at or above a threshold."""
        taken = self.confidences >= threshold
        mean = _share(self.truth[taken], self.numbers[taken])
        units = len(set(self.numbers[taken].tolist()))
        note = TOO_FEW if mean.low is None else ""
        return MetricEstimate(
            "precision", mean.value, mean.low, mean.high, mean.n, units=units, note=note
        )


def prove_threshold(
    confidences: Floats,
    truth: Floats,
    precision: float,
    clusters: Sequence[int | str] | None = None,
    seed: int = 0,
) -> ProvenThreshold:
    """Choose the lowest confidence with a wished precision on a random half of the articles, and test it on the other half.

    On the first half the mean has to exceed ``precision`` by MARGIN of its distance from the lower end of its interval, or else by
    that distance, or else to reach it. On the other half the threshold is proved if the lower end of the 95 % interval reaches it. Raises UsageError for a precision that is not between 0 and 1.
    """
    if not 0 < precision < 1:
        raise UsageError(
            f"The precision is {precision:g}; it must lie between 0 and 1, such as 0.9."
        )
    nothing = MetricEstimate("precision", None)
    if reason := constant_note(confidences, truth):
        return ProvenThreshold(precision, None, nothing, nothing, note=_as_clause(reason))
    numbers = number_clusters(clusters, len(truth))
    count = int(numbers.max()) + 1
    if count < 2 * FEWEST:
        return ProvenThreshold(
            precision, None, nothing, nothing, note=f"{count} articles are too few to halve"
        )
    chosen = random.Random(seed).sample(range(count), count // 2)
    first = np.isin(numbers, chosen)
    here, other = (_Half(confidences[m], truth[m], numbers[m]) for m in (first, ~first))
    threshold, best, note = _choose(here, precision)
    if threshold is None:
        return ProvenThreshold(precision, None, best, nothing, note=note)
    coverage = float((other.confidences >= threshold).mean())
    return ProvenThreshold(
        precision,
        threshold,
        here.precision(threshold),
        other.precision(threshold),
        coverage,
    )


def _as_clause(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def _choose(half: _Half, precision: float) -> tuple[float | None, MetricEstimate, str]:
    """The lowest threshold that reaches a precision in a half with its estimate; without any None, the most precise of all that
    leave enough answers, and the reason."""
    distinct = np.unique(half.confidences)
    at = np.unique(np.linspace(0, len(distinct) - 1, MOST_THRESHOLDS).round().astype(int))
    tried = {float(distinct[i]): half.precision(float(distinct[i])) for i in at}
    # A few answers may all be right by chance.
    usable = {
        place: own for place, own in tried.items() if own.low is not None and own.n >= FEWEST_GIVEN
    }
    margins = {
        place: ((own.value or 0) - precision) / max(NOISE, (own.value or 0) - (own.low or 0))
        for place, own in usable.items()
    }
    for wished in (MARGIN, 1.0, 0.0):
        if reached := [place for place, margin in margins.items() if margin >= wished]:
            return min(reached), usable[min(reached)], ""
    best = max(usable.values(), key=lambda own: own.value or 0, default=MetricEstimate("", None))
    return None, best, _explain_lack(tried, best, precision)


def _explain_lack(
    tried: Mapping[float, MetricEstimate], best: MetricEstimate, precision: float
) -> str:
    """Return why no threshold can be chosen: none is precise enough, or only ones with too few answers or articles."""
    reason = (
        f"in the half of the articles where it is chosen none reaches it with at least {FEWEST_GIVEN} answers of {FEWEST} articles at "
        "or above"
    )
    if best.value is not None:
        reason += f", the best is {100 * best.value:.0f} %"
    reached = [own for own in tried.values() if (own.value or 0) >= precision]
    if not reached:
        most = max(own.n for own in tried.values())
        return reason if best.value is not None else f"{reason}: it has {plural(most, 'answer')}"
    most_given = max(reached, key=lambda own: own.n)
    counted = plural(most_given.n, "answer")
    if most_given.n >= FEWEST_GIVEN:
        counted += f" of {plural(most_given.units or 0, 'article')}"
    return f"{reason}; what reaches it has at most {counted}, too few to choose by"
