"""Scores of systems by task, their means and ranks, as in R-Eval's Tables 3 and 5 (Tu et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rallebench.analysis.agents import (
    DOMAIN_NAMES,
    Cell,
    Place,
    System,
    Task,
    places_of,
    systems_of,
    tasks_of,
)

ALL = "all"


def average_ranks(values: Sequence[float | None]) -> list[float | None]:
    """1 is the highest; equal values share the mean of their ranks; None has none.

    >>> average_ranks([0.5, 0.9, 0.5, None, 0.1])
    [2.5, 1.0, 2.5, None, 4.0]
    """
    from scipy.stats import rankdata

    known = [
        round(value, 9) for value in values if value is not None
    ]  # sums in another order are still equal
    ranks = iter(rankdata([-value for value in known], method="average").tolist() if known else [])
    return [None if value is None else next(ranks) for value in values]


@dataclass(frozen=True, slots=True)
class Board:
    """``scores``: system → task → mean reward, 0..1, None where it did not answer the task.

    ``means``: system → ``wiki``, ``aminer`` …, ``all`` → the unweighted mean over their tasks; None where a task lacks.
    ``sums``: system → environment × level → sum of its tasks. ``ranks``: system → a place's label or a mean's name → rank.
    """

    tasks: tuple[Task, ...]
    systems: tuple[System, ...]
    scores: Mapping[System, Mapping[Task, float | None]]
    means: Mapping[System, Mapping[str, float | None]]
    sums: Mapping[System, Mapping[Place, float | None]]
    ranks: Mapping[System, Mapping[str, float | None]]
    places: tuple[Place, ...]

    @property
    def domains(self) -> tuple[str, ...]:
        """The environments, and ``all`` last."""
        return (*dict.fromkeys(task.domain for task in self.tasks), ALL)

    @property
    def ranked(self) -> tuple[str, ...]:
        """The columns of ranks."""
        return (*(place.label for place in self.places), *self.domains)


def board_of(cells: Sequence[Cell]) -> Board:
    """The board of runs."""
    scores = {(cell.system, cell.task): cell.reward for cell in cells}
    return board(systems_of(cells), tasks_of(cells), scores, places_of(cells))


def board(
    systems: Sequence[System],
    tasks: Sequence[Task],
    scores: Mapping[tuple[System, Task], float | None],
    places: Sequence[Place],
) -> Board:
    """The board of scores, 0..1 (or any unit)."""
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
            place: _sum([row[task] for task in tasks if task.place == place]) for place in places
        }
    ranks: dict[System, dict[str, float | None]] = {system: {} for system in systems}
    for place in places:
        for system, rank in zip(
            systems, average_ranks([sums[system][place] for system in systems])
        ):
            ranks[system][place.label] = rank
    for name in (*domains, ALL):
        for system, rank in zip(
            systems, average_ranks([means[system][name] for system in systems])
        ):
            ranks[system][name] = rank
    return Board(tuple(tasks), tuple(systems), table, means, sums, ranks, tuple(places))


def _sum(values: Sequence[float | None]) -> float | None:
    """None where one of them lacks: a sum over fewer tasks cannot be ranked beside the others."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _mean(values: Sequence[float | None]) -> float | None:
    total = _sum(values)
    return None if total is None else total / len(values)


def domain_name(domain: str) -> str:
    """An environment, or ``all``, as it is shown."""
    return DOMAIN_NAMES.get(domain, domain)
