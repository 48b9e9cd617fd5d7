"""What an experiment would run: its runs, questions, model calls and retrievals, found without asking a model.

The experiment is played several times with fake replies. What is the same each time does not depend on the answers; what
differs, or cannot be played on, is said to depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rallebench.core.experiments import Experiment, ExperimentRequest
from rallebench.engine.dry_run import FAKES, DryRun, IndexNeeds, PlanContext, Range, dry_run


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run. ``left``: of its ``questions``, those that no run of this name has answered and judged; ``generations`` and
    ``retrievals``, those of judges included, are of these. ``depends``: its questions or prompts come from the answers of a run before it."""

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


@dataclass(frozen=True, slots=True)
class Plan:
    """All runs that can be foreseen. ``open_end``: why there may be more, in one sentence, or ''. ``indexes``: how many
    indexes its runs search; ``builds``: the recipes of those that must be built. ``measurements``: the labels of what is
    measured in processes of its own; ``rows``: the labels of its files of rows; ``generated``: of those for which a model is
    asked. ``warnings``: gold pages that an index lacks."""

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
        """What a reader of the numbers must know."""
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
                f"It measures in {len(self.measurements)} processes of their own: {listed(self.measurements)}."
            )
        if self.generated:
            notes.append(
                f"A model is asked for rows ({listed(self.generated)}); the number of requests depends on what they are made of."
            )
        if guessed:
            notes.append(
                f"{listed(guessed)}: made of the answers of earlier runs, so their questions and calls are a guess."
            )
        return (*notes, *filter(None, [self.open_end]))


def plan(
    request: ExperimentRequest,
    experiment: Callable[[ExperimentRequest], Experiment],
    context: PlanContext,
) -> Plan:
    """Everything that ``perform`` would run. Loads nothing, writes nothing. Raises RalleError for a wrong request, and
    MismatchError if a run of that name was made with other settings."""
    indexes = IndexNeeds()
    plays = [dry_run(request, experiment, context, fake, indexes) for fake in FAKES]
    most, least = (count(len(runs) for runs, _ in plays) for count in (max, min))
    runs = tuple(
        _merged([played[i] if i < len(played) else None for played, _ in plays])
        for i in range(most)
    )
    open_end = ""
    if not any(ended for played, ended in plays if len(played) == most):
        last = runs[-1].label if runs else [*indexes.built, *indexes.rows, *indexes.missing][-1]
        open_end = f"What comes after {last!r} depends on its answers and can only be planned when they exist."
    elif least < most:
        open_end = f"How many runs there are depends on the answers; at least {least}."
    warnings = dict.fromkeys(
        f"{run.request.dataset.name}: {sentence}"
        for played, _ in plays
        for run in played
        for sentence in context.coverage(run.request, None)
    )
    builds = tuple(indexes.missing.values())
    return Plan(
        request.kind,
        request.name,
        runs,
        open_end,
        len(indexes.built) + len(builds),
        builds,
        tuple(warnings),
        tuple(indexes.measurements),
        tuple(indexes.rows),
        tuple(label for label, asks in indexes.rows.items() if asks),
    )


def _merged(plays: Sequence[DryRun | None]) -> PlannedRun:
    """One run as it was in every dry run; None: it did not come."""
    seen = [run for run in plays if run is not None]
    first, request = seen[0], seen[0].request
    same = len({(run.request.label, run.mark) for run in seen}) == 1
    generations, retrievals = first.counts.generations, first.counts.retrievals
    for run in seen[1:]:
        generations = generations.either(run.counts.generations)
        retrievals = retrievals.either(run.counts.retrievals)
    label = request.label
    return PlannedRun(
        label if same else _common([run.request.label for run in seen]) or label,
        first.run if same else "",
        request.flow.workflow,
        request.dataset.name,
        max(len(run.request.examples) for run in seen),
        max(run.counts.remaining for run in seen),
        generations,
        retrievals,
        tuple(dict.fromkeys((*request.flow.llms, *(judge.llm for judge in request.judges)))),
        request.flow.retrievers,
        not same or len(seen) < len(plays),
    )


def _common(labels: Sequence[str]) -> str:
    """What labels begin with: the rest is a mark of fake answers.

    >>> _common(["noise=1 judged a1f", "noise=1 judged b07"])
    'noise=1 judged'
    """
    shortest = min(labels, key=len)
    return "".join(
        letter
        for i, letter in enumerate(shortest)
        if all(label.startswith(shortest[: i + 1]) for label in labels)
    ).rstrip()


def as_json(plan: Plan, key: str = "suite") -> dict[str, Any]:
    """One JSON document: the runs, their sums, what is uncertain. ``key``: that of the experiment's kind."""
    generations = sum((run.generations for run in plan.runs), Range(0, 0))
    retrievals = sum((run.retrievals for run in plan.runs), Range(0, 0))
    return {
        key: plan.kind,
        "name": plan.name,
        "plan": [asdict(run) for run in plan.runs],
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


def listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
