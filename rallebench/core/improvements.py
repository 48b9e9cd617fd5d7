"""The improvement of a chain as a value: the best variant, and the difference on articles that no variant had seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rallebench.core.experiment_reports import ExperimentReport, SuiteReport
from rallebench.core.json_values import JsonObject, JsonValue, object_json
from rallebench.core.numbers import plural
from rallebench.core.strict_numbers import Count, Flag, Number
from rallebench.core.tables import ALL_EQUAL
from rallebench.core.types import Json

IMPROVEMENT = "improvement"
"""Its key in the report of the experiment."""


@dataclass(frozen=True, slots=True, repr=False)
class Improvement:
    """``variant``: its changes in words, '' if no variant was better than the chain where they competed. ``difference``: its
    mean less the chain's over ``articles`` unseen ones, with its interval; None if that was not compared, or the reason in
    ``note``. ``runs``: of the chain and of the variant on these articles. ``refused``: variant → reason. ``cost``: the
    number of questions asked in all."""

    metric: str
    label: str
    is_share: Flag = True
    higher_is_better: Flag = True
    variant: str = ""
    chain: str = ""
    difference: Number | None = None
    low: Number | None = None
    high: Number | None = None
    articles: Count = 0
    questions: Count = 0
    seen: Count = 0
    note: str = ""
    runs: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    cost: Count = 0

    @property
    def confirmed(self) -> bool:
        """True if the whole interval lies on the better side of 0. If every question differs by the same amount, the interval
        is that amount.
        """
        worst = self.low if self.higher_is_better else self.high
        if self.note == ALL_EQUAL:
            worst = self.difference
        return worst is not None and (worst > 0) is self.higher_is_better and worst != 0

    def __str__(self) -> str:
        """The outcome in one sentence.

        >>> print(Improvement("em", "EM", variant="k 5", difference=0.031, low=0.004, high=0.058, articles=74))
        Confirmed on 74 unseen articles: +3.1 points (0.4 to 5.8).
        >>> print(Improvement("em", "EM", variant="k 5", difference=-0.01, low=-0.02, high=0.001, articles=74))
        Not confirmed on 74 unseen articles: −1.0 points (−2.0 to 0.1).
        """
        if not self.variant:
            why = "no variant was better than the chain"
            return f"Not confirmed: {why} on the {plural(self.seen, 'article')} on which they competed."
        word = "Confirmed" if self.confirmed else "Not confirmed"
        where = f"{word} on {plural(self.articles, 'unseen article')}"
        if self.difference is None:
            return f"{where}: {self.note or 'no question was scored in both'}."
        unit = " points" if self.is_share else f" {self.label}"
        ends = self.note or "no interval"
        if self.low is not None and self.high is not None:
            ends = f"{self._write(self.low)} to {self._write(self.high)}"
        return f"{where}: {self._write(self.difference, '+')}{unit} ({ends})."

    def __repr__(self) -> str:
        return str(self)

    def _write(self, value: float, sign: str = "") -> str:
        words = f"{100 * value:{sign}.1f}" if self.is_share else f"{value:{sign}.4g}"
        return ("0.0" if float(words) == 0 and not sign else words).replace("-", "−")

    def to_json(self) -> JsonObject:
        """Its entry in the report: the outcome, and the numbers behind it."""
        derived: dict[str, JsonValue] = {"confirmed": self.confirmed, "sentence": str(self)}
        return {**derived, **object_json(asdict(self))}


def find_improvement(report: ExperimentReport | None) -> Improvement | None:
    """Return the outcome of an improvement; None for any other experiment, or before its end. Raises BadFileError."""
    if not isinstance(report, SuiteReport) or IMPROVEMENT not in report.data:
        return None
    from rallebench.core.own_files import parse
    from rallebench.core.stored_experiments import MEND

    value: Json = report.data[IMPROVEMENT]
    stored = {key: item for key, item in value.items() if key not in ("confirmed", "sentence")}
    return parse(stored, Improvement, Path(report.folder) / "report.json", MEND)
