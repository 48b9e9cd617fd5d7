"""R-Eval's analyses besides the errors: matching, deployment, normalisation, combination. Pure."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rallebench.analysis.agents import (
    AgentTask,
    System,
    TaskGroup,
    TaskRun,
    groups_of,
    mean,
    systems_of,
    tasks_of,
)
from rallebench.core.errors import UsageError

TIMED, SEED = 100, 42
"""R-Eval takes the time of a random sample of this size."""
SIZES: Mapping[str, float] = {"gpt-4": 50.0, "gpt-3.5": 20.0}
"""Billions of parameters in R-Eval's plot, for models without a size in their name."""

_BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z0-9])", re.IGNORECASE)


# matching


@dataclass(frozen=True, slots=True)
class MatchingScores:
    """One workflow. ``values``: model → its mean reward on each of ``groups``, None without a run there."""

    workflow: str
    groups: tuple[TaskGroup, ...]
    values: Mapping[str, tuple[float | None, ...]]


def matching(runs: Sequence[TaskRun]) -> tuple[MatchingScores, ...]:
    """One value per workflow; a group's score is the unweighted mean over its tasks."""
    groups = groups_of(runs)
    scores = []
    for workflow in dict.fromkeys(run.system.workflow for run in runs):
        models = dict.fromkeys(run.system.llm for run in runs if run.system.workflow == workflow)
        values = {
            llm or workflow: tuple(
                _group_mean(runs, System(workflow, llm), group) for group in groups
            )
            for llm in models
        }
        scores.append(MatchingScores(workflow, groups, values))
    return tuple(scores)


def _group_mean(runs: Sequence[TaskRun], system: System, group: TaskGroup) -> float | None:
    return mean([run.reward for run in runs if run.system == system and run.task.group == group])


# deployment


@dataclass(frozen=True, slots=True)
class DeploymentPoint:
    """A system in one environment. ``seconds`` and ``tokens`` per question, ``reward`` 0..1, ``size`` in
    billions of parameters, ``memory`` in bytes; None = unknown. ``n``: questions with a time."""

    system: System
    domain: str
    reward: float | None
    seconds: float | None
    tokens: float | None
    size: float | None
    n: int
    memory: int | None = None


def deployment(
    runs: Sequence[TaskRun], sizes: Mapping[str, float] | None = None, *, timed: int = TIMED
) -> tuple[DeploymentPoint, ...]:
    """A point per environment and system. The reward is over all questions, time and tokens over at most
    ``timed`` of them, drawn with a fixed seed (0: all). ``sizes``: model → billions of parameters,
    instead of the size in its name."""
    points = []
    for domain in dict.fromkeys(task.domain for task in tasks_of(runs)):
        for system in systems_of(runs):
            own_runs = [run for run in runs if run.system == system and run.task.domain == domain]
            rows = [row for run in own_runs for row in run.rows]
            if not rows:
                continue
            sample = random.Random(SEED).sample(rows, timed) if 0 < timed < len(rows) else rows
            points.append(
                DeploymentPoint(
                    system,
                    domain,
                    mean([row.reward for row in rows]),
                    mean([row.seconds for row in sample]),
                    mean([row.tokens for row in sample]),
                    (sizes or {}).get(system.llm, size_of(system.llm)),
                    sum(row.seconds is not None for row in sample),
                    max((run.memory for run in own_runs if run.memory), default=None),
                )
            )
    return tuple(points)


def size_of(llm: str) -> float | None:
    """Billions of parameters in a model's name, or R-Eval's assumption; None if unknown.

    >>> size_of("llama-2-13b-chat"), size_of("smollm2-135m"), size_of("gpt-4-turbo"), size_of("reader")
    (13.0, 0.135, 50.0, None)
    """
    match = _BILLIONS.search(llm.replace("_", "-").replace("-", " ").replace("/", " "))
    if match:
        return float(match[1]) * (1.0 if match[2].lower() == "b" else 0.001)
    return next((size for name, size in SIZES.items() if name in llm.lower()), None)


# normalisation


@dataclass(frozen=True, slots=True)
class NormalizedScores:
    """``ratios``: system → group → its mean reward / that of ``reference``. ``without``: groups where the
    reference has no reward, or 0, so there is no ratio."""

    reference: System
    ratios: Mapping[System, Mapping[TaskGroup, float]]
    without: tuple[TaskGroup, ...]


def normalize(runs: Sequence[TaskRun], reference: str = "") -> NormalizedScores:
    """Every system divided by a reference, a label or a run's name; default: the first system.

    Raises UsageError for an unknown reference."""
    systems, groups = systems_of(runs), groups_of(runs)
    by_name = {run.name: run.system for run in runs} | {system.label: system for system in systems}
    if reference and reference not in by_name:
        raise UsageError(
            f"The reference {reference!r} is none of the systems; they are {', '.join(s.label for s in systems)}."
        )
    reference_system = by_name[reference] if reference else systems[0]
    reference_means = {group: _group_mean(runs, reference_system, group) for group in groups}
    ratios: dict[System, dict[TaskGroup, float]] = {}
    for system in systems:
        for group in groups:
            value, divisor = _group_mean(runs, system, group), reference_means[group]
            if value is not None and divisor:
                ratios.setdefault(system, {})[group] = value / divisor
    return NormalizedScores(
        reference_system, ratios, tuple(group for group in groups if not reference_means[group])
    )


# combination


@dataclass(frozen=True, slots=True)
class OracleScore:
    """A task. ``mean`` and ``deviation`` (population, per question): of the best system for each question,
    0..1. ``best``: the system with the highest mean, None if ``tied`` systems share it. ``n``: questions
    that all systems answered."""

    task: AgentTask
    n: int
    mean: float | None
    deviation: float | None
    best: System | None
    best_mean: float | None
    best_deviation: float | None
    systems: int
    tied: int = 0


def combination(runs: Sequence[TaskRun]) -> tuple[OracleScore, ...]:
    """The score of an oracle that picks the best system for each question."""
    return tuple(
        _combined(task, [run for run in runs if run.task == task]) for task in tasks_of(runs)
    )


def _combined(task: AgentTask, runs: Sequence[TaskRun]) -> OracleScore:
    rewards = {
        run.system: {row.qid: row.reward for row in run.rows if row.reward is not None}
        for run in runs
    }
    shared = [
        qid for qid in next(iter(rewards.values())) if all(qid in row for row in rewards.values())
    ]
    if not shared:
        return OracleScore(task, 0, None, None, None, None, None, len(rewards))
    per_system = {system: [row[qid] for qid in shared] for system, row in rewards.items()}
    oracle = [max(values) for values in zip(*per_system.values())]
    sums = {system: math.fsum(values) for system, values in per_system.items()}
    first, *others = [system for system in sums if sums[system] == max(sums.values())]
    return OracleScore(
        task,
        len(shared),
        mean(oracle),
        _deviation(oracle),
        None if others else first,
        mean(per_system[first]),
        _deviation(per_system[first]),
        len(rewards),
        len(others) + 1 if others else 0,
    )


def _deviation(values: Sequence[float]) -> float:
    average = sum(values) / len(values)
    return float((sum((value - average) ** 2 for value in values) / len(values)) ** 0.5)
