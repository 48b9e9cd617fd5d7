"""What a grid shows: a table and a plot for every factor, every difference to the base, and all tasks at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rallebench.analysis.paired import PairedComparison
from rallebench.core.errors import RalleError
from rallebench.core.experiments import Figure, IndexResult, Table
from rallebench.engine.statistics import Mean
from rallebench.experiments.papers.crud import tables
from rallebench.experiments.papers.crud.configurations import FACTORS, Config, Grid
from rallebench.experiments.papers.crud.grid_cells import Failed, Outcomes, Ran
from rallebench.experiments.papers.crud.recommending import Versus, versus
from rallebench.experiments.papers.crud.tasks import Task

HEADS: Mapping[str, str] = {
    **{metric: head for head, metric in tables.COLUMNS.items()},
    "gold_found": "gold found",
}
"""Metric → its heading, in the order of a table."""
NO_BETTER = ("length",)
"""Of these, more is not better."""


def metrics_of(found: Outcomes) -> list[str]:
    """The metrics that any cell has a mean of, in the order of a table."""
    have = {name for one in found.ran for name, mean in one.means.items() if mean.n}
    return [name for name in HEADS if name in have]


def factor_tables(found: Outcomes, grid: Grid, tasks: Sequence[Task]) -> Iterator[Table]:
    """Rows: tasks and their values; columns: metrics with intervals, and the number of answers."""
    names = metrics_of(found)
    for factor, values in grid.values.items():
        rows: list[tuple[Any, ...]] = []
        for task in tasks:
            for value, config in values.items():
                if one := found.of(config, task):
                    means = (tables.shown(one.means.get(name), name) for name in names)
                    rows.append(
                        (f"{task.name} · {said_of(grid, factor, value, config)}", *means, one.n)
                    )
        note = "All but length (characters) in %. Empty: not measured."
        yield Table(
            f"By {FACTORS[factor].heading}",
            ("", *(HEADS[name] for name in names), "asked"),
            tuple(rows),
            note=note,
        )


def said_of(grid: Grid, factor: str, value: Any, config: Config) -> str:
    """A value in words; which is the base's, and how many passages are read where that changes with it."""
    more = [f"top {config.k}"] * (factor == "chunk") + ["base"] * (config == grid.base)
    return f"{value}" + (f" ({', '.join(more)})" if more else "")


def factor_plots(
    found: Outcomes, grid: Grid, tasks: Sequence[Task], metric: str
) -> Iterator[Figure]:
    """The deciding metric over a factor's values, a line or a colour for every task."""
    for name, values in grid.values.items():
        factor = FACTORS[name]
        series: dict[str, tuple[tuple[Any, Any], ...]] = {}
        for task in tasks:
            ran = [(value, found.of(config, task)) for value, config in values.items()]
            points = [
                (value, tables.shown(one.means.get(metric), metric)) for value, one in ran if one
            ]
            kept = tuple(
                (value if factor.ordered else str(value), mean) for value, mean in points if mean
            )
            series |= {task.name: kept} if kept else {}
        if series:
            yield Figure(
                f"{HEADS[metric]} by {factor.heading}",
                factor.heading,
                f"{HEADS[metric]}, %",
                series,
                "line" if factor.ordered else "bar",
            )


Compared = Mapping[str, Mapping[tuple[str, str], Sequence[Versus]]]


def compared_of(found: Outcomes, grid: Grid, tasks: Sequence[Task]) -> Compared:
    """Metric → (task, factor) → its values against the base."""
    groups = {task.name: (task.name,) for task in tasks}
    return {
        name: versus(found, grid, name, groups)
        for name in metrics_of(found)
        if name not in NO_BETTER
    }


def at_a_glance(compared_all: Compared, grid: Grid, tasks: Sequence[Task], metric: str) -> Table:
    """Rows: every value of every factor; columns: tasks; cells: the difference to the base of the deciding metric."""
    compared = compared_all.get(metric, {})
    by_place = {
        (task, factor, one.value): one for (task, factor), row in compared.items() for one in row
    }
    rows: list[tuple[Any, ...]] = []
    for factor, values in grid.values.items():
        for value in values:
            cells = [by_place.get((task.name, factor, value)) for task in tasks]
            if any(cells):
                rows.append(
                    (
                        f"{FACTORS[factor].heading} {value}",
                        *(_gap(one.paired, 1) if one else None for one in cells),
                    )
                )
    note = f"{HEADS[metric]}: points of 100 above the base, on the questions that both answered, with intervals of 95 % for all comparisons together."
    return Table(
        "All tasks at a glance: differences to the base",
        ("", *(task.name for task in tasks)),
        tuple(rows),
        True,
        note,
    )


