"""The plan of an experiment: its runs, questions, model calls and retrievals; see ``dry_run.plan``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rallebench.core.types import digest


@dataclass(frozen=True, slots=True)
class Range:
    """A count from ``low`` to ``high``; ``high`` None: it depends on the answers."""

    low: int
    high: int | None

    def __add__(self, other: Range) -> Range:
        known = self.high is not None and other.high is not None
        return Range(self.low + other.low, self.high + other.high if known else None)  # type: ignore[operator]

    def either(self, other: Range) -> Range:
        """The range that covers both."""
        known = self.high is not None and other.high is not None
        return Range(
            min(self.low, other.low),
            max(self.high, other.high) if known else None,  # type: ignore[type-var]
        )


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run. ``left``: of its ``questions``, those that no run of this name has answered and judged; ``generations`` and
    ``retrievals``, those of judges included, are of these. ``depends``: its questions or prompts come from the answers of a run before it.
    ``flow``: the identity of its chain or agent, see ``flow_identity``; '' with a judge."""

    label: str
    run: str
    workflow: str
    dataset: str
    questions: int
    left: int
    generations: Range
    retrievals: Range
    llms: tuple[str, ...]
    retrievers: tuple[str, ...]
    depends: bool = False
    flow: str = ""


def flow_identity(workflow: str, settings: Mapping[str, Any]) -> str:
    """A digest of a chain or agent by what it does: neither its name nor its questions, models and indexes by name only."""
    own = {key: value for key, value in settings.items() if key not in _OF_QUESTIONS}
    if isinstance(chain := own.get("chain"), Mapping):
        own["chain"] = {key: value for key, value in chain.items() if key != "name"}
    return digest([workflow, json.loads(json.dumps(own, default=str))])


_OF_QUESTIONS = ("backends", "dataset_sha256", "records_sha256", "sampled")


@dataclass(frozen=True, slots=True)
class Plan:
    """All runs that can be foreseen. ``open_end``: why there may be more, in one sentence, or ''. ``indexes``: how many
    indexes its runs search; ``builds``: the recipes of those that must be built. ``measurements``: the labels of what is
    measured in processes of its own; ``rows``: the labels of its files of rows; ``generated``: of those for which a model is
    asked. ``warnings``: gold pages that an index lacks, and what the experiment says of its work."""

    kind: str
    name: str
    runs: tuple[PlannedRun, ...]
    open_end: str = ""
    indexes: int = 0
    builds: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()
    measurements: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for a reader of the numbers."""
        if not self.runs and not self.measurements and not self.generated:
            return ("It asks no model: it only works on existing files.",)
        guessed = [run.label for run in self.runs if run.depends]
        notes = list(self.warnings)
        if self.indexes:
            notes.append(
                f"It uses {self.indexes} index{'es' * (self.indexes != 1)}; {len(self.builds)} must be built first."
            )
        if self.measurements:
            notes.append(
                f"It measures in {len(self.measurements)} processes of their own: {list_some(self.measurements)}."
            )
        if self.generated:
            notes.append(
                f"A model is asked for rows ({list_some(self.generated)}); the number of requests depends on what they are made of."
            )
        if guessed:
            notes.append(
                f"{list_some(guessed)}: made of the answers of earlier runs, so their questions and calls are a guess."
            )
        return (*notes, *filter(None, [self.open_end]))


def as_json(plan: Plan, key: str = "suite") -> dict[str, Any]:
    """One JSON document: the runs, their sums, what is uncertain. ``key``: that of the experiment's kind."""
    generations = sum((run.generations for run in plan.runs), Range(0, 0))
    retrievals = sum((run.retrievals for run in plan.runs), Range(0, 0))
    return {
        key: plan.kind,
        "name": plan.name,
        "plan": [_run_as_json(run) for run in plan.runs],
        "total": {
            "parts": len(plan.runs),
            "questions": sum(run.questions for run in plan.runs),
            "left": sum(run.left for run in plan.runs),
            "generations": asdict(generations),
            "retrievals": asdict(retrievals),
        },
        "indexes": {"needed": plan.indexes, "to_build": len(plan.builds)},
        **({"measurements": list(plan.measurements)} if plan.measurements else {}),
        **({"rows": list(plan.rows)} if plan.rows else {}),
        "notes": list(plan.notes),
    }


def _run_as_json(run: PlannedRun) -> dict[str, Any]:
    value = asdict(run)
    del value["flow"]
    return value


def list_some(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
