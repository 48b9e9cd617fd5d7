"""What a suite would run: its parts, questions, model calls and retrievals, found without asking anybody.

The suite is played several times with invented replies, of all and of no worth. What is the same each time does not
depend on what is answered; what is not, or cannot be played on, is said to depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.engine.store import checked_run_name
from rallebench.experiments.suites import SUITES, Asked
from rallebench.experiments.suites._recording import missing_gold
from rallebench.experiments.suites._rehearsing import PLAYS, Searched, Seen, Span, walk
from rallebench.services.name_check import refuse_taken
from rallebench.workspace.indexes.ensure import Described


@dataclass(frozen=True, slots=True)
class Planned:
    """A part. ``left``: of its ``questions``, those that no run of this name has answered; ``generations`` and
    ``retrievals`` are of these. ``depends``: its questions or prompts come from the answers of a part before it."""

    label: str
    run: str
    workflow: str
    dataset: str
    questions: int
    left: int
    generations: Span
    retrievals: Span
    llms: tuple[str, ...]
    retrievers: tuple[str, ...]
    depends: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """All parts that can be foreseen. ``open_end``: why there may be more, in one sentence, or ''. ``indexes``: how many
    of a certain making its parts search; ``builds``: those of them that are not there. ``warnings``: gold pages that an index
    lacks."""

    suite: str
    name: str
    parts: tuple[Planned, ...]
    open_end: str = ""
    indexes: int = 0
    builds: tuple[Described, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers must know."""
        if not self.parts:
            return ("It asks nobody: it only works on files that are there.",)
        some = [part.label for part in self.parts if part.depends]
        said = [
            f"{listed(some)}: made of the answers of earlier parts, so their questions and calls are a guess."
        ] * bool(some)
        built = f"The parts search {self.indexes} index{'es' * (self.indexes != 1)} of a certain making, {len(self.builds)} of them to be built first."
        return (
            *self.warnings,
            *[built] * bool(self.indexes),
            *said,
            *filter(None, [self.open_end]),
        )


def checked(suite: str, asked: Asked, name: str) -> str:
    """The name, if the suite can be asked for so. Raises UsageError, NotFoundError."""
    if SUITES.entry(suite).traits.get("needs_llm", True) and not asked.llm:
        raise UsageError(f"The suite {suite!r} needs a language model; name one with --llm.")
    if asked.limit is not None and asked.limit < 1:
        raise UsageError(f"The number of questions is {asked.limit}; it must be at least 1.")
    refuse_taken(asked.workspace, "suite", checked_run_name(name))
    return name


def plan(suite: str, asked: Asked, name: str) -> Plan:
    """Everything that ``run_suite`` would run under that name. Loads nothing, writes nothing. Raises RalleError for a wrong request,
    and MismatchError if a run of that name was made with other settings."""
    checked(suite, asked, name)
    searched = Searched()
    walks = [walk(suite, asked, name, play, searched) for play in PLAYS]
    most, least = (many(len(seen) for seen, _ in walks) for many in (max, min))
    parts = tuple(
        _merged([seen[i] if i < len(seen) else None for seen, _ in walks]) for i in range(most)
    )
    if not any(ended for seen, ended in walks if len(seen) == most):
        end = f"What comes after {parts[-1].label!r} depends on its answers and can only be planned when they are there."
    else:
        end = (
            f"How many parts there are depends on the answers; at least {least}."
            if least < most
            else ""
        )
    builds = tuple(searched.missing.values())
    warnings = dict.fromkeys(
        one
        for seen, _ in walks
        for each in seen
        for one in missing_gold(asked.workspace, each.part)
    )
    return Plan(suite, name, parts, end, len(searched.names) + len(builds), builds, tuple(warnings))


def _merged(plays: Sequence[Seen | None]) -> Planned:
    """One part as it was in every play; None: it did not come."""
    there = [seen for seen in plays if seen is not None]
    first, part = there[0], there[0].part
    same = len({(seen.part.label, seen.asks) for seen in there}) == 1
    generations, retrievals = first.generations, first.retrievals
    for seen in there[1:]:
        generations, retrievals = (
            generations.either(seen.generations),
            retrievals.either(seen.retrievals),
        )
    return Planned(
        part.label if same else _common([seen.part.label for seen in there]) or part.label,
        first.run if same else "",
        part.workflow,
        part.dataset,
        max(len(seen.part.examples) for seen in there),
        max(seen.left for seen in there),
        generations,
        retrievals,
        part.llms,
        part.retrievers,
        not same or len(there) < len(plays),
    )


def _common(labels: Sequence[str]) -> str:
    """What labels begin with: the rest is a mark of what was invented.

    >>> _common(["noise=1 judged a1f", "noise=1 judged b07"])
    'noise=1 judged'
    """
    first = min(labels, key=len)
    return "".join(
        c for i, c in enumerate(first) if all(label.startswith(first[: i + 1]) for label in labels)
    ).rstrip()


# as JSON


def as_json(found: Plan) -> dict[str, Any]:
    """One JSON document: the parts, their sums, what is uncertain."""
    total = sum((part.generations for part in found.parts), Span(0, 0))
    searches = sum((part.retrievals for part in found.parts), Span(0, 0))
    return {
        "suite": found.suite,
        "name": found.name,
        "plan": [asdict(part) for part in found.parts],
        "total": {
            "parts": len(found.parts),
            "questions": sum(part.questions for part in found.parts),
            "left": sum(part.left for part in found.parts),
            "generations": asdict(total),
            "retrievals": asdict(searches),
        },
        "indexes": {"needed": found.indexes, "to_build": len(found.builds)},
        "notes": list(found.notes),
    }


def listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
