"""Agreement of people over labels: Krippendorff's alpha (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from rallebench.core.labels import WORTH, AnswerLabel, LabelAgreement

T = TypeVar("T", bound=Hashable)

ONE_PERSON = "One person labelled alone so far; agreement needs a second one on the same answers."
NO_LABEL = "No answer is labelled yet."
ALL_EQUAL = "All labels are the same, so alpha is not defined."
FEWEST_UNITS, RESAMPLES = 10, 2_000
"""Answers below which alpha has no interval, and the number of draws of the bootstrap."""
ORDER = tuple(sorted(WORTH, key=WORTH.__getitem__))
"""The grades that have an order, from the worst."""


def measure_agreement(labels: Iterable[Sequence[AnswerLabel]]) -> LabelAgreement:
    """Return the agreement of people over answers; each element has the labels of one answer, one for each person."""
    counted = [[x for x in of if x.grade != "skip"] for of in labels]
    people = tuple(sorted({label.who for of in counted for label in of}))
    shared = [[label.grade for label in of] for of in counted if len(of) > 1]
    if not shared:
        return LabelAgreement(people, 0, None, None, ONE_PERSON if people else NO_LABEL)
    nominal = krippendorff_alpha(shared, lambda counts: lambda a, b: float(a != b))
    ordered = [[ORDER.index(grade) for grade in of if grade in WORTH] for of in shared]
    ordinal = krippendorff_alpha(ordered, ordinal_distance)
    problem = "" if nominal is not None else ALL_EQUAL
    return LabelAgreement(people, len(shared), nominal, ordinal, problem, *nominal_interval(shared))


def nominal_interval(units: Sequence[Sequence[str]]) -> tuple[float | None, float | None]:
    """Return the 95 % interval of alpha of names: percentiles over RESAMPLES draws of as many units with replacement.

    (None, None) for fewer than FEWEST_UNITS units with two values or more, or if all of them agree, so that no draw could differ.
    Draws in which all values are equal count as full agreement.
    """
    import numpy as np

    names = sorted({value for unit in units for value in unit})
    counts = np.array(
        [[unit.count(name) for name in names] for unit in units if len(unit) > 1], dtype=float
    )
    if len(counts) < FEWEST_UNITS:
        return None, None
    sizes = counts.sum(axis=1)
    unequal = (sizes**2 - (counts**2).sum(axis=1)) / (sizes - 1)
    if not unequal.any():
        return None, None
    draws = np.random.default_rng(0).multinomial(
        len(counts), np.full(len(counts), 1 / len(counts)), RESAMPLES
    )
    totals = draws @ counts
    number = totals.sum(axis=1)
    expected = (number**2 - (totals**2).sum(axis=1)) / (number - 1)
    ratio = np.divide(draws @ unequal, expected, out=np.zeros(RESAMPLES), where=expected > 0)
    low, high = np.percentile(1 - ratio, (2.5, 97.5))
    return float(low), float(high)


def krippendorff_alpha(
    units: Iterable[Sequence[T]],
    metric: Callable[[Mapping[T, int]], Callable[[T, T], float]],
) -> float | None:
    """Return alpha = 1 - observed / expected disagreement; None if it is not defined, since no unit has two values or all values
    are equal. ``units``: the values of each unit, by any number of people; ``metric``: from the counts of all paired values to
    the squared difference of two values.
    """
    paired = [Counter(unit) for unit in units if len(unit) > 1]
    counts: Counter[T] = sum(paired, Counter())
    total, distance = counts.total(), metric(counts)
    observed = sum(
        _disagreement(unit, distance) / (unit.total() - 1) for unit in paired if len(unit) > 1
    )
    expected = _disagreement(counts, distance) / (total - 1) if paired else 0.0
    return 1 - observed / expected if expected else None


def _disagreement(counts: Mapping[T, int], distance: Callable[[T, T], float]) -> float:
    """Return the sum of the distances of all ordered pairs of values."""
    return sum(n * m * distance(a, b) for a, n in counts.items() for b, m in counts.items())


def ordinal_distance(counts: Mapping[int, int]) -> Callable[[int, int], float]:
    """Return the squared difference of two ranks: the number of values between them, half of their own included."""

    def distance(a: int, b: int) -> float:
        low, high = sorted((a, b))
        between = sum(counts.get(rank, 0) for rank in range(low, high + 1))
        return (between - (counts.get(a, 0) + counts.get(b, 0)) / 2) ** 2

    return distance
