"""The cells of a grid, one after another: what they share is made once, what fails is noted and the others go on."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rallebench.core.errors import RalleError, StoppedError
from rallebench.core.experiments import ExperimentRequest, IndexRequest, IndexResult, Release
from rallebench.core.runs import RunRequest, RunResult, Values
from rallebench.core.types import Episode, Example, Flow, Outcome, Question, Retrieve
from rallebench.engine.clusters import clusters_of
from rallebench.engine.statistics import Mean
from rallebench.experiments.papers.crud.cells import (
    SEPARATORS,
    Cell,
    Decoding,
    Plan,
    example_of,
    perform_cell,
    plan_cell,
)
from rallebench.experiments.papers.crud.configurations import (
    Config,
    Grid,
    indexes_of,
    last_uses,
    parts_of,
    retriever_of,
    said_of,
)
from rallebench.experiments.papers.crud.records import Record, RecordSet
from rallebench.experiments.papers.crud.retrieval import reciprocal_rank
from rallebench.experiments.papers.crud.tasks import Task
from rallebench.experiments.runs import scored_run
from rallebench.workspace.indexes.ensure import Described

Column = Mapping[str, "float | None"]

RETRIEVAL: Mapping[str, str] = {
    "mrr": "1 / rank of each gold document among the passages, 0 if it is not there, the mean over a record's gold documents. "
    "Over the records whose gold documents are known.",
    "gold_found": "The share of a record's gold documents of which a passage was found. Over the records whose gold documents are known.",
}


@dataclass(frozen=True, slots=True)
class Ran:
    """A cell that ran. ``means``, ``values``: by metric, the latter by record id; ``n`` records were asked, ``cell`` None where
    nothing was generated."""

    config: Config
    task: Task
    label: str
    means: Mapping[str, Mean]
    values: Mapping[str, Column]
    n: int
    counts: Mapping[str, int]
    cell: Cell | None = None
    simulated: bool = False
    clusters: Mapping[str, int] = field(default_factory=dict)
    """Record id → cluster."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A cell that did not, and why, in one sentence."""

    config: Config
    task: Task
    label: str
    why: str


@dataclass(slots=True)
class Outcomes:
    """What has come of a grid so far. ``indexes``: label → what was made of it, or why there is none."""

    ran: list[Ran] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    indexes: dict[str, IndexResult | RalleError] = field(default_factory=dict)
    error: RalleError | None = None

    def of(self, config: Config, task: Task) -> Ran | None:
        """The cell of a configuration and a task."""
        return next((one for one in self.ran if (one.config, one.task) == (config, task)), None)


Pieces = Generator["RunRequest | IndexRequest | Release", Any, Outcomes]


def perform_grid(
    asked: ExperimentRequest, grid: Grid, tasks: Sequence[Task], records: Mapping[str, RecordSet]
) -> Pieces:
    """All cells of a grid. Whatever can be known to be wrong is raised before the first piece is yielded."""
    for config in grid.order:
        indexes_of(asked, config)
    if asked.llm:
        for task in tasks:
            _cell_plan(asked, grid.base, task, records[task.name], "")
    found = Outcomes()
    held: dict[str, None] = {}
    last = last_uses(grid.order)
    for number, config in enumerate(grid.order):
        label = grid.label(config)
        wanted = indexes_of(asked, config)
        if any(said_of(one) not in found.indexes for one in wanted.values()) and held:
            yield Release(
                tuple(reversed(held))
            )  # what is made of indexes before these; a new one needs the room
            held = {}
        error = yield from _indexes(found, wanted)
        names = {
            kind: made.name
            for kind, one in wanted.items()
            if isinstance(made := found.indexes[said_of(one)], IndexResult)
        }
        for task in tasks:
            try:
                if error is not None:
                    raise error
                retriever = retriever_of(config, names, asked.settings["reranker"])
                held |= dict.fromkeys([*names.values(), *parts_of(config, names), retriever])
                one = yield from _performed(
                    asked, config, task, records[task.name], retriever, f"{task.name} {label}"
                )
                found.ran.append(replace(one, label=label))
            except StoppedError:
                raise
            except RalleError as problem:
                found.error = found.error or problem
                found.failed.append(Failed(config, task, label, str(problem)))
        done = last[config] - {asked.settings["quest"]}
        if done and number + 1 < len(grid.order):
            yield Release(tuple(sorted(done)))
    return found


