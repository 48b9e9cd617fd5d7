"""The cells of a grid, one after another: they share indexes and passages, and a cell that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.core.experiments import (
    ExperimentRequest,
    IndexRequest,
    IndexResult,
    Notice,
    Release,
)
from rallebench.core.runs import RunRequest
from rallebench.papers.common import listed
from rallebench.papers.crud.cells import Cell, CellPlan, perform_cell, plan_cell
from rallebench.papers.crud.configurations import (
    WORDS,
    Config,
    Grid,
    describe,
    indexes_of,
    parts_of,
    retriever_of,
)
from rallebench.papers.crud.records import CrudTask, RecordSet
from rallebench.papers.crud.retrieval import separator
from rallebench.workspace.indexes.recipes import IndexRecipe

Place = tuple[Config, str]
"""A configuration and a task's name."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of a grid so far. ``metric``: the deciding one; ``failed``: the error of a cell without a result; ``indexes``:
    label → the index or its error."""

    grid: Grid
    tasks: Sequence[CrudTask]
    metric: str
    ran: dict[Place, Cell] = field(default_factory=dict)
    failed: dict[Place, RalleError] = field(default_factory=dict)
    indexes: dict[str, IndexResult | RalleError] = field(default_factory=dict)

    @property
    def base(self) -> list[Cell]:
        """The cells of the base, of every task."""
        return [cell for (config, _), cell in self.ran.items() if config == self.grid.base]

    def cells(self, factor: str, task: CrudTask) -> list[tuple[Any, Config, Cell]]:
        """The values of a factor with their cells of a task."""
        return [
            (value, config, self.ran[config, task.name])
            for value, config in self.grid.values[factor].items()
            if (config, task.name) in self.ran
        ]


GridRequests = Generator["RunRequest | IndexRequest | Release | Notice", Any, None]


def left_out(grid: Grid) -> tuple[str, ...]:
    """A sentence for each reason why values are left out."""
    values: dict[str, list[str]] = {}
    for (factor, value), why in grid.impossible.items():
        values.setdefault(why, []).append(f"{factor}={value}")
    return tuple(
        f"{listed(names, 6)} {'is' if len(names) == 1 else 'are'} left out: {why}"
        for why, names in values.items()
    )


def perform_grid(
    request: ExperimentRequest, outcomes: Outcomes, records: Mapping[str, RecordSet]
) -> GridRequests:
    """All cells of a grid. Raises every error in the request before the first yield."""
    grid, tasks = outcomes.grid, outcomes.tasks
    for config in grid.order:
        indexes_of(request, config)
    for task in tasks if request.llm else ():
        _plan(request, grid.base, task, records[task.name], "")
    if grid.impossible:
        yield Notice(left_out(grid))
    held: dict[str, None] = {}
    last = {config.llm: config for config in grid.order}
    for config in grid.order:
        recipes = indexes_of(request, config)
        if held and any(describe(recipe) not in outcomes.indexes for recipe in recipes.values()):
            yield Release(tuple(reversed(held)))  # a new index needs the room of those before it
            held = {}
        for task in tasks:
            try:
                names = yield from _indexes(outcomes, recipes)
                retriever = retriever_of(config, names, request.settings["reranker"])
                held |= dict.fromkeys([*names.values(), *parts_of(config, names), retriever])
                plan = _plan(request, config, task, records[task.name], retriever)
                cell = yield from perform_cell(plan, f"{task.name} {grid.label(config)}")
                outcomes.ran[config, task.name] = cell
            except RalleError as problem:
                outcomes.failed[config, task.name] = problem
        done = config.llm not in ("", request.settings["quest"]) and config == last[config.llm]
        if done and config != grid.order[-1]:
            yield Release((config.llm,))


def _indexes(
    outcomes: Outcomes, recipes: Mapping[str, IndexRecipe]
) -> Generator[IndexRequest, IndexResult, dict[str, str]]:
    """Kind of list → the name of its index, each requested once. Raises its RalleError if one cannot be had."""
    for recipe in recipes.values():
        label = describe(recipe)
        if label not in outcomes.indexes:
            try:
                outcomes.indexes[label] = yield IndexRequest(label, recipe)
            except RalleError as problem:
                outcomes.indexes[label] = problem
    names = {}
    for kind, recipe in recipes.items():
        result = outcomes.indexes[describe(recipe)]
        if isinstance(result, RalleError):
            raise result
        names[kind] = result.name
    return names


def _plan(
    request: ExperimentRequest, config: Config, task: CrudTask, records: RecordSet, retriever: str
) -> CellPlan:
    """One cell's plan; its index is named only here, as it may have been built a moment ago."""
    between = separator(request.settings["join"], config.retriever == WORDS)
    mine = replace(request, llm=config.llm)
    return plan_cell(mine, task, records, (retriever, config.topk, between))
