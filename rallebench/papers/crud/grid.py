"""CRUD-RAG's grid over chunks, encoders, retrievers, depths and models (Lyu et al. 2024, arXiv:2401.17043, section 4).

Each variant changes one factor of a base configuration. Cells share the base, identical indexes (whatever their names), text
vectors and the passages found for a query. Without a language model, only the retrievers are compared.
"""

from __future__ import annotations

from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiment_reports import PUBLISHED
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.settings import dataclass_form
from rallebench.papers.crud import grid_tables, recommending, suites
from rallebench.papers.crud.benchmark import CRUD
from rallebench.papers.crud.cells import wording_in
from rallebench.papers.crud.configurations import make_grid
from rallebench.papers.crud.grid_cells import Outcomes, perform_grid
from rallebench.papers.crud.records import DATA_IS, find_tasks, read_tasks
from rallebench.papers.crud.scoring import RETRIEVAL
from rallebench.papers.crud.settings import CrudGridSettings
from rallebench.retrievers import kinds, needs_encoder
from rallebench.workspace.paths import WorkspaceFolder


@CRUD.suite(
    "crud-grid",
    competes=True,
    ready="Without a download: BM25 in Chinese over chunks, overlaps and depths; dense and hybrid cells need an encoder, and answers a model, that reads Chinese.",
    form=dataclass_form(CrudGridSettings),
    needs_llm=False,
    named_by=("tasks",),
)
def crud_grid(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """CRUD-RAG's one-factor grid with its recommendations; without a model it compares retrievers alone."""
    settings = request.read(CrudGridSettings)
    dense = list(filter(needs_encoder, kinds()))
    if settings.kind not in dense:
        raise UsageError(
            f"kind={settings.kind}: choose a kind of vector index: {', '.join(dense)}."
        )
    grid = make_grid(request, settings)
    metric = _deciding_metric(settings, request.llm)
    chosen = find_tasks(settings.tasks)
    tasks = chosen if request.llm else tuple(task for task in chosen if task.ranked)
    if not tasks:
        raise UsageError(
            "Without a language model only the retrieval is scored, and these tasks have no gold documents.",
            hint=Hint("choose", "llm"),
        )
    if request.llm:
        wording_in(settings.answering, tasks)
    records = read_tasks(request.workspace.data(settings.data, DATA_IS), tasks)
    every = [record for task in records.values() for record in task.records]
    if not request.llm and not any(record.gold for record in every):
        raise UsageError(
            "No record names its gold documents (news1 …, or gold_doc_ids), so retrievers cannot be compared without a model."
        )
    outcomes = Outcomes(grid, tasks, metric)
    yield from perform_grid(request, settings, outcomes, records)
    if outcomes.failed and not outcomes.ran:
        raise next(iter(outcomes.failed.values()))
    if any(cell.answered.simulated for cell in outcomes.ran.values()):
        return Report()
    left_out = [task for task in chosen if task not in tasks]
    base, compared = outcomes.base, grid_tables.compare_with_base(outcomes)
    return Report(
        {
            "dataset": ", ".join(dict.fromkeys(records[task.name].name for task in tasks)),
            "llm": request.llm,
            PUBLISHED: tuple(grid_tables.own_rows(outcomes)),
            **grid_tables.grid_report(outcomes),
        },
        tuple(grid_tables.grid_notes(outcomes, left_out)),
        tables=(
            *([suites.task_table(base)] if base and request.llm else []),
            recommending.recommendation_table(outcomes, grid_tables.HEADS[metric]),
            grid_tables.at_a_glance(outcomes, compared),
            *grid_tables.factor_tables(outcomes),
            grid_tables.differences(compared),
        ),
        figures=tuple(grid_tables.factor_plots(outcomes)),
        failed=grid_tables.failures(outcomes),
    )


def _deciding_metric(settings: CrudGridSettings, llm: str) -> str:
    """The metric used to rank the cells. Raises UsageError for a metric that is not measured."""
    answering = settings.answering
    needed = {
        "similarity": ("similarity", answering.similarity),
        "QA_avg_F1": ("quest", answering.quest),
        "QA_recall": ("quest", answering.quest),
    }
    metric = settings.by if settings.by != "auto" else "rouge-L" if llm else "mrr"
    if metric != "mrr" and (metric in RETRIEVAL) == bool(llm):
        how = "without" if llm else "with"
        raise UsageError(f"by={metric}: that is measured only {how} a language model.")
    name, value = needed.get(metric, ("", ""))
    if name and not value:
        raise UsageError(
            f"by={metric}: that is not measured without {name}.", hint=Hint("set", f"{name}=NAME")
        )
    return metric
