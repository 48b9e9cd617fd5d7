"""What a grid shows: a table and a plot for every factor, every difference to the base, and all tasks at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rallebench.analysis.paired import PairedComparison
from rallebench.core.errors import RalleError
from rallebench.core.experiments import Figure, IndexResult, Table
from rallebench.engine.statistics import Mean
from rallebench.experiments.papers.common import listed
from rallebench.experiments.papers.crud import tables
from rallebench.experiments.papers.crud.configurations import FACTORS, Config, Grid
from rallebench.experiments.papers.crud.grid_cells import CellResult, FailedCell, Outcomes
from rallebench.experiments.papers.crud.recommending import Versus, versus
from rallebench.experiments.papers.crud.tasks import CrudTask

HEADS: Mapping[str, str] = {
    **{metric: head for head, metric in tables.COLUMNS.items()},
    "gold_found": "gold found",
}
"""Metric → its heading, in the order of a table."""
NO_BETTER = ("length",)
"""Of these, more is not better."""
NOTE = (
    "The value less the base in points of 100, over the questions that both answered. Both come from one sign-flip "
    "test and count all comparisons of one metric: p by Holm, the intervals, which hold together at 95 %, by Bonferroni."
)


def metrics_of(outcomes: Outcomes) -> list[str]:
    """The metrics that any cell has a mean of, in the order of a table."""
    scored = {name for c in outcomes.ran for name, mean in c.answered.means.items() if mean.n}
    return [name for name in HEADS if name in scored]


def factor_tables(outcomes: Outcomes, grid: Grid, tasks: Sequence[CrudTask]) -> Iterator[Table]:
    """Rows: tasks and their values; columns: metrics with intervals, and the number of answers."""
    names = metrics_of(outcomes)
    note = "All but length (characters) in %. Empty: not measured."
    for factor, values in grid.values.items():
        rows = tuple(
            (
                f"{task.name} · {_value(grid, factor, value, config)}",
                *(tables.percent(result.answered.means.get(name), name) for name in names),
                result.answered.n,
            )
            for task in tasks
            for value, config in values.items()
            if (result := outcomes.of(config, task))
        )
        heads = ("", *(HEADS[name] for name in names), "asked")
        yield Table(f"By {FACTORS[factor].heading}", heads, rows, note=note)


def _value(grid: Grid, factor: str, value: Any, config: Config) -> str:
    """A value in words; which is the base's, and how many passages are read where that changes with it."""
    more = [f"top {config.k}"] * (factor == "chunk") + ["base"] * (config == grid.base)
    return f"{value}" + (f" ({', '.join(more)})" if more else "")


def factor_plots(
    outcomes: Outcomes, grid: Grid, tasks: Sequence[CrudTask], metric: str
) -> Iterator[Figure]:
    """The deciding metric over a factor's values, a line or a colour for every task."""
    for name, values in grid.values.items():
        factor = FACTORS[name]
        series = {
            task.name: tuple(
                (value if factor.ordered else str(value), mean)
                for value, config in values.items()
                if (result := outcomes.of(config, task))
                and (mean := tables.percent(result.answered.means.get(metric), metric))
            )
            for task in tasks
        }
        series = {task: points for task, points in series.items() if points}
        if series:
            yield Figure(
                f"{HEADS[metric]} by {factor.heading}",
                factor.heading,
                f"{HEADS[metric]}, %",
                series,
                "line" if factor.ordered else "bar",
            )


Compared = Mapping[str, Mapping[tuple[str, str], Sequence[Versus]]]


def compared_of(outcomes: Outcomes, grid: Grid, tasks: Sequence[CrudTask]) -> Compared:
    """Metric → (task, factor) → its values against the base."""
    groups = {task.name: (task.name,) for task in tasks}
    return {
        name: versus(outcomes, grid, name, groups)
        for name in metrics_of(outcomes)
        if name not in NO_BETTER
    }