def _indexes(
    found: Outcomes, wanted: Mapping[str, Described]
) -> Generator[IndexRequest, IndexResult, RalleError | None]:
    """Have the indexes that are not there yet; why one of them cannot be had."""
    for index in wanted.values():
        label = said_of(index)
        if label not in found.indexes:
            try:
                found.indexes[label] = yield IndexRequest(label, index)
            except StoppedError:
                raise
            except RalleError as problem:
                found.indexes[label] = problem
    return next(
        (
            one
            for index in wanted.values()
            if isinstance(one := found.indexes[said_of(index)], RalleError)
        ),
        None,
    )


def _performed(
    asked: ExperimentRequest,
    config: Config,
    task: Task,
    records: RecordSet,
    retriever: str,
    label: str,
) -> Generator[RunRequest, RunResult, Ran]:
    plan = _cell_plan(asked, config, task, records, retriever)
    if not config.llm:
        answered = yield _retrieving(plan, label)
        counts = {"asked": answered.n, "failed": answered.n_errors}
        return Ran(
            config,
            task,
            label,
            answered.means,
            answered.values,
            answered.n,
            counts,
            None,
            answered.simulated,
            clusters_of(answered.request.examples).of,
        )
    cell = yield from perform_cell(plan, label)
    answered = cell.answered
    clusters = clusters_of(answered.request.examples).of
    return Ran(
        config,
        task,
        label,
        cell.means,
        answered.values,
        answered.n,
        cell.counts,
        cell,
        answered.simulated,
        clusters,
    )


def _cell_plan(
    asked: ExperimentRequest, config: Config, task: Task, records: RecordSet, retriever: str
) -> Plan:
    """One cell's plan; its index is named only here, as it may have been built a moment ago."""
    s = asked.settings
    separator = SEPARATORS.get(s["join"], "\n" if config.retriever == "bm25" else "\n\n")
    if not config.llm:
        original = s["compat"] == "original"
        return Plan(
            asked,
            task,
            records,
            records.records[: asked.limit],
            retriever,
            config.k,
            separator,
            "",
            Decoding(),
            original,
        )
    mine = replace(asked, llm=config.llm, settings={**s, "k": 0, "index": "", "reuse": ""})
    return replace(plan_cell(mine, task, records), index=retriever, k=config.k, separator=separator)


# without a model


def _retrieving(plan: Plan, label: str) -> RunRequest:
    gold = {record.id: record for record in plan.chosen}
    queries = {record.id: plan.query(record) for record in plan.chosen}

    def flow(question: Question) -> Flow:
        yield Retrieve(plan.index, queries[question.qid], plan.k)
        return Outcome("", "retrieved")

    def score(example: Example, episode: Episode) -> Values:
        return _found(gold[example.question.qid], episode)

    settings = {
        "task": plan.task.key,
        "index": plan.index,
        "k": plan.k,
        "compat": "original" if plan.original else "corrected",
    }
    return scored_run(
        label,
        "crud-retrieval",
        plan.records.name,
        tuple(example_of(plan, record) for record in plan.chosen),
        flow,
        settings,
        score,
        RETRIEVAL,
        (),
        (plan.index,),
    )


def _found(record: Record, episode: Episode) -> Values:
    if not record.gold:
        return {}
    each = [reciprocal_rank((document,), episode.hits) or 0.0 for document in record.gold]
    return {"mrr": sum(each) / len(each), "gold_found": sum(one > 0 for one in each) / len(each)}
