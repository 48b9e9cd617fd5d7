"""R-Eval's analyses by name. This module adds matching, deployment, normalisation and combination to scores and
errors.
"""

from __future__ import annotations

import math
import random
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rallebench.analysis.agents import (
    AgentTask,
    Analysis,
    AnalysisOptions,
    System,
    TaskRun,
    domain_name,
    group_mean,
    list_groups,
    list_systems,
    list_tasks,
    mean,
)
from rallebench.analysis.agents.errors import errors
from rallebench.analysis.agents.leaderboard import performance
from rallebench.core.errors import UsageError
from rallebench.core.report import Estimate
from rallebench.core.tables import Figure, FigureKind, Table

TIMED, SEED = 100, 42
"""R-Eval measures time on a random sample of this size."""
SIZES: Mapping[str, float] = {"gpt-4": 50.0, "gpt-3.5": 20.0}
"""Billions of parameters assumed by R-Eval's plot, for models without a size in their name."""

_BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z0-9])", re.IGNORECASE)


def analyse(
    runs: Sequence[TaskRun], aspect: str, options: AnalysisOptions | None = None
) -> Analysis:
    """Analyse one aspect of runs. Raises UsageError."""
    if aspect not in ASPECTS:
        raise UsageError(f"There is no aspect {aspect!r}; known: {', '.join(ASPECTS)}.")
    if not runs:
        raise UsageError("No run is named; name one or more runs of agents.")
    options = options or AnalysisOptions()
    analysis = ASPECTS[aspect](runs, options)
    return replace(analysis, notes=(*aspect_notes(runs, options.original), *analysis.notes))


def aspect_notes(runs: Sequence[TaskRun], original: bool = False) -> tuple[str, ...]:
    """Count failed and unanswered questions, and name tasks with unequal numbers of questions."""
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


# matching


def matching(runs: Sequence[TaskRun], options: AnalysisOptions) -> Analysis:
    """Return one radar per workflow, with every model's mean over the tasks of each environment and level."""
    groups = list_groups(runs)
    axes = [group.label for group in groups]
    workflows: list[dict[str, Any]] = []
    for workflow in dict.fromkeys(run.system.workflow for run in runs):
        systems = [system for system in list_systems(runs) if system.workflow == workflow]
        models = {
            system.llm or workflow: [group_mean(runs, system, group) for group in groups]
            for system in systems
        }
        workflows.append({"workflow": workflow, "axes": axes, "models": models})
    tables = (
        Table(
            value["workflow"],
            ("model", *axes),
            tuple((llm, *row) for llm, row in value["models"].items()),
            True,
            "Mean F1 over the tasks of each.",
        )
        for value in workflows
    )
    figures = {value["workflow"]: _radar(value) for value in workflows}
    return Analysis("matching", {"workflows": workflows}, tuple(tables), figures)


def _radar(workflow: Mapping[str, Any]) -> Figure:
    """Draw one polygon per model, in percent; bars for fewer than three axes."""
    axes = workflow["axes"]
    series = {
        llm: tuple(zip(axes, (None if value is None else 100 * value for value in row)))
        for llm, row in workflow["models"].items()
    }
    kind: FigureKind = "radar" if len(axes) >= 3 else "bar"
    return Figure(workflow["workflow"], "", "F1 (percent)", series, kind, high=100.0)


# deployment


def deployment(runs: Sequence[TaskRun], options: AnalysisOptions) -> Analysis:
    """Compare F1 with seconds and tokens, by environment."""
    models = {system.llm for system in list_systems(runs)}
    if unknown := [name for name in options.sizes if name not in models]:
        raise UsageError(f"There is a size for {unknown[0]!r}, but no run of that model.")
    domains = dict.fromkeys(task.domain for task in list_tasks(runs))
    points = []
    for domain in domains:
        for system in list_systems(runs):
            in_domain = [r for r in runs if r.system == system and r.task.domain == domain]
            if any(run.rows for run in in_domain):
                points.append(_deployment_point(system, domain, in_domain, options.sizes))
    rows = tuple(
        (
            point["system"],
            domain_name(point["environment"]),
            None if point["reward"] is None else 100 * point["reward"],
            point["seconds"],
            point["tokens"],
            point["size"],
            point["memory"] / 1e6 if point["memory"] else None,
        )
        for point in points
    )
    note = (
        f"Seconds of a question's requests, over a random sample of at most {TIMED} questions; "
        "size in billions of parameters."
    )
    if all(point["size"] is None for point in points):
        note += " No model's name states its size, so a bubble's area is the memory; give sizes as MODEL=7."
    figures = {
        f"{domain} {across}": _bubbles(points, domain, across)
        for domain in domains
        for across in ("seconds", "tokens")
        if any(p[across] is not None for p in points if p["environment"] == domain)
    }
    heads = ("system", "environment", "F1 (percent)", "seconds", "tokens", "size", "memory (MB)")
    table = Table("Deployment", heads, rows, note=note)
    return Analysis("deployment", {"points": points}, (table,), figures)


