"""The gate of a run: whether it is worse than a base by more than a margin, as a value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from rallebench.core.errors import UsageError
from rallebench.core.json_values import JsonObject, object_json
from rallebench.core.numbers import NOISE, plural
from rallebench.core.report import Bounds
from rallebench.core.run_results import number
from rallebench.core.tables import ALL_EQUAL, ONE_SIDED, TOO_FEW

Outcome = Literal["passed", "undecided", "worse"]
EXIT_CODES: Mapping[Outcome, int] = {"passed": 0, "undecided": 3, "worse": 4}
"""Outcome → exit code of the command line. 1 and 2 are failed work and a wrong request, as everywhere."""


@dataclass(frozen=True, slots=True, repr=False)
class Gate:
    """Run ``new`` against run ``base`` by one metric, over the ``n`` questions scored in both.

    ``difference``: mean of new − mean of base; ``low``..``high``: its two-sided interval at ``confidence``, from the
    paired test of every comparison; None with the reason in ``note``. ``margin``: the greatest tolerated loss, in the
    metric's units. ``units``: number of independent units (``unit``: articles, questions or batches); ``needed``: how
    many more of them would decide, with 80 % power; None if it is decided or no number would. ``watched``: a run was
    to end once it was decided, so the interval is anytime-valid; ``exhausted``: it asked all its questions. ``gained``, ``lost``: ids
    of the questions on which new is better or worse. ``part``: the group of questions that was compared, '' for all.
    ``span``: the metric's highest less its lowest value, None without two bounds.
    """

    new: str
    base: str
    metric: str
    new_mean: float
    base_mean: float
    difference: float
    low: float | None
    high: float | None
    higher_is_better: bool
    margin: float
    confidence: float
    n: int
    units: int
    unit: str = "articles"
    needed: int | None = None
    note: str = ""
    watched: bool = False
    exhausted: bool = False
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    part: str = ""
    span: float | None = None

    @property
    def distance(self) -> float:
        """The gain of new over base beyond the tolerated loss; at 0 the difference is the margin itself."""
        return (self.difference if self.higher_is_better else -self.difference) + self.margin

    @property
    def outcome(self) -> Outcome:
        """``passed`` if the whole interval lies on the better side of the tolerated loss, ``worse`` if it lies on the
        other. If every question differs by the same amount, ``equal_ends`` are read instead.
        """
        ends = self.equal_ends or (self.low, self.high)
        low, high = ends if self.higher_is_better else ends[::-1]
        if low is None or high is None:
            return "undecided"
        least, most = ((x if self.higher_is_better else -x) + self.margin for x in (low, high))
        return "passed" if least > NOISE else "worse" if most < -NOISE else "undecided"

    @property
    def equal_ends(self) -> tuple[float, float] | None:
        """The ends of the difference if all units differ by the same amount; None if they do not, or without a range.

        With n such units at most the share 1 − (α/2)^(1/n) of all units differs otherwise, at the same two-sided confidence
        (Clopper and Pearson 1934); each of those by no more than the range.
        """
        if self.note != ALL_EQUAL or self.span is None or abs(self.difference) > self.span:
            return None
        others = 1 - ((1 - self.confidence) / 2) ** (1 / self.units)
        alike = (1 - others) * self.difference
        return alike - others * self.span, alike + others * self.span

    @property
    def equal_units_needed(self) -> int | None:
        """The number of further units that would decide if they differed by the same amount, too; None if no number would."""
        if self.span is None or self.equal_ends is None or abs(self.distance) <= NOISE:
            return None
        gain = self.distance - self.margin
        beyond = self.distance / (self.span + gain if self.distance > 0 else gain - self.span)
        if beyond >= 1:
            return None
        total = math.log((1 - self.confidence) / 2) / math.log1p(-beyond)
        return max(1, math.floor(total) + 1 - self.units)

    @property
    def passed(self) -> bool:
        """True if new is shown to be no worse than base by more than the margin."""
        return self.outcome == "passed"

    @property
    def exit_code(self) -> int:
        """The exit code of the command line."""
        return EXIT_CODES[self.outcome]

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        return self.word(f"{self.margin:g}")

    def word(self, margin: str) -> str:
        """Put the outcome into one sentence. ``margin``: with its unit, in words."""
        within = f" on {self.part}" if self.part else ""
        worse = f"worse than {self.base} by more than {margin}{within}"
        if self.outcome == "undecided":
            return f"Undecided: {self.new} may or may not be {worse}. {self.mend}"
        return f"{self.new} is {'not ' * self.passed}{worse}."

    @property
    def mend(self) -> str:
        """The mend of an undecided gate; '' if it is decided."""
        if self.outcome != "undecided":
            return ""
        few = f"{self.units:,} {self.unit} are too few for an interval: " * (self.note == TOO_FEW)
        if self.watched and self.exhausted:
            return f"All {plural(self.n, 'question')} were asked; ask more than these, or choose another margin."
        if self.watched:
            return f"To decide it takes more than {self.n:,} questions; ask all of them, or run it with this margin."
        if self.note == ONE_SIDED:
            return f"There is no interval, because too few {self.unit} change in one direction."
        noun = self.unit if self.needed != 1 else self.unit.removesuffix("s")
        same = "are equal in both" if abs(self.difference) <= NOISE else "differ by one amount"
        alike = f"All {self.units:,} {self.unit} {same}"
        if self.note == ALL_EQUAL and self.needed is not None:
            return f"{alike}; to decide it takes {self.needed:,} more {noun} like them."
        if self.note == ALL_EQUAL and self.span is None:
            return f"{alike}, and {self.metric} has no range that bounds others."
        if self.needed is None:
            return f"The difference is the margin, so more {self.unit} would not decide it."
        words = f"{few}to decide it takes about {self.needed:,} more {noun} (80 % power)."
        return words[:1].upper() + words[1:]

    @property
    def figures(self) -> str:
        """The numbers behind the outcome in one sentence."""
        ends = self.note or "no interval"
        if self.low is not None and self.high is not None:
            ends = f"{self.percent} interval {with_sign(self.low)} to {with_sign(self.high)}"
        elif self.equal_ends:
            low, high = map(with_sign, self.equal_ends)
            ends = f"all are equal: {self.percent} bounds {low} to {high}"
        return (
            f"{self.metric}: {self.base} {number(self.base_mean)}, {self.new} {number(self.new_mean)}, difference "
            f"{with_sign(self.difference)}, {ends}; n = {self.n:,}, {self.units:,} {self.unit}."
        )

    @property
    def percent(self) -> str:
        """The confidence in percent.

        >>> gate = Gate("b", "a", "em", 0.5, 0.5, 0.0, -0.01, 0.01, True, 0.02, 0.95, 200, 150)
        >>> gate.percent, gate
        ('95 %', b is not worse than a by more than 0.02.)
        """
        return f"{100 * self.confidence:g} %"

    def __str__(self) -> str:
        return f"{self.verdict} {self.figures}"

    def __repr__(self) -> str:
        return self.verdict

    def to_json(self) -> JsonObject:
        """The outcome and the numbers behind it."""
        derived = {
            "outcome": self.outcome,
            "exit_code": self.exit_code,
            "reason": f"{self.verdict} {self.figures}",
        }
        return {**derived, **object_json(asdict(self))}


def check_limits(margin: float, confidence: float) -> None:
    """Raise UsageError for a margin below 0, or a confidence that is not between 0 and 1."""
    if not 0 <= margin < math.inf:
        raise UsageError(f"The margin is {margin:g}; it must be 0 or more.")
    if not 0 < confidence < 1:
        raise UsageError(
            f"The confidence is {confidence:g}; it must lie between 0 and 1, such as 0.95."
        )


def check_margin(margin: float, metric: str, bounds: Bounds) -> None:
    """Raise UsageError for a margin that no loss can exceed. ``bounds``: the metric's (lowest, highest) value."""
    low, high = bounds
    if low is None or high is None or margin < high - low:
        return
    mend = "2 points are written 0.02." if (low, high) == (0, 1) else "choose a smaller one."
    raise UsageError(
        f"The margin is {margin:g}, but {metric} ranges from {low:g} to {high:g}, so no run could be worse by more; {mend}"
    )


def with_sign(value: float) -> str:
    """Format a difference with its sign, with four decimals up to 1.

    >>> with_sign(-0.0204), with_sign(12.345)
    ('−0.0204', '+12.35')
    """
    words = f"{value:+.4f}" if abs(value) <= 1 else number(value, signed=True)
    return words.replace("-", "−")
