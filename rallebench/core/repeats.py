"""Repeats of a run, as values: each question is asked several times, and its scores vary between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from rallebench.core.errors import UsageError
from rallebench.core.strict_numbers import Count, Number

MOST_REPEATS = 100


@dataclass(frozen=True, slots=True)
class RepeatOptions:
    """``number``: how often each question is asked. ``thresholds``: metric → the score from which an answer passes, for
    metrics other than 0 and 1."""

    number: int = 1
    thresholds: Mapping[str, float] = field(default_factory=dict)


ONCE = RepeatOptions()


def repeat_options(number: int, thresholds: Iterable[str] = ()) -> RepeatOptions:
    """Read the options of repeats; ``thresholds``: ``METRIC=SCORE``. Raises UsageError.

    >>> repeat_options(5, ["f1=0.8"])
    RepeatOptions(number=5, thresholds={'f1': 0.8})
    """
    if not 1 <= number <= MOST_REPEATS:
        raise UsageError(
            f"The number of repeats is {number}; it must be from 1 to {MOST_REPEATS}.", "repeats"
        )
    scores: dict[str, float] = {}
    for pair in thresholds:
        metric, _, score = pair.rpartition("=")
        with suppress(ValueError):
            scores[metric] = float(score)
        if not metric or not math.isfinite(scores.get(metric, math.nan)):
            raise UsageError(f"The threshold {pair!r} is not METRIC=SCORE, as in f1=0.8.")
    return RepeatOptions(number, scores)


@dataclass(frozen=True, slots=True)
class MetricRepeats:
    """A metric over ``n`` questions that were scored more than once. The variance of a score is the sum of two:
    ``between_questions`` and ``between_repeats`` of one question. ``unstable``: share of the questions whose scores
    differ. ``pass_at``: for k = 1, 2 … the probability that at least one of k repeats passes (pass@k), ``pass_all``: that
    all k pass (pass^k); () for a metric without a threshold."""

    n: Count
    between_questions: Number | None
    between_repeats: Number | None
    unstable: Number | None
    pass_at: tuple[Number, ...] = ()
    pass_all: tuple[Number, ...] = ()


@dataclass(frozen=True, slots=True)
class RepeatReport:
    """The repeats of a run: ``requested`` and ``number``, the first included; ``failed``: answers of later repeats that
    failed, which are left out. ``thresholds``: as in ``RepeatOptions``; ``metrics``: metric → its repeats."""

    requested: Count
    number: Count
    thresholds: Mapping[str, Number] = field(default_factory=dict)
    metrics: Mapping[str, MetricRepeats] = field(default_factory=dict)
    failed: Count = 0

    @property
    def sentence(self) -> str:
        """The number of repeats in words.

        >>> RepeatReport(5, 5).sentence
        'Each question was asked 5 times; its score is the mean.'
        >>> RepeatReport(5, 3).sentence
        'Each question was asked 3 of 5 times; its score is the mean.'
        """
        if self.number == 1:
            return "No model samples, so repeats would give the same answers: each question was asked once."
        of = f" of {self.requested}" if self.number < self.requested else ""
        sentence = f"Each question was asked {self.number}{of} times; its score is the mean."
        if self.failed:
            sentence += f" Answers that failed in a repeat and are left out: {self.failed}."
        return sentence