def _deployment_point(
    system: System, domain: str, runs: Sequence[TaskRun], sizes: Mapping[str, float]
) -> dict[str, Any]:
    """A system in one environment. ``reward``: 0..1 over all questions. ``seconds`` and ``tokens``: per question,
    over a seeded sample of at most TIMED questions. ``size``: billions of parameters. ``memory``: bytes. Unknown
    values are None.
    """
    rows = [row for run in runs for row in run.rows]
    sample = random.Random(SEED).sample(rows, TIMED) if len(rows) > TIMED else rows
    return {
        "system": system.label,
        "environment": domain,
        "reward": mean([row.reward for row in rows]),
        "seconds": mean([row.seconds for row in sample]),
        "tokens": mean([row.tokens for row in sample]),
        "size": sizes.get(system.llm, model_size(system.llm)),
        "memory": max((run.memory for run in runs if run.memory), default=None),
        "n_timed": sum(row.seconds is not None for row in sample),
    }


def model_size(llm: str) -> float | None:
    """Billions of parameters according to a model's name, or R-Eval's assumption; None if unknown.

    >>> model_size("llama-2-13b-chat"), model_size("smollm2-135m"), model_size("gpt-4-turbo"), model_size("reader")
    (13.0, 0.135, 50.0, None)
    """
    match = _BILLIONS.search(llm.replace("_", "-").replace("-", " ").replace("/", " "))
    if match:
        return float(match[1]) * (1.0 if match[2].lower() == "b" else 0.001)
    return next((size for name, size in SIZES.items() if name in llm.lower()), None)


def _bubbles(points: Sequence[Mapping[str, Any]], domain: str, across: str) -> Figure:
    """Draw F1 against seconds or tokens per question, one bubble per system. The area is the model's size, or the
    memory of its models and indexes if no size is known.
    """
    known = [
        point
        for point in points
        if point["environment"] == domain and None not in (point["reward"], point[across])
    ]
    by = "size" if any(point["size"] for point in known) else "memory"
    series = {
        point["system"]: ((point[across], 100 * point["reward"], point[by], _size_text(point)),)
        for point in known
    }
    label, empty = f"{across} a question", f"No system has both F1 and {across} here."
    return Figure(domain_name(domain), label, "F1 (percent)", series, "bubble", empty=empty)


def _size_text(point: Mapping[str, Any]) -> str:
    if point["size"]:
        return f"{point['size']:g} B parameters"
    return f"{point['memory'] / 1e6:,.0f} MB" if point["memory"] else "size not known"


# normalisation


def normalization(runs: Sequence[TaskRun], options: AnalysisOptions) -> Analysis:
    """Divide every system by a reference, given as a label or a run's name; by default the first system."""
    systems, groups = list_systems(runs), list_groups(runs)
    by_name = {run.name: run.system for run in runs} | {system.label: system for system in systems}
    if options.reference and options.reference not in by_name:
        known = ", ".join(system.label for system in systems)
        raise UsageError(
            f"The reference {options.reference!r} is none of the systems; they are {known}."
        )
    reference = by_name[options.reference] if options.reference else systems[0]
    divisors = {group: group_mean(runs, reference, group) for group in groups}
    ratios: dict[System, dict[str, float]] = {}
    for system in systems:
        for group, divisor in divisors.items():
            value = group_mean(runs, system, group)
            if value is not None and divisor:
                ratios.setdefault(system, {})[group.label] = value / divisor
    without = [group.label for group in groups if not divisors[group]]
    labels = tuple(group.label for group in groups)
    table = Table(
        "Normalised",
        ("system", *labels),
        tuple((system.label, *map(row.get, labels)) for system, row in ratios.items()),
        note=f"Mean F1 divided by that of {reference.label}; 1 is equal.",
    )
    note = (
        f"{reference.label} has no score, or 0, on {', '.join(without)}, so there is no ratio; "
        "choose another reference."
    )
    title = f"F1 by that of {reference.label}"
    content = {
        "reference": reference.label,
        "ratios": {system.label: row for system, row in ratios.items()},
        "without": without,
    }
    figures = {
        "by workflow": _boxes(title, ratios, lambda system: system.workflow),
        "by model": _boxes(title, ratios, lambda system: system.llm),
    }
    return Analysis("normalization", content, (table,), figures, notes=(note,) if without else ())


