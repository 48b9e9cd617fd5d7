"""Every aspect as a JSON document, its tables and its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rallebench.analysis.agents import (
    EpisodeSummary,
    TaskRun,
    aspects,
    figures,
    groups_of,
    mean,
    systems_of,
)
from rallebench.analysis.agents.errors import (
    CLASSES,
    ORIGINAL,
    RIGHT,
    THRESHOLD,
    WRONG,
    ErrorBreakdown,
    breakdowns,
)
from rallebench.analysis.agents.leaderboard import Leaderboard, board_of, domain_name
from rallebench.core.errors import UsageError
from rallebench.core.tables import Column, Figure, Table

MAX_TEXT = 300
"""The most characters of a text in an example."""


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """``reference``: of normalisation; ``sizes``: model → billions of parameters; ``examples``: per class."""

    original: bool = False
    reference: str = ""
    sizes: Mapping[str, float] = field(default_factory=dict)
    examples: int = 3


@dataclass(frozen=True, slots=True)
class Analysis:
    """``value``: the document. ``tex``: the table of the paper, which is written as LaTeX."""

    aspect: str
    value: Mapping[str, Any]
    tables: tuple[Table, ...]
    figures: Mapping[str, Figure]
    tex: Table | None = None
    notes: tuple[str, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """The analysis as JSON."""
        return {"aspect": self.aspect, **self.value, "notes": list(self.notes)}


def analyse(
    runs: Sequence[TaskRun], aspect: str, options: AnalysisOptions | None = None
) -> Analysis:
    """One aspect of runs. Raises UsageError."""
    if aspect not in ASPECTS:
        raise UsageError(f"There is no aspect {aspect!r}; known: {', '.join(ASPECTS)}.")
    if not runs:
        raise UsageError("No run is named; name one or more runs of agents.")
    return ASPECTS[aspect](runs, options or AnalysisOptions())


def notes_of(runs: Sequence[TaskRun], original: bool = False) -> tuple[str, ...]:
    """The failed and unanswered questions of the runs, and tasks with unequal numbers of questions."""
    effect = "count as 0, as in R-Eval" if original else "are in no figure"
    notes = [
        f"{run.name}: {run.failed} questions failed and {effect}." for run in runs if run.failed
    ]
    notes += [
        f"{run.name}: {run.missing} questions are not answered yet." for run in runs if run.missing
    ]
    by_task: dict[str, set[int]] = {}
    for run in runs:
        by_task.setdefault(run.task.name, set()).add(len(run.rows) + run.failed + run.missing)
    notes += [
        f"{task}: the runs have different numbers of questions ({', '.join(map(str, sorted(counts)))})."
        for task, counts in by_task.items()
        if len(counts) > 1
    ]
    return tuple(notes)


# performance


def performance(runs: Sequence[TaskRun], options: AnalysisOptions) -> Analysis:
    """Scores by task, means and ranks."""
    board = board_of(runs)
    value = {
        "tasks": [{"name": t.name, "environment": t.domain, "level": t.level} for t in board.tasks],
        "systems": [
            {
                "system": system.label,
                "scores": {task.name: board.scores[system][task] for task in board.tasks},
                "means": dict(board.means[system]),
                "ranks": dict(board.ranks[system]),
            }
            for system in board.systems
        ],
        "metrics": [
            {
                "run": run.name,
                "system": run.system.label,
                "task": run.task.name,
                "n": len(run.rows),
                "failed": run.failed,
                # R-Eval's reward, EM, and the position match of its appendix.
                **{
                    name: mean([getattr(row, name) for row in run.rows])
                    for name in ("reward", "correct", "position")
                },
            }
            for run in runs
        ],
    }
    notes = notes_of(runs, options.original)
    return Analysis("performance", value, tables_of(board), {}, tex_of(board), notes)


def tables_of(board: Leaderboard) -> tuple[Table, Table]:
    """The scores and their means in percent; the ranks by group and domain."""
    tasks = tuple(task.name for task in board.tasks)
    means = tuple(f"{domain_name(domain)} mean" for domain in board.domains)
    scores = Table(
        "F1 (rule for yes and no) by task",
        ("system", *tasks, *means),
        tuple(
            (
                system.label,
                *(board.scores[system][task] for task in board.tasks),
                *(board.means[system][domain] for domain in board.domains),
            )
            for system in board.systems
        ),
        True,
        "Means are over tasks, each of the same weight; a system without one of them has none.",
    )
    ranks = Table(
        "Ranks",
        ("system", *(group.label for group in board.groups), *map(domain_name, board.domains)),
        tuple(
            (system.label, *(_rank(board.ranks[system][name]) for name in board.ranked))
            for system in board.systems
        ),
        note="1 is best; of sums over the tasks of a level, equal ones share the mean of their ranks.",
    )
    return scores, ranks


def _rank(rank: float | None) -> float | None:
    return rank if rank is None or rank % 1 else int(rank)


def tex_of(board: Leaderboard) -> Table:
    """The paper's table: scores by task, and the rank after each group and mean."""
    columns = [Column("System", "text")]
    values: list[Sequence[float | None]] = []

    def add(name: str, scores: Sequence[float | None]) -> None:
        columns.append(Column(name, "percent"))
        values.append(scores)

    def rank(name: str) -> None:
        columns.append(Column("rank", "count"))
        values.append([board.ranks[system][name] for system in board.systems])

    for group in board.groups:
        for task in board.tasks:
            if task.group == group:
                add(task.name, [board.scores[system][task] for system in board.systems])
        rank(group.label)
    for domain in board.domains:
        add(domain_name(domain), [board.means[system][domain] for system in board.systems])
        rank(domain)
    rows = zip((system.label for system in board.systems), *values)
    return Table("", tuple(columns), tuple(rows))


