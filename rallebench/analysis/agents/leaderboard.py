"""Scores of systems by task, their means and ranks, as in R-Eval's Tables 3 and 5 (Tu et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rallebench.analysis.agents import (
    DOMAIN_NAMES,
    AgentTask,
    System,
    TaskGroup,
    TaskRun,
    groups_of,
    systems_of,
    tasks_of,
)

ALL = "all"


def average_ranks(values: Sequence[float | None]) -> list[float | None]:
    """1 is the highest; equal values share the mean of their ranks; None has none.

    >>> average_ranks([0.5, 0.9, 0.5, None, 0.1])
    [2.5, 1.0, 2.5, None, 4.0]
    """
    import pandas as pd

    # Equal sums may differ in their last digits.
    ranks = pd.Series(values, dtype=float).round(9).rank(ascending=False)
    return [None if pd.isna(rank) else float(rank) for rank in ranks]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """``scores``: system → task → mean reward, 0..1, None without a run.

    ``means``: system → ``wiki``, ``aminer`` …, ``all`` → the unweighted mean over their tasks, None if one
    is missing. ``sums``: system → group → the sum of its tasks. ``ranks``: system → a group's label or a
    domain → rank.
    """

    tasks: tuple[AgentTask, ...]
    systems: tuple[System, ...]
    scores: Mapping[System, Mapping[AgentTask, float | None]]
    means: Mapping[System, Mapping[str, float | None]]
    sums: Mapping[System, Mapping[TaskGroup, float | None]]
    ranks: Mapping[System, Mapping[str, float | None]]
    groups: tuple[TaskGroup, ...]

    @property
    def domains(self) -> tuple[str, ...]:
        """The environments, then ``all``."""
        return (*dict.fromkeys(task.domain for task in self.tasks), ALL)

    @property
    def ranked(self) -> tuple[str, ...]:
        """The columns of ranks."""
        return (*(group.label for group in self.groups), *self.domains)


def board_of(runs: Sequence[TaskRun]) -> Leaderboard:
    """The leaderboard of runs."""
    scores = {(run.system, run.task): run.reward for run in runs}
    return board(systems_of(runs), tasks_of(runs), scores, groups_of(runs))


def board(
    systems: Sequence[System],
    tasks: Sequence[AgentTask],
    scores: Mapping[tuple[System, AgentTask], float | None],
    groups: Sequence[TaskGroup],
) -> Leaderboard:
    """The leaderboard of scores (system, task) → 0..1."""
    table = {system: {task: scores.get((system, task)) for task in tasks} for system in systems}
    domains = dict.fromkeys(task.domain for task in tasks)
    means, sums = {}, {}
    for system, row in table.items():
        by_domain = {
            domain: _mean([row[task] for task in tasks if task.domain == domain])
            for domain in domains
        }
        means[system] = {**by_domain, ALL: _mean([row[task] for task in tasks])}
        sums[system] = {
            group: _sum([row[task] for task in tasks if task.group == group]) for group in groups
        }
    columns = {group.label: [sums[system][group] for system in systems] for group in groups}
    columns |= {name: [means[system][name] for system in systems] for name in (*domains, ALL)}
    ranked = {name: average_ranks(values) for name, values in columns.items()}
    ranks = {
        system: {name: values[i] for name, values in ranked.items()}
        for i, system in enumerate(systems)
    }
    return Leaderboard(tuple(tasks), tuple(systems), table, means, sums, ranks, tuple(groups))


def _sum(values: Sequence[float | None]) -> float | None:
    """None if a task is missing: a sum over fewer tasks cannot be ranked with the others."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers and len(numbers) == len(values) else None


def _mean(values: Sequence[float | None]) -> float | None:
    total = _sum(values)
    return None if total is None else total / len(values)


def domain_name(domain: str) -> str:
    """The display name of an environment or of ``all``."""
    return DOMAIN_NAMES.get(domain, domain)