def at_a_glance(compared: Compared, grid: Grid, tasks: Sequence[CrudTask], metric: str) -> Table:
    """Rows: every value of every factor; columns: tasks; cells: the difference to the base of the deciding metric."""
    cells = {
        (task, factor, versus.value): _gap(versus.paired, 1)
        for (task, factor), row in compared.get(metric, {}).items()
        for versus in row
    }
    rows = tuple(
        (f"{FACTORS[factor].heading} {value}", *row)
        for factor, values in grid.values.items()
        for value in values
        if any(row := tuple(cells.get((task.name, factor, value)) for task in tasks))
    )
    note = f"{HEADS[metric]}: points of 100 above the base, on the questions that both answered, with intervals of 95 % for all comparisons together."
    title = "All tasks at a glance: differences to the base"
    return Table(title, ("", *(task.name for task in tasks)), rows, True, note)


def differences(compared: Compared) -> Table:
    """Every value against the base in every metric, with p."""
    rows = tuple(
        (
            f"{task} · {FACTORS[factor].heading} {versus.value}",
            HEADS[metric],
            _gap(versus.paired),
            versus.p,
            versus.paired.wins,
            versus.paired.ties,
            versus.paired.losses,
        )
        for metric, places in compared.items()
        for (task, factor), row in places.items()
        for versus in row
    )
    columns = ("", "metric", "difference", "p, corrected", "higher", "equal", "lower")
    return Table("Differences to the base, question by question", columns, rows, note=NOTE)


def _gap(paired: PairedComparison, unit: float = 100) -> Mean:
    """A difference as a mean: it has an interval and a number of questions."""
    value, low, high = (
        None if bound is None else unit * bound
        for bound in (paired.difference, paired.low, paired.high)
    )
    return Mean(value, low, high, paired.n)


def notes_of(
    outcomes: Outcomes, grid: Grid, retrieving: Sequence[CrudTask], left_out: Sequence[CrudTask]
) -> Iterator[str]:
    """What a reader of the numbers must know, one sentence each."""
    base = [result for result in outcomes.ran if result.config == grid.base]
    others = [result for result in outcomes.ran if result.config != grid.base]
    cells = [result.cell for result in base if result.cell]
    yield from tables.notes_of(cells) if cells else ()
    if left_out:
        names = ", ".join(task.name for task in left_out)
        yield f"Without a language model only what is retrieved is scored; of {names} no gold documents are known, so they were left out."
    for result in base:
        n = result.answered.n
        if result.cell is None and result.task in retrieving:
            unknown = n - result.answered.n_errors - result.answered.means["mrr"].n
            if unknown:
                yield f"{result.task.name}: of {unknown} of {n} records the gold documents are not known; they are in no mean."
    for kind, event in (("failed", "questions failed"), ("empty", "answers are empty")):
        concerned = [result for result in others if result.counts.get(kind)]
        if concerned:
            total = sum(result.counts[kind] for result in concerned)
            yield f"Beside the base, {total} {event} in {len(concerned)} cells; they are counted here and in no mean: {_listed(concerned)}."
    for (factor, value), why in grid.impossible.items():
        yield f"{factor}={value} was not asked for: {why}"
    for why, n in Counter(cell.why for cell in outcomes.failed).items():
        same = _listed([cell for cell in outcomes.failed if cell.why == why])
        yield f"{n} cell{'s' * (n != 1)} could not be run ({same}): {why}"


def _listed(cells: Sequence[CellResult | FailedCell]) -> str:
    return listed([f"{cell.task.name} {cell.label}" for cell in cells], 6)


def report_of(
    outcomes: Outcomes, grid: Grid, tasks: Sequence[CrudTask], metric: str
) -> dict[str, Any]:
    """The grid in numbers, JSON-able."""
    indexes = outcomes.indexes.values()
    results = [index for index in indexes if isinstance(index, IndexResult)]
    return {
        "headline": metric,
        "tasks": [task.name for task in tasks],
        "base": {name: getattr(grid.base, factor.field) for name, factor in FACTORS.items()},
        "cells": {
            "a task": grid.cells,
            "different": len(grid.order),
            "ran": len(outcomes.ran),
            "failed": len(outcomes.failed),
            "not asked for": len(grid.impossible) * len(tasks),
        },
        "indexes": {
            "needed": len(outcomes.indexes),
            "built": sum(result.built for result in results),
            "passages encoded": sum(result.encoded for result in results),
            "failed": sum(isinstance(index, RalleError) for index in indexes),
        },
        "counts": {f"{r.task.name} {r.label}": dict(r.counts) for r in outcomes.ran},
    }
