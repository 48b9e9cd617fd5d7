"""CRUD-RAG's grid (Lyu et al. 2024, arXiv:2401.17043, section 4): which chunks, encoder, retriever, depth and model are better?

Around a base configuration one factor is varied at a time. What cells share is made once: the base, an index whatever it
is called, a text's vector, a query's passages. Without a language model the retrievers alone are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiment_reports import PUBLISHED
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.settings import Setting
from rallebench.experiments.common import several, string
from rallebench.papers.crud import grid_tables, recommending, suites
from rallebench.papers.crud.benchmark import CRUD
from rallebench.papers.crud.cells import wording_in
from rallebench.papers.crud.configurations import (
    ENCODER,
    FACTORS,
    RERANKER,
    WORDS,
    grid_of,
)
from rallebench.papers.crud.grid_cells import Outcomes, perform_grid
from rallebench.papers.crud.records import DATA_IS, TASKS_SETTING, read_tasks, tasks_of
from rallebench.papers.crud.retrieval import RETRIEVERS
from rallebench.papers.crud.scoring import RETRIEVAL
from rallebench.papers.crud.suites import SETTINGS as SUITE
from rallebench.retrievers import kinds, needs_encoder

METRICS = (
    "auto",
    "rouge-L",
    "bleu-avg",
    "similarity",
    "QA_avg_F1",
    "QA_recall",
    "mrr",
    "gold_found",
)


def _papers(name: str, about: str = "", names: str = "") -> Setting:
    values = tuple(map(str, FACTORS[name].papers))
    text = "; ".join(filter(None, [f"default {','.join(values)}", about]))
    return several(text, *values, names=names)


SETTINGS: Mapping[str, Setting] = {
    "data": SUITE["data"],
    "corpus": replace(
        SUITE["corpus"],
        about="the documents: a file or folder, an imported corpus, or an index of whole articles",
    ),
    "tasks": TASKS_SETTING,
    "factors": several("which are varied, as in chunk,topk", *FACTORS, default=",".join(FACTORS)),
    "chunk": Setting(int, 128, 1, 1_000_000, about="the base's chunk size in tokens"),
    "overlap": Setting(int, 0, 0, 95, about="the base's overlap in %"),
    "embedding": string(
        f"the encoder of the base and of dense and hybrid cells; default {ENCODER} where it is on this machine",
        names="encoder",
    ),
    "retriever": replace(string("the base's; the paper's is dense", *RETRIEVERS), default=WORDS),
    "k": Setting(int, 8, 1, 1000, about="the base's passages per question"),
    "chunks": _papers("chunk", "as many tokens are read as the base reads"),
    "overlaps": _papers("overlap"),
    "embeddings": _papers("embedding", names="encoder"),
    "retrievers": _papers("retriever"),
    "ks": _papers("topk"),
    "llms": several(
        f"beside --llm; default: those the workspace has of {','.join(FACTORS['llm'].papers)}",
        names="llm",
    ),
    "kind": Setting(str, "flat", about="how vectors are searched"),
    "reranker": string(
        f"folder or hub id of the cross-encoder of hybrid-rerank; default {RERANKER} where it is on this machine",
        names="checkpoint",
    ),
    "by": string("the metric that decides; auto: rouge-L, without a model mrr", *METRICS),
    **{
        name: SUITE[name] for name in SUITE if name not in ("data", "corpus", "index", "k", "reuse")
    },
}


@CRUD.suite(
    "crud-grid",
    competes=True,
    ready="Without a download: BM25 in Chinese over chunks, overlaps and depths; dense and hybrid cells need an encoder, and answers a model, that reads Chinese.",
    form=SETTINGS,
    needs_llm=False,
    named_by=("tasks",),
)
def crud_grid(request: ExperimentRequest) -> Experiment:
    """CRUD-RAG's one-factor grid with its recommendations; without a model it compares retrievers alone."""
    s = request.settings
    dense = list(filter(needs_encoder, kinds()))
    if s["kind"] not in dense:
        raise UsageError(f"kind={s['kind']}: choose a kind of vector index: {', '.join(dense)}.")
    grid = grid_of(request)
    metric = _deciding(request)
    chosen = tasks_of(s["tasks"])
    tasks = chosen if request.llm else tuple(task for task in chosen if task.ranked)
    if not tasks:
        raise UsageError(
            "Without a language model only what is retrieved is scored, and these tasks have no gold documents.",
            hint=Hint("choose", "llm"),
        )
    if request.llm:
        wording_in(request, tasks)
    records = read_tasks(request.workspace.data(s["data"], DATA_IS), tasks)
    every = [record for task in records.values() for record in task.records]
    if not request.llm and not any(record.gold for record in every):
        raise UsageError(
            "No record names its gold documents (news1 …, or gold_doc_ids), so retrievers cannot be compared without a model."
        )
    outcomes = Outcomes(grid, tasks, metric)
    yield from perform_grid(request, outcomes, records)
    if outcomes.failed and not outcomes.ran:
        raise next(iter(outcomes.failed.values()))
    if any(cell.answered.simulated for cell in outcomes.ran.values()):
        return Report()
    left_out = [task for task in chosen if task not in tasks]
    base, compared = outcomes.base, grid_tables.compared_of(outcomes)
    return Report(
        {
            "dataset": ", ".join(dict.fromkeys(records[task.name].name for task in tasks)),
            "llm": request.llm,
            PUBLISHED: tuple(grid_tables.own_rows(outcomes)),
            **grid_tables.report_of(outcomes),
        },
        tuple(grid_tables.notes_of(outcomes, left_out)),
        tables=(
            *([suites.table_of(base)] if base and request.llm else []),
            recommending.table_of(outcomes, grid_tables.HEADS[metric]),
            grid_tables.at_a_glance(outcomes, compared),
            *grid_tables.factor_tables(outcomes),
            grid_tables.differences(compared),
        ),
        figures=tuple(grid_tables.factor_plots(outcomes)),
        failed=grid_tables.failures(outcomes),
    )


def _deciding(request: ExperimentRequest) -> str:
    """The metric that decides. Raises UsageError for one that is not measured."""
    s, llm = request.settings, request.llm
    metric: str = s["by"] if s["by"] != "auto" else "rouge-L" if llm else "mrr"
    needs = {"similarity": "similarity", "QA_avg_F1": "quest", "QA_recall": "quest"}.get(metric)
    if metric != "mrr" and (metric in RETRIEVAL) == bool(llm):
        how = "without" if llm else "with"
        raise UsageError(f"by={metric}: that is measured only {how} a language model.")
    if needs and not s[needs]:
        raise UsageError(
            f"by={metric}: that is not measured without {needs}.", hint=Hint("set", f"{needs}=NAME")
        )
    return metric
