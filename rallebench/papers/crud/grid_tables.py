"""Tables and plots of a grid: results by factor, differences from the base, and an overview of all tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rallebench.analysis.suites import paired_table
from rallebench.core.experiment_reports import OwnRow
from rallebench.core.experiments import IndexResult
from rallebench.core.numbers import plural
from rallebench.core.tables import Figure, FigureKind, Table
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.common import bars
from rallebench.papers.common import list_names
from rallebench.papers.crud import suites
from rallebench.papers.crud.configurations import Config
from rallebench.papers.crud.factors import FACTORS
from rallebench.papers.crud.grid_cells import Outcomes
from rallebench.papers.crud.recommending import Versus, versus
from rallebench.papers.crud.records import CrudTask

HEADS: Mapping[str, str] = {
    **{metric: head for head, metric in suites.COLUMNS.items()},
    "gold_found": "gold found",
}
"""Metric → its heading, in table order."""
NO_BETTER = ("length",)
"""Metrics without a better direction."""


PAPER = "paper: GPT-3.5-turbo"


def scored_metrics(outcomes: Outcomes) -> list[str]:
    """The metrics with a mean in at least one cell, in table order."""
    means = [mean for cell in outcomes.ran.values() for mean in cell.answered.means.items()]
    scored = {name for name, mean in means if mean.n}
    return [name for name in HEADS if name in scored]


def factor_tables(outcomes: Outcomes) -> Iterator[Table]:
    """Tables by factor. Rows: tasks and values; columns: metrics with intervals, and the number of answers."""
    names = scored_metrics(outcomes)
    note = "All but length (characters) in %. Empty: not measured."
    for factor in _varied_factors(outcomes):
        rows = tuple(
            (
                f"{task.name} · {value}{_remark(factor, config, outcomes.grid.base)}",
                *(suites.percent(cell.answered.means.get(name), name) for name in names),
                cell.answered.n,
            )
            for task in outcomes.tasks
            for value, config, cell in outcomes.cells(factor, task)
        )
        heads = ("", *(HEADS[name] for name in names), "asked")
        yield Table(f"By {FACTORS[factor].heading}", heads, rows, note=note)


def _varied_factors(outcomes: Outcomes) -> list[str]:
    """The factors with more than the base value, or all factors if none vary, to show the base's own figures."""
    values = outcomes.grid.values
    return [factor for factor in values if len(values[factor]) > 1] or list(values)


def own_rows(outcomes: Outcomes) -> Iterator[OwnRow]:
    """Every cell as a row of the paper's table for its factor; no rows without a model."""
    for factor in outcomes.grid.values:
        for task in outcomes.tasks:
            for value, _, cell in outcomes.cells(factor, task):
                if cell.plan.request.llm:
                    yield suites.own_cell_row(cell, factor, value)


def factor_plots(outcomes: Outcomes) -> Iterator[Figure]:
    """The ranking metric over the values of a factor, with a line or colour for each task."""
    metric = outcomes.metric
    for name in _varied_factors(outcomes):
        factor = FACTORS[name]
        series: dict[str, list[tuple[Any, Any]]] = {
            task.name: [
                (
                    value if factor.ordered else str(value),
                    suites.percent(cell.answered.means.get(metric), metric),
                )
                for value, _, cell in outcomes.cells(name, task)
            ]
            for task in outcomes.tasks
        }
        led = {
            task.name: [cell.answered.run for _, _, cell in outcomes.cells(name, task)]
            for task in outcomes.tasks
        }
        papers = {f"{task.name}, {PAPER}": task for task in outcomes.tasks}
        for label, task in papers.items():
            series[label] = [
                (
                    value if factor.ordered else str(value),
                    suites.printed_value(cell, name, value, metric),
                )
                for value, _, cell in outcomes.cells(name, task)
            ]
        sources = dict.fromkeys(papers, published_table(suites.FACTOR_TABLES[name][0]).source)
        kind: FigureKind = "line" if factor.ordered else "bar"
        title, y = f"{HEADS[metric]} by {factor.heading}", f"{HEADS[metric]}, %"
        figure = bars(
            title, factor.heading, y, series, kind, unit="percent", printed=sources, runs=led
        )
        if figure.series:
            yield figure


Compared = Mapping[str, Mapping[tuple[str, str], Versus]]


