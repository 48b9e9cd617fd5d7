"""Scores of systems by task, with means and ranks as in R-Eval's Tables 3 and 5 (Tu et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.analysis.agents import (
    AgentTask,
    Analysis,
    AnalysisOptions,
    System,
    TaskGroup,
    TaskRun,
    domain_name,
    list_groups,
    list_systems,
    list_tasks,
    mean,
)
from rallebench.core.tables import Column, Table

ALL = "all"


def strict_ranks(values: Sequence[float | None]) -> list[int | None]:
    """Rank values, the highest first, without shared ranks: of equal values, the first ranks better. None gets no
    rank.

    >>> strict_ranks([0.5, 0.9, 0.5, None, 0.1])
    [2, 1, 3, None, 4]
    """
    # Sums that should be equal may differ in their last digits.
    scored = [(-round(value, 9), i) for i, value in enumerate(values) if value is not None]
    rank = {i: place for place, (_, i) in enumerate(sorted(scored), 1)}
    return [rank.get(i) for i in range(len(values))]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """``scores``: system → task → mean reward, 0..1; None without a run.

    ``means``: system → ``wiki``, ``aminer`` …, ``all`` → the unweighted mean over the tasks; None if a task is
    missing. ``ranks``: system → a group's label (ranked by the sum over its tasks) or a domain → rank.
    """

    tasks: tuple[AgentTask, ...]
    systems: tuple[System, ...]
    scores: Mapping[System, Mapping[AgentTask, float | None]]
    means: Mapping[System, Mapping[str, float | None]]
    ranks: Mapping[System, Mapping[str, int | None]]
    groups: tuple[TaskGroup, ...]

    @property
    def domains(self) -> tuple[str, ...]:
        """The environments, then ``all``."""
        return (*dict.fromkeys(task.domain for task in self.tasks), ALL)


def board(
    systems: Sequence[System],
    tasks: Sequence[AgentTask],
    scores: Mapping[tuple[System, AgentTask], float | None],
    groups: Sequence[TaskGroup],
) -> Leaderboard:
    """Build the leaderboard from scores (system, task) → 0..1."""
    table = {system: {task: scores.get((system, task)) for task in tasks} for system in systems}
    domains = (*dict.fromkeys(task.domain for task in tasks), ALL)
    means = {
        system: {
            domain: _complete_mean(row, [t for t in tasks if domain in (t.domain, ALL)])
            for domain in domains
        }
        for system, row in table.items()
    }
    # Over the same tasks, ranking by mean and by sum is the same.
    columns = {
        group.label: [
            _complete_mean(row, [t for t in tasks if t.group == group]) for row in table.values()
        ]
        for group in groups
    }
    columns |= {domain: [means[system][domain] for system in systems] for domain in domains}
    ranked = {name: strict_ranks(values) for name, values in columns.items()}
    ranks = {
        system: {name: values[i] for name, values in ranked.items()}
        for i, system in enumerate(systems)
    }
    return Leaderboard(tuple(tasks), tuple(systems), table, means, ranks, tuple(groups))


def _complete_mean(
    row: Mapping[AgentTask, float | None], tasks: Sequence[AgentTask]
) -> float | None:
    """Return the mean; None if a task is missing, because means over different tasks cannot be ranked."""
    values = [row[task] for task in tasks]
    return None if None in values else mean(values)


def performance(runs: Sequence[TaskRun], options: AnalysisOptions) -> Analysis:
    """Return scores by task, with means and ranks."""
    scores = {(run.system, run.task): run.reward for run in runs}
    leaderboard = board(list_systems(runs), list_tasks(runs), scores, list_groups(runs))
    tasks = leaderboard.tasks
    value = {
        "tasks": [{"name": t.name, "environment": t.domain, "level": t.level} for t in tasks],
        "systems": [
            {
                "system": system.label,
                "scores": {task.name: leaderboard.scores[system][task] for task in tasks},
                "means": dict(leaderboard.means[system]),
                "ranks": dict(leaderboard.ranks[system]),
            }
            for system in leaderboard.systems
        ],
        "metrics": [
            {
                "run": run.name,
                "system": run.system.label,
                "task": run.task.name,
                "n": len(run.rows),
                "failed": run.failed,
                # R-Eval's reward, EM, and position match from its appendix.
                **{
                    name: mean([getattr(row, name) for row in run.rows])
                    for name in ("reward", "correct", "position")
                },
            }
            for run in runs
        ],
    }
    return Analysis(
        "performance", value, leaderboard_tables(leaderboard), tex=paper_table(leaderboard)
    )


def leaderboard_tables(leaderboard: Leaderboard) -> tuple[Table, Table]:
    """Return two tables: scores with their means in percent, and ranks by group and domain."""
    domains = leaderboard.domains
    scores = Table(
        "F1 (rule for yes and no) by task",
        (
            "system",
            *(task.name for task in leaderboard.tasks),
            *(f"{domain_name(domain)} mean" for domain in domains),
        ),
        tuple(
            (
                system.label,
                *leaderboard.scores[system].values(),
                *leaderboard.means[system].values(),
            )
            for system in leaderboard.systems
        ),
        True,
        "Means are over tasks, each of the same weight; a system without one of them has none.",
    )
    ranks = Table(
        "Ranks",
        ("system", *(group.label for group in leaderboard.groups), *map(domain_name, domains)),
        tuple(
            (system.label, *leaderboard.ranks[system].values()) for system in leaderboard.systems
        ),
        note="1 is best, of sums over the tasks of a level; as in the paper no rank is given twice, and of equal sums the upper "
        "system has the better one.",
    )
    return scores, ranks


def paper_table(leaderboard: Leaderboard) -> Table:
    """Return the paper's table: scores by task, with the rank after each group and mean."""
    columns = [Column("System", "text")]
    rows: list[list[str | float | None]] = [[system.label] for system in leaderboard.systems]

    def add(column: Column, values: Mapping[System, Mapping[Any, float | None]], key: Any) -> None:
        columns.append(column)
        for row, system in zip(rows, leaderboard.systems):
            row.append(values[system][key])

    for group in leaderboard.groups:
        for task in leaderboard.tasks:
            if task.group == group:
                add(Column(task.name, "percent"), leaderboard.scores, task)
        add(Column("rank", "count"), leaderboard.ranks, group.label)
    for domain in leaderboard.domains:
        add(Column(domain_name(domain), "percent"), leaderboard.means, domain)
        add(Column("rank", "count"), leaderboard.ranks, domain)
    return Table("", tuple(columns), tuple(map(tuple, rows)))
