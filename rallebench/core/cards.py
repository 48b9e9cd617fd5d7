"""A metric's card: its definition, and other facts for readers of its numbers."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass

from rallebench.core.types import Json

NEEDS = {
    "answers": "accepted answers",
    "provenance": "gold pages",
    "required": "required answers",
    "unanswerable": "unanswerable questions",
    "claims": "gold claims",
}
CLUSTERS = (
    "questions that share gold pages count as one article, else those of one group field, else each question; fewer than 5 have no interval, "
    "and the report says how many there are and whether one holds over half of the questions"
)
TOOLS = {
    "encoder": "an encoder",
    "model": "a model",
    "judge": "a language model",
    "checker": "a support model",
}


@dataclass(frozen=True, slots=True)
class Card:
    """Facts for the reader of a number.

    ``needs``: required gold, joined with ``+``; ``wants``: the required part of it, or '' for all; ``tool``: the required
    model, or ''. ``higher_is_better``: None if neither direction is better. ``range``: None stands for no bound.
    ``over_all``: the score over all answers at once, shown beside the mean, or ''. ``option``: the text allowed after the
    name and a colon, or ''. ``k``: the cut-off, None without one. ``declining``: True if unanswerable questions are scored.
    """

    name: str
    label: str
    definition: str
    details: str = ""
    normalisation: str = ""
    not_scored: str = ""
    over_all: str = ""
    option: str = ""
    source: str = ""
    traps: str = ""
    needs: str = ""
    wants: str = ""
    tool: str = ""
    higher_is_better: bool | None = True
    unit: str = ""
    range: tuple[float | None, float | None] = (None, None)
    k: int | None = None
    declining: bool = False

    @property
    def direction(self) -> str:
        """``higher is better``, ``lower is better`` or ``neither direction is better``."""
        if self.higher_is_better is None:
            return "neither direction is better"
        return "higher is better" if self.higher_is_better else "lower is better"

    @property
    def bounds(self) -> str:
        """The range in words."""
        low, high = self.range
        if low is not None and high is not None:
            return f"{low:g} to {high:g}"
        return "any number" if low is None else f"{low:g} or more"

    @property
    def interval(self) -> str:
        """The method of the mean's 95 % interval, in words."""
        known = None not in self.range
        how = "the interval of Agresti and Coull" if known else "Student's t"
        return f"{how} with a cluster-robust standard error: {CLUSTERS}."

    @property
    def requirements(self) -> str:
        """The required gold and models, in words."""
        gold = [NEEDS.get(part, part) for part in self.needs.split("+") if part]
        parts = [self.wants] if self.wants else gold
        return ", ".join([*parts, TOOLS[self.tool]] if self.tool else parts) or "nothing"

    def to_json(self) -> Json:
        """Return every field, ``range`` as a list, and the four properties above."""
        words = {
            "direction": self.direction,
            "bounds": self.bounds,
            "needed": self.requirements,
            "interval": self.interval,
        }
        return {**asdict(self), "range": list(self.range), **words}

    def facts(self) -> dict[str, str]:
        """Return the card fact by fact; inapplicable facts are left out."""
        facts = {
            "Definition": self.definition,
            "Details": self.details,
            "Normalisation": self.normalisation,
            "Direction": self.direction,
            "Range": f"{self.bounds} ({self.unit})",
            "Needs": self.requirements,
            "Not scored": self.not_scored,
            "Unanswerable": "1 for an answer that declines, else 0." if self.declining else "",
            "Interval": self.interval,
            "Over all": self.over_all,
            "Option": self.option,
            "Source": self.source,
            "Beware": self.traps,
        }
        return {name: " ".join(fact.split()) for name, fact in facts.items() if fact}

    def text(self) -> str:
        """Return the card as text for a terminal."""
        folded = [
            textwrap.fill(
                f"{name + ':':<15}{fact}", 100, initial_indent="  ", subsequent_indent=" " * 17
            )
            for name, fact in self.facts().items()
        ]
        return "\n".join([f"{self.name} — {self.label}", *folded])