def _boxes(
    title: str, ratios: Mapping[System, Mapping[str, float]], part: Callable[[System], str]
) -> Figure:
    """Draw one box per workflow or per model; 1 is the reference."""
    boxes: dict[str, list[tuple[str, float]]] = {}
    for system, row in ratios.items():
        boxes.setdefault(part(system) or system.label, []).extend(
            (f"{system.label}, {group}", ratio) for group, ratio in row.items()
        )
    series = {name: tuple(values) for name, values in boxes.items()}
    return Figure(title, "", "ratio", series, "box")


# combination


def combination(runs: Sequence[TaskRun], options: AnalysisOptions) -> Analysis:
    """Combine systems by picking the best one for each question."""
    tasks = list_tasks(runs)
    combined = [_combine_systems(task, [run for run in runs if run.task == task]) for task in tasks]
    rows = tuple(
        (
            oracle["task"],
            oracle["systems"],
            oracle["n"],
            oracle["best"] or (f"{oracle['tied']} are equal" if oracle["tied"] else None),
            _plus_minus(oracle["best_mean"], oracle["best_deviation"]),
            _plus_minus(oracle["oracle"], oracle["deviation"]),
        )
        for oracle in combined
    )
    table = Table(
        "Combination",
        ("task", "systems", "questions", "best single", "its F1", "best of all"),
        rows,
        note="F1 ± standard deviation per question; best of all: the highest of all systems for each "
        "question that all answered.",
    )
    figure = _oracle_bars(zip(tasks, combined))
    return Analysis("combination", {"tasks": combined}, (table,), {"combination": figure})


def _combine_systems(task: AgentTask, runs: Sequence[TaskRun]) -> dict[str, Any]:
    """Combine the systems over the ``n`` questions that all have answered. ``oracle``: the score of the best system
    per question, 0..1. ``best``: the best single system; None if ``tied`` systems share the highest mean. Deviations
    are population standard deviations per question.
    """
    rewards = {
        run.system: {row.qid: row.reward for row in run.rows if row.reward is not None}
        for run in runs
    }
    shared = [
        qid for qid in next(iter(rewards.values())) if all(qid in row for row in rewards.values())
    ]
    result = {"task": task.name, "n": len(shared), "systems": len(rewards), "tied": 0}
    result |= dict.fromkeys(("oracle", "deviation", "best", "best_mean", "best_deviation"))
    if not shared:
        return result
    values = {system: [row[qid] for qid in shared] for system, row in rewards.items()}
    oracle = [max(row) for row in zip(*values.values())]
    sums = {system: math.fsum(row) for system, row in values.items()}
    first, *others = [system for system in sums if sums[system] == max(sums.values())]
    return result | {
        "oracle": mean(oracle),
        "deviation": statistics.pstdev(oracle),
        "best": None if others else first.label,
        "tied": len(others) + 1 if others else 0,
        "best_mean": mean(values[first]),
        "best_deviation": statistics.pstdev(values[first]),
    }


def _plus_minus(value: float | None, deviation: float | None) -> str | None:
    if value is None or deviation is None:
        return None
    return f"{100 * value:.1f} ± {100 * deviation:.1f}"


def _oracle_bars(tasks: Iterable[tuple[AgentTask, Mapping[str, Any]]]) -> Figure:
    """Draw the best single system and the oracle of each task, with the standard deviation per question."""
    single, best = [], []
    for task, oracle in tasks:
        if not oracle["n"]:
            continue
        name = f"{task.order} {task.name}" if task.order != "~" else task.name
        basis = f"{oracle['systems']} systems, {oracle['n']} questions"
        spread = _spread(oracle["best_mean"], oracle["best_deviation"], oracle["n"])
        single.append((name, spread, oracle["best"] or basis))
        best.append((name, _spread(oracle["oracle"], oracle["deviation"], oracle["n"]), basis))
    series = {"best single system": tuple(single), "best of all, per question": tuple(best)}
    empty = "No task has questions that all systems answered."
    return Figure("Combination", "", "F1", series if single else {}, "bar", empty=empty)


def _spread(value: float, deviation: float, n: int) -> Estimate:
    """Return a mean in percent, with an interval of one standard deviation on each side."""
    return Estimate(100 * value, 100 * (value - deviation), 100 * (value + deviation), n)


ASPECTS: Mapping[str, Callable[[Sequence[TaskRun], AnalysisOptions], Analysis]] = {
    "performance": performance,
    "matching": matching,
    "errors": errors,
    "deployment": deployment,
    "normalization": normalization,
    "combination": combination,
}
"""R-Eval's name of an aspect → its analysis."""
