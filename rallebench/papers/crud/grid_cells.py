"""The cells of a grid, run one after another. They share indexes and passages; a failed cell does not stop the others."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.core.experiments import (
    ExperimentRequest,
    IndexRecipe,
    IndexRequest,
    IndexResult,
    Notice,
    Release,
)
from rallebench.core.runs import RunRequest
from rallebench.papers.common import list_names
from rallebench.papers.crud.cells import Cell, CellPlan, perform_cell, plan_cell
from rallebench.papers.crud.configurations import (
    Config,
    Grid,
    candidate_retrievers,
    describe,
    index_recipes,
    name_retriever,
)
from rallebench.papers.crud.factors import WORDS
from rallebench.papers.crud.records import CrudTask, RecordSet
from rallebench.papers.crud.retrieval import separator
from rallebench.papers.crud.settings import AnsweringSettings, CrudGridSettings
from rallebench.workspace.paths import WorkspaceFolder

Place = tuple[Config, str]
"""A configuration and the name of a task."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The results of a grid so far. ``metric``: the ranking metric; ``failed``: the error of each cell without a result;
    ``indexes``: label → the index or its error."""

    grid: Grid
    tasks: Sequence[CrudTask]
    metric: str
    ran: dict[Place, Cell] = field(default_factory=dict)
    failed: dict[Place, RalleError] = field(default_factory=dict)
    indexes: dict[str, IndexResult | RalleError] = field(default_factory=dict)

    @property
    def base(self) -> list[Cell]:
        """The base cell of every task."""
        return [cell for (config, _), cell in self.ran.items() if config == self.grid.base]

    def cells(self, factor: str, task: CrudTask) -> list[tuple[Any, Config, Cell]]:
        """The values of a factor with their cells for a task."""
        return [
            (value, config, self.ran[config, task.name])
            for value, config in self.grid.values[factor].items()
            if (config, task.name) in self.ran
        ]


GridRequests = Generator["RunRequest | IndexRequest | Release | Notice", Any, None]


def left_out(grid: Grid) -> tuple[str, ...]:
    """A sentence for each reason to omit values."""
    values: dict[str, list[str]] = {}
    for (factor, value), why in grid.impossible.items():
        values.setdefault(why, []).append(f"{factor}={value}")
    return tuple(
        f"{list_names(names, 6)} {'is' if len(names) == 1 else 'are'} left out: {why}"
        for why, names in values.items()
    )


def perform_grid(
    request: ExperimentRequest[WorkspaceFolder],
    settings: CrudGridSettings,
    outcomes: Outcomes,
    records: Mapping[str, RecordSet],
) -> GridRequests:
    """Run all cells of a grid. Errors in the request are raised before the first yield."""
    grid, tasks = outcomes.grid, outcomes.tasks
    for config in grid.order:
        index_recipes(request, settings.documents, config)
    for task in tasks if request.llm else ():
        _plan(request, settings.answering, grid.base, task, records[task.name], "")
    if grid.impossible:
        yield Notice(left_out(grid))
    held: dict[str, None] = {}
    last = {config.llm: config for config in grid.order}
    for config in grid.order:
        recipes = index_recipes(request, settings.documents, config)
        if held and any(describe(recipe) not in outcomes.indexes for recipe in recipes.values()):
            yield Release(tuple(reversed(held)))  # free the memory of earlier indexes for a new one
            held = {}
        for task in tasks:
            try:
                names = yield from _indexes(outcomes, recipes)
                retriever = name_retriever(config, names, settings.reranker)
                held |= dict.fromkeys(
                    [*names.values(), *candidate_retrievers(config, names), retriever]
                )
                plan = _plan(
                    request, settings.answering, config, task, records[task.name], retriever
                )
                cell = yield from perform_cell(plan, f"{task.name} {grid.label(config)}")
                outcomes.ran[config, task.name] = cell
            except RalleError as problem:
                outcomes.failed[config, task.name] = problem
        done = config.llm not in ("", settings.answering.quest) and config == last[config.llm]
        if done and config != grid.order[-1]:
            yield Release((config.llm,))


def _indexes(
    outcomes: Outcomes, recipes: Mapping[str, IndexRecipe]
) -> Generator[IndexRequest, IndexResult, dict[str, str]]:
    """Kind of list → the name of its index; each index is requested once. Raises the RalleError of a failed index."""
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
    request: ExperimentRequest[WorkspaceFolder],
    settings: AnsweringSettings,
    config: Config,
    task: CrudTask,
    records: RecordSet,
    retriever: str,
) -> CellPlan:
    """The plan of one cell. Its index is named only here, since it may have just been built."""
    between = separator(settings.join, config.retriever == WORDS)
    mine = replace(request, llm=config.llm)
    return plan_cell(mine, settings, task, records, (retriever, config.topk, between))
