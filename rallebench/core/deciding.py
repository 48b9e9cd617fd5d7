"""Asking no more than needed: the rule by which a run ends, and the interval that may be looked at after every answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from rallebench.core.json_values import JsonObject, object_json
from rallebench.core.strict_numbers import Count, Number

MARGIN, CONFIDENCE = 0.02, 0.95
UNBOUNDED = "no interval: the run was to end once it was decided, and values without two bounds allow none then"


class Decision(str, Enum):
    """The outcome of a comparison at a margin."""

    NO_WORSE = "no worse"
    WORSE = "worse"
    OPEN = "undecided"


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """A run asks whole articles in a random order by its seed, and ends once the anytime-valid interval of its difference
    from the run ``against``, by ``metric``, lies on one side of −``margin``. ``upward``: higher is better; ``questions``: of
    the whole dataset; ``largest``: those of its largest article."""

    against: str
    metric: str
    margin: Number = MARGIN
    confidence: Number = CONFIDENCE
    upward: bool = True
    questions: Count = 0
    largest: Count = 1

    def to_json(self) -> JsonObject:
        """The content of the setting ``until_decided``."""
        return object_json(asdict(self))

    @classmethod
    def from_json(cls, value: object, *, path: Path, mend: str) -> StoppingRule:
        """The rule in the setting of a run. Raises BadFileError."""
        from rallebench.core.own_files import parse

        return parse(value, cls, path, mend)


@dataclass(frozen=True, slots=True)
class Watched:
    """A question-weighted mean of paired differences over the articles asked so far. ``low``..``high``: its anytime-valid
    interval, the whole possible range while there is no article."""

    value: float | None
    low: float
    high: float
    articles: int
    questions: int

    def decide(self, rule: StoppingRule) -> Decision:
        """Return whether the interval lies above −margin, below it, or on both sides."""
        low, high = (self.low, self.high) if rule.upward else (-self.high, -self.low)
        if low > -rule.margin:
            return Decision.NO_WORSE
        return Decision.WORSE if high < -rule.margin else Decision.OPEN


@dataclass(frozen=True, slots=True)
class Decided:
    """A run with a stopping rule, after its last look."""

    rule: StoppingRule
    watched: Watched

    def to_json(self) -> JsonObject:
        """The content of ``until_decided`` in ``report.json``."""
        return object_json(asdict(self))

    @property
    def outcome(self) -> Decision:
        """The side of −margin on which the interval lies."""
        return self.watched.decide(self.rule)

    def __str__(self) -> str:
        """The outcome in words.

        >>> str(Decided(StoppingRule("base", "em", questions=222), Watched(0.1, 0.01, 0.2, 30, 64)))
        'decided after 64 of 222 questions: no worse than base by more than 0.02 em'
        """
        rule, outcome = self.rule, self.outcome
        part = f"{self.watched.questions:,} of {rule.questions:,} questions"
        if outcome is Decision.OPEN:
            return f"undecided after {part}"
        return f"decided after {part}: {outcome.value} than {rule.against} by more than {rule.margin:g} {rule.metric}"
