"""The cells of a grid, one after another: what they share is made once, what fails is noted and the others continue."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rallebench.core.errors import RalleError, StoppedError
from rallebench.core.experiments import ExperimentRequest, IndexRequest, IndexResult, Release
from rallebench.core.runs import RunRequest, RunResult, Values
from rallebench.core.types import Episode, Example, Flow, Outcome, Question, Retrieve
from rallebench.engine.clusters import clusters_of
from rallebench.experiments.papers.crud.cells import (
    SEPARATORS,
    Cell,
    CellPlan,
    example_of,
    perform_cell,
    plan_cell,
)
from rallebench.experiments.papers.crud.configurations import (
    Config,
    Grid,
    describe,
    indexes_of,
    last_uses,
    parts_of,
    retriever_of,
)
from rallebench.experiments.papers.crud.records import RecordSet
from rallebench.experiments.papers.crud.retrieval import reciprocal_rank
from rallebench.experiments.papers.crud.tasks import CrudTask
from rallebench.experiments.runs import scored_run
from rallebench.workspace.indexes.ensure import Described

RETRIEVAL: Mapping[str, str] = {
    "mrr": "1 / rank of each gold document among the passages, 0 if it is not there, the mean over a record's gold documents. "
    "Over the records whose gold documents are known.",
    "gold_found": "The share of a record's gold documents of which a passage was found. Over the records whose gold documents are known.",
}


@dataclass(frozen=True)
class CellResult:
    """The run of a configuration and a task; ``cell`` is None where nothing was generated."""

    config: Config
    task: CrudTask
    label: str
    answered: RunResult
    cell: Cell | None = None

    @property
    def counts(self) -> Mapping[str, int]:
        """The answers that are in no mean, and why."""
        if self.cell:
            return self.cell.counts
        return {"asked": self.answered.n, "failed": self.answered.n_errors}

    @cached_property
    def clusters(self) -> Mapping[str, int]:
        """Record id → cluster."""
        return clusters_of(self.answered.request.examples).of


@dataclass(frozen=True, slots=True)
class FailedCell:
    """A cell without a result, and why, in one sentence."""

    config: Config
    task: CrudTask
    label: str
    why: str


@dataclass(slots=True)
class Outcomes:
    """What has come of a grid so far. ``indexes``: label → what was made of it, or why there is none."""

    ran: list[CellResult] = field(default_factory=list)
    failed: list[FailedCell] = field(default_factory=list)
    indexes: dict[str, IndexResult | RalleError] = field(default_factory=dict)
    error: RalleError | None = None

    def of(self, config: Config, task: CrudTask) -> CellResult | None:
        """The cell of a configuration and a task."""
        return next((c for c in self.ran if (c.config, c.task) == (config, task)), None)


GridRequests = Generator["RunRequest | IndexRequest | Release", Any, Outcomes]


def perform_grid(
    request: ExperimentRequest,
    grid: Grid,
    tasks: Sequence[CrudTask],
    records: Mapping[str, RecordSet],
) -> GridRequests:
    """All cells of a grid. Whatever can be known to be wrong is raised before the first request is yielded."""
    for config in grid.order:
        indexes_of(request, config)
    if request.llm:
        for task in tasks:
            _plan(request, grid.base, task, records[task.name], "")
    outcomes = Outcomes()
    held: dict[str, None] = {}
    last = last_uses(grid.order)
    for number, config in enumerate(grid.order):
        recipes = indexes_of(request, config)
        if held and any(describe(recipe) not in outcomes.indexes for recipe in recipes.values()):
            yield Release(tuple(reversed(held)))  # a new index needs the room of those before it
            held = {}
        yield from _indexes(outcomes, recipes)
        results = {kind: outcomes.indexes[describe(recipe)] for kind, recipe in recipes.items()}
        names = {kind: r.name for kind, r in results.items() if isinstance(r, IndexResult)}
        error = next((r for r in results.values() if isinstance(r, RalleError)), None)
        label = grid.label(config)
        for task in tasks:
            try:
                if error is not None:
                    raise error
                retriever = retriever_of(config, names, request.settings["reranker"])
                held |= dict.fromkeys([*names.values(), *parts_of(config, names), retriever])
                plan = _plan(request, config, task, records[task.name], retriever)
                answered, cell = yield from _perform(plan, f"{task.name} {label}")
                outcomes.ran.append(CellResult(config, task, label, answered, cell))
            except StoppedError:
                raise
            except RalleError as problem:
                outcomes.error = outcomes.error or problem
                outcomes.failed.append(FailedCell(config, task, label, str(problem)))
        done = last[config] - {request.settings["quest"]}
        if done and number + 1 < len(grid.order):
            yield Release(tuple(sorted(done)))
    return outcomes


def _indexes(
    outcomes: Outcomes, recipes: Mapping[str, Described]
) -> Generator[IndexRequest, IndexResult, None]:
    """Have the indexes that are not there yet, or why they cannot be had."""
    for recipe in recipes.values():
        label = describe(recipe)
        if label not in outcomes.indexes:
            try:
                outcomes.indexes[label] = yield IndexRequest(label, recipe)
            except StoppedError:
                raise
            except RalleError as problem:
                outcomes.indexes[label] = problem


def _perform(
    plan: CellPlan, label: str
) -> Generator[RunRequest, RunResult, tuple[RunResult, Cell | None]]:
    if not plan.request.llm:
        return (yield _retrieving(plan, label)), None
    cell = yield from perform_cell(plan, label)
    return cell.answered, cell


def _plan(
    request: ExperimentRequest, config: Config, task: CrudTask, records: RecordSet, retriever: str
) -> CellPlan:
    """One cell's plan; its index is named only here, as it may have been built a moment ago."""
    s = request.settings
    separator = SEPARATORS.get(s["join"], "\n" if config.retriever == "bm25" else "\n\n")
    mine = replace(request, llm=config.llm, settings={**s, "k": 0, "index": "", "reuse": ""})
    if config.llm:
        plan = plan_cell(mine, task, records)
    else:
        chosen, original = records.records[: request.limit], s["compat"] == "original"
        plan = CellPlan(mine, task, records, chosen, "", 0, "", "", {}, original)
    return replace(plan, index=retriever, k=config.k, separator=separator)


def _retrieving(plan: CellPlan, label: str) -> RunRequest:
    """A cell without a model: only retrieval is scored."""
    records = {record.id: record for record in plan.chosen}

    def flow(question: Question) -> Flow:
        yield Retrieve(plan.index, plan.query(records[question.qid]), plan.k)
        return Outcome("", "retrieved")

    def score(example: Example, episode: Episode) -> Values:
        gold = records[example.question.qid].gold
        if not gold:
            return {}
        ranks = [reciprocal_rank((document,), episode.hits) or 0.0 for document in gold]
        return {
            "mrr": sum(ranks) / len(ranks),
            "gold_found": sum(rank > 0 for rank in ranks) / len(ranks),
        }

    return scored_run(
        label,
        "crud-retrieval",
        plan.records.name,
        tuple(example_of(plan, record) for record in plan.chosen),
        flow,
        {
            "task": plan.task.key,
            "index": plan.index,
            "k": plan.k,
            "compat": "original" if plan.original else "corrected",
        },
        score,
        RETRIEVAL,
        (),
        (plan.index,),
    )