# matching


def matching(runs: Sequence[TaskRun], options: AnalysisOptions) -> Analysis:
    """A radar per workflow."""
    workflows = aspects.matching(runs)
    value = {
        "workflows": [
            {
                "workflow": scores.workflow,
                "axes": [group.label for group in scores.groups],
                "models": {llm: list(row) for llm, row in scores.values.items()},
            }
            for scores in workflows
        ]
    }
    tables = [
        Table(
            scores.workflow,
            ("model", *(group.label for group in scores.groups)),
            tuple((llm, *row) for llm, row in scores.values.items()),
            True,
            "Mean F1 over the tasks of each.",
        )
        for scores in workflows
    ]
    return Analysis(
        "matching",
        value,
        tuple(tables),
        {scores.workflow: figures.radar(scores) for scores in workflows},
        notes=notes_of(runs, options.original),
    )


# errors


def errors(runs: Sequence[TaskRun], options: AnalysisOptions) -> Analysis:
    """Classes of right and wrong answers, with examples."""
    systems = breakdowns(runs, original=options.original, examples=options.examples)
    names = ORIGINAL if options.original else tuple(CLASSES)
    value = {
        "compat": "original" if options.original else "corrected",
        "classes": {name: CLASSES[name] for name in names},
        "systems": [
            {
                "system": breakdown.system.label,
                "n": breakdown.n,
                "failed": breakdown.failed,
                "unscored": breakdown.unscored,
                "verdicts": breakdown.verdicts,
                "blind": breakdown.blind,
                "percent": {name: round(breakdown.shares[name], 4) for name in names},
                "ACC": round(breakdown.sum(RIGHT), 4),
                "WA": round(breakdown.sum(WRONG), 4),
                "counts": dict(breakdown.counts),
                "stop_reasons": {name: dict(row) for name, row in breakdown.stops.items()},
                "averaged_over": [group.label for group in breakdown.groups],
                "examples": {
                    name: [_example(row) for row in rows]
                    for name, rows in breakdown.examples.items()
                },
            }
            for breakdown in systems
        ],
    }
    rows = []
    for breakdown in systems:
        percent = [breakdown.sum(RIGHT), breakdown.sum(WRONG)]
        percent += [breakdown.shares[name] for name in names]
        rows.append((breakdown.system.label, *(number / 100 for number in percent), breakdown.n))
    note = (
        f"The mean over environments and levels. An answer is right from F1 {THRESHOLD} on, as in "
        "R-Eval; the class EM is not exact match. "
        + "; ".join(f"{name}: {CLASSES[name]}" for name in names)
        + "."
    )
    return Analysis(
        "errors",
        value,
        (Table("Errors", ("system", "ACC", "WA", *names, "n"), tuple(rows), True, note),),
        {breakdown.system.label: figures.rings(breakdown) for breakdown in systems},
        notes=(*notes_of(runs, options.original), *_error_notes(systems, options.original)),
    )


def _error_notes(systems: Sequence[ErrorBreakdown], original: bool) -> list[str]:
    if original:
        labels = [row.system.label for row in systems if abs(row.sum(CLASSES) - 100) > 0.05]
        return [
            "R-Eval's code counts out of 100 a task, so these shares are not shares of the "
            f"questions: {', '.join(labels)}."
        ] * bool(labels)
    verdicts = sum(row.verdicts for row in systems)
    blind = sum(row.blind for row in systems)
    unscored = sum(row.unscored for row in systems)
    notes = {
        f"The gold of {verdicts} questions (all systems together) is a bare verdict (yes, no, "
        "SUPPORTS …), for which no observation is evidence: right answers count as AM, wrong ones "
        "never as GE.": verdicts,
        f"The traces of {blind} questions have no observation: the environment was not asked, or a log "
        "does not mark its observations by 'Observation 1: …'. Right answers count as AM, wrong ones "
        "never as GE.": blind,
        f"{unscored} questions have no gold answer and are in no class.": unscored,
    }
    return [note for note, count in notes.items() if count]


def _example(row: EpisodeSummary) -> dict[str, Any]:
    return {
        "qid": row.qid,
        "question": _short(row.question),
        "gold": [_short(gold) for gold in row.golds],
        "answer": _short(row.answer),
        "reward": row.reward,
        "stop_reason": row.reason,
        "observed": _short(row.observed),
    }


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"


