"""The number of questions that a comparison needs, and the difference that a number of questions shows."""

from __future__ import annotations

import math
from collections.abc import Callable

from rallebench.core.comparison import QuestionsNeeded
from rallebench.core.forecast import CHANGING
from rallebench.core.numbers import LEVEL, NOISE
from rallebench.engine.exact import mcnemar_power
from rallebench.engine.statistics import FEWEST_PAIRED, Difference

POWER = 0.8
MOST_QUESTIONS = 1_000_000
"""Questions above which no number is given."""


def questions_needed(pair: Difference, n: int) -> QuestionsNeeded | None:
    """Return the number of questions, with articles of the same size, at which this difference would be significant
    with 80 % power, with the numbers for both ends of its interval.

    None if the difference is 0 or has no interval, or if FEWEST_PAIRED articles show it with more power; fewer are never
    significant.
    """
    if pair.low is None or pair.high is None or not pair.value:
        return None
    sign = 1 if pair.value > 0 else -1
    near, far = sorted((sign * pair.low, sign * pair.high))
    most, own, least = (
        _fewest(_power(pair, n, size)) if size > 0 else None
        for size in (near, abs(pair.value), far)
    )
    if own is None or own <= FEWEST_PAIRED:
        return None
    number, low, high = (
        None if articles is None else math.ceil(n * articles / pair.clusters)
        for articles in (own, min(own, least or own), most)
    )
    return QuestionsNeeded(number or 0, low or 0, high)


def _power(pair: Difference, n: int, size: float) -> Callable[[int], float]:
    """The power of a number of articles, for a true difference of this size and the spread of ``pair``."""
    if pair.changed is not None:
        # A larger difference takes at least as many changed questions.
        scale = abs(pair.value) * n / abs(pair.changed[0] - pair.changed[1])
        net = min(1.0, size / scale)
        share = max(sum(pair.changed) / n, net)
        return lambda questions: mcnemar_power(questions, (share + net) / 2, (share - net) / 2)
    ratio = max(pair.error, NOISE * size) * math.sqrt(pair.clusters) / size
    per_article = pair.freedom / (pair.clusters - 1)
    return lambda articles: t_power(ratio, articles, per_article)


def articles_needed(
    distance: float, error: float, articles: int, level: float = LEVEL
) -> int | None:
    """Return the number of articles at which an interval excludes, with 80 % power, a value at this ``distance`` from
    the difference. ``error``: the standard error with the present number of ``articles``; ``level``: 1 − the confidence.

    At least FEWEST_PAIRED, because fewer have no interval. None if the distance is 0, there is no standard error, or too
    many are needed.
    """
    if not distance or error <= NOISE * abs(distance):
        return None
    ratio = error * math.sqrt(articles) / abs(distance)
    return _fewest(lambda g: t_power(ratio, g, level=level))


def t_power(ratio: float, articles: int, freedom: float = 1.0, level: float = LEVEL) -> float:
    """Return the probability that Student's t over ``articles`` has p < ``level``.

    ``ratio``: the standard deviation of the articles' differences, divided by their mean; ``freedom``: degrees of freedom
    per article beyond the first, below 1 if sizes differ.

    >>> round(t_power(2.0, 34), 3)
    0.808
    """
    from scipy import special

    degrees = max(1.0, freedom * (articles - 1))
    critical, shift = special.stdtrit(degrees, 1 - level / 2), math.sqrt(articles) / ratio
    if shift > critical + 10:
        return 1.0
    below = special.nctdtr(degrees, shift, [-critical, critical])
    return float(1 - below[1] + below[0])


def _fewest(power: Callable[[int], float]) -> int | None:
    """The smallest number, at least FEWEST_PAIRED, with POWER; None above MOST_QUESTIONS."""
    low, high = FEWEST_PAIRED - 1, FEWEST_PAIRED
    while power(high) < POWER:
        low, high = high, 2 * high
        if high > MOST_QUESTIONS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if power(middle) < POWER else (low, middle)
    return high


def smallest_difference(questions: int) -> float | None:
    """Return the smallest difference of two shares of right answers that this number of questions detects with 80 %
    power; None if none can be detected. The share CHANGING of the questions is assumed to change their answers, or more
    if the difference requires it.

    >>> smallest_difference(222), smallest_difference(9), smallest_difference(0)
    (0.062, None, None)
    """
    if questions < FEWEST_PAIRED:
        return None
    for step in range(1, 1000):
        difference = step / 1000
        share = max(CHANGING, difference)
        if mcnemar_power(questions, (share + difference) / 2, (share - difference) / 2) >= POWER:
            return difference
    return None