def differences(compared_all: Compared) -> Table:
    """Every value against the base in every metric, with p."""
    rows: list[tuple[Any, ...]] = []
    for metric, compared in compared_all.items():
        for (task, factor), row in compared.items():
            for one in row:
                told = (one.p, one.paired.wins, one.paired.ties, one.paired.losses)
                rows.append(
                    (
                        f"{task} · {FACTORS[factor].heading} {one.value}",
                        HEADS[metric],
                        _gap(one.paired),
                        *told,
                    )
                )
    note = (
        "The value less the base in points of 100, over the questions that both answered. Both come from one sign-flip "
        "test and count all comparisons of one metric: p by Holm, the intervals, which hold together at 95 %, by Bonferroni."
    )
    columns = ("", "metric", "difference", "p, corrected", "higher", "equal", "lower")
    return Table("Differences to the base, question by question", columns, tuple(rows), note=note)


def _gap(paired: PairedComparison, unit: float = 100) -> Mean:
    """A difference as a mean: it has an interval and a number of questions."""
    value, low, high = (
        None if one is None else unit * one for one in (paired.difference, paired.low, paired.high)
    )
    return Mean(value, low, high, paired.n)


# in words


def notes_of(
    found: Outcomes, grid: Grid, retrieving: Sequence[Task], left_out: Sequence[Task]
) -> Iterator[str]:
    """What a reader of the numbers must know, one sentence each."""
    cells = [one.cell for one in found.ran if one.cell and one.config == grid.base]
    yield from tables.notes_of(cells) if cells else ()
    if left_out:
        names = ", ".join(task.name for task in left_out)
        yield f"Without a language model only what is retrieved is scored; of {names} no gold documents are known, so they were left out."
    for one in found.ran:
        unknown = (
            one.n - one.counts.get("failed", 0) - one.means["mrr"].n if one.cell is None else 0
        )
        if unknown and one.config == grid.base and one.task in retrieving:
            yield f"{one.task.name}: of {unknown} of {one.n} records the gold documents are not known; they are in no mean."
    for kind, said in (("failed", "questions failed"), ("empty", "answers are empty")):
        many = [one for one in found.ran if one.counts.get(kind) and one.config != grid.base]
        if many:
            total = sum(one.counts[kind] for one in many)
            yield f"Beside the base, {total} {said} in {len(many)} cells; they are counted here and in no mean: {_listed(many)}."
    for (factor, value), why in grid.impossible.items():
        yield f"{factor}={value} was not asked for: {why}"
    reasons = Counter(one.why for one in found.failed)
    for why in reasons:
        mine = [one for one in found.failed if one.why == why]
        yield f"{len(mine)} cell{'s' * (len(mine) != 1)} could not be run ({_listed(mine)}): {why}"


def _listed(cells: Sequence[Ran | Failed]) -> str:
    names = [f"{one.task.name} {one.label}" for one in cells]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def report_of(found: Outcomes, grid: Grid, tasks: Sequence[Task], metric: str) -> dict[str, Any]:
    """The grid in numbers, JSON-able."""
    made = [one for one in found.indexes.values() if isinstance(one, IndexResult)]
    return {
        "headline": metric,
        "tasks": [task.name for task in tasks],
        "base": {name: getattr(grid.base, factor.field) for name, factor in FACTORS.items()},
        "cells": {
            "a task": grid.cells,
            "different": len(grid.order),
            "ran": len(found.ran),
            "failed": len(found.failed),
            "not asked for": len(grid.impossible) * len(tasks),
        },
        "indexes": {
            "needed": len(found.indexes),
            "built": sum(one.built for one in made),
            "passages encoded": sum(one.encoded for one in made),
            "failed": sum(isinstance(one, RalleError) for one in found.indexes.values()),
        },
        "counts": {f"{one.task.name} {one.label}": dict(one.counts) for one in found.ran},
    }