# deployment


def deployment(runs: Sequence[TaskRun], options: AnalysisOptions) -> Analysis:
    """F1 against seconds and tokens, by environment."""
    models = {system.llm for system in systems_of(runs)}
    if unknown := [name for name in options.sizes if name not in models]:
        raise UsageError(f"There is a size for {unknown[0]!r}, but no run of that model.")
    points = aspects.deployment(runs, options.sizes)
    value = [
        {
            "system": point.system.label,
            "environment": point.domain,
            "reward": point.reward,
            "seconds": point.seconds,
            "tokens": point.tokens,
            "size": point.size,
            "memory": point.memory,
            "n_timed": point.n,
        }
        for point in points
    ]
    rows = [
        (
            point.system.label,
            domain_name(point.domain),
            None if point.reward is None else 100 * point.reward,
            point.seconds,
            point.tokens,
            point.size,
            point.memory / 1e6 if point.memory else None,
        )
        for point in points
    ]
    note = (
        f"Seconds of a question's requests, over a random sample of at most {aspects.TIMED} questions; "
        "size in billions of parameters."
    )
    if all(point.size is None for point in points):
        note += " No model's name states its size, so a bubble's area is the memory; give sizes as MODEL=7."
    plots = {
        f"{domain} {across}": figures.bubbles(points, domain, across)
        for domain in dict.fromkeys(point.domain for point in points)
        for across in ("seconds", "tokens")
        if any(getattr(point, across) is not None for point in points)
    }
    heads = ("system", "environment", "F1 (percent)", "seconds", "tokens", "size", "memory (MB)")
    table = Table("Deployment", heads, tuple(rows), note=note)
    return Analysis(
        "deployment", {"points": value}, (table,), plots, notes=notes_of(runs, options.original)
    )


# normalisation


def normalization(runs: Sequence[TaskRun], options: AnalysisOptions) -> Analysis:
    """Every system divided by a reference."""
    scores = aspects.normalize(runs, options.reference)
    reference, groups = scores.reference.label, groups_of(runs)
    value = {
        "reference": reference,
        "ratios": {
            system.label: {group.label: ratio for group, ratio in row.items()}
            for system, row in scores.ratios.items()
        },
        "without": [group.label for group in scores.without],
    }
    rows = [
        (system.label, *(row.get(group) for group in groups))
        for system, row in scores.ratios.items()
    ]
    table = Table(
        "Normalised",
        ("system", *(group.label for group in groups)),
        tuple(rows),
        note=f"Mean F1 divided by that of {reference}; 1 is equal.",
    )
    notes = list(notes_of(runs, options.original))
    if scores.without:
        labels = ", ".join(group.label for group in scores.without)
        notes.append(
            f"{reference} has no score, or 0, on {labels}, so there is no ratio; choose another reference."
        )
    return Analysis(
        "normalization",
        value,
        (table,),
        {
            "by workflow": figures.boxes(scores, "workflow"),
            "by model": figures.boxes(scores, "model"),
        },
        notes=tuple(notes),
    )


# combination


def combination(runs: Sequence[TaskRun], options: AnalysisOptions) -> Analysis:
    """The best system for each question."""
    tasks = aspects.combination(runs)
    value = {
        "tasks": [
            {
                "task": oracle.task.name,
                "n": oracle.n,
                "systems": oracle.systems,
                "oracle": oracle.mean,
                "deviation": oracle.deviation,
                "best": oracle.best.label if oracle.best else None,
                "tied": oracle.tied,
                "best_mean": oracle.best_mean,
                "best_deviation": oracle.best_deviation,
            }
            for oracle in tasks
        ]
    }
    rows = [
        (
            oracle.task.name,
            oracle.systems,
            oracle.n,
            oracle.best.label
            if oracle.best
            else f"{oracle.tied} are equal"
            if oracle.tied
            else None,
            _plus(oracle.best_mean, oracle.best_deviation),
            _plus(oracle.mean, oracle.deviation),
        )
        for oracle in tasks
    ]
    table = Table(
        "Combination",
        ("task", "systems", "questions", "best single", "its F1", "best of all"),
        tuple(rows),
        note="F1 ± standard deviation per question; best of all: the highest of all systems for each "
        "question that all answered.",
    )
    return Analysis(
        "combination",
        value,
        (table,),
        {"combination": figures.oracle(tasks)},
        notes=notes_of(runs, options.original),
    )


def _plus(value: float | None, deviation: float | None) -> str | None:
    return (
        None if value is None or deviation is None else f"{100 * value:.1f} ± {100 * deviation:.1f}"
    )


ASPECTS: Mapping[str, Callable[[Sequence[TaskRun], AnalysisOptions], Analysis]] = {
    "performance": performance,
    "matching": matching,
    "errors": errors,
    "deployment": deployment,
    "normalization": normalization,
    "combination": combination,
}
"""R-Eval's name of an aspect → its analysis."""