def compare_with_base(outcomes: Outcomes) -> Compared:
    """Metric → (task, factor) → its values compared with the base."""
    groups = {task.name: (task.name,) for task in outcomes.tasks}
    return {
        name: versus(outcomes, name, groups)
        for name in scored_metrics(outcomes)
        if name not in NO_BETTER
    }


def at_a_glance(outcomes: Outcomes, compared: Compared) -> Table:
    """Overview of the ranking metric. Rows: every value of every factor; columns: tasks; cells: the difference from the
    base."""
    metric, names = outcomes.metric, [task.name for task in outcomes.tasks]
    cells = {
        (task, factor, value): pair.gap
        for (task, factor), row in compared.get(metric, {}).items()
        for value, pair in row.items()
    }
    rows = tuple(
        (f"{FACTORS[factor].heading} {value}", *row)
        for factor, values in outcomes.grid.values.items()
        for value in values
        if any(row := tuple(cells.get((name, factor, value)) for name in names))
    )
    note = f"{HEADS[metric]}: points of 100 above the base, on the questions that both answered, with intervals of 95 % for all comparisons together."
    title = "All tasks at a glance: differences to the base"
    return Table(title, ("", *names), rows, True, note)


def differences(compared: Compared) -> Table:
    """Every value compared with the base by every metric, with p-values."""
    pairs = {
        (f"{task} · {FACTORS[factor].heading} {value}", HEADS[metric]): pair
        for metric, places in compared.items()
        for (task, factor), row in places.items()
        for value, pair in row.items()
    }
    title = "Differences to the base, question by question"
    return paired_table(title, "", pairs, "The value less the base", 100)


def grid_notes(outcomes: Outcomes, left_out: Sequence[CrudTask]) -> Iterator[str]:
    """The notes of the report. ``left_out``: tasks without gold documents."""
    base = outcomes.base
    others = [cell for (config, _), cell in outcomes.ran.items() if config != outcomes.grid.base]
    if base and base[0].plan.request.llm:
        yield from suites.suite_notes(base)
    if left_out:
        names = ", ".join(task.name for task in left_out)
        yield f"Without a language model only the retrieval is scored; {names} were left out, as their gold documents are unknown."
    for cell in base:
        n = cell.answered.n
        if not cell.plan.request.llm:
            yield from suites.left_out_notes(cell.plan)
            unknown = n - cell.answered.n_errors - cell.answered.means["mrr"].n
            if unknown:
                yield f"{cell.plan.task.name}: of {unknown} of {n} records the gold documents are not known; they are in no mean."
    lost = {
        "questions failed": {cell.label: cell.counts.failed for cell in others},
        "answers are empty": {cell.label: cell.counts.empty or 0 for cell in others},
    }
    for event, counts in lost.items():
        concerned = {label: n for label, n in counts.items() if n}
        if concerned:
            total = sum(concerned.values())
            labels = list_names(list(concerned), 6)
            yield f"Beside the base, {total} {event} in {len(concerned)} cells; they are counted here and in no mean: {labels}."
    labels_by_reason: dict[str, list[str]] = {}
    for label, why in failures(outcomes).items():
        labels_by_reason.setdefault(why, []).append(label)
    for why, same in labels_by_reason.items():
        yield f"{plural(len(same), 'cell')} could not be run ({list_names(same, 6)}): {why}"


def failures(outcomes: Outcomes) -> dict[str, str]:
    """Label of a cell without a result → its error, in one sentence."""
    label = outcomes.grid.label
    return {
        f"{task} {label(config)}": str(error) for (config, task), error in outcomes.failed.items()
    }


def grid_report(outcomes: Outcomes) -> dict[str, Any]:
    """The grid's configuration and counts, JSON-able."""
    grid, tasks = outcomes.grid, outcomes.tasks
    indexes = outcomes.indexes.values()
    results = [index for index in indexes if isinstance(index, IndexResult)]
    return {
        "headline": outcomes.metric,
        "tasks": [task.name for task in tasks],
        "base": asdict(grid.base),
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
            "failed": len(indexes) - len(results),
        },
        "counts": {cell.label: cell.counts.to_json() for cell in outcomes.ran.values()},
    }


def _remark(factor: str, config: Config, base: Config) -> str:
    """A suffix for a value: the number of passages if it changes with the value, and a mark on the base value."""
    more = [f"top {config.topk}"] * (factor == "chunk") + ["base"] * (config == base)
    return f" ({', '.join(more)})" if more else ""
