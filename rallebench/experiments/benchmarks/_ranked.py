"""Common parts of the retrieval benchmarks: runs that retrieve without generating, scored by their ranked documents.

Gold grades define relevance. As in BEIR's own evaluation, a hit identical to the question does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rallebench.chains.overrides import override
from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import ExperimentRequest, IndexRecipe, IndexRequest, IndexResult
from rallebench.core.runs import DatasetRef, RunRequest, RunResult
from rallebench.core.scoring import Values
from rallebench.core.settings import declare, declare_list
from rallebench.core.types import Chain, Episode, Example
from rallebench.experiments.common import Bounds, names_in, scored_run
from rallebench.metrics.ranking import ndcg, recall
from rallebench.workspace.flows import chain_flow
from rallebench.workspace.indexes.recipes import index_recipe
from rallebench.workspace.paths import WorkspaceFolder

RETRIEVE, READ = "retrieve-only", "read-dialogue"
MEASURES = {"nDCG": ndcg, "R": recall}
WORDS = {"nDCG": "Normalised discounted gain", "R": "Share of the relevant documents"}

Relevant = Callable[[Example], Mapping[str, float]]
"""Document → its grade."""
Systems = Mapping[str, "IndexRecipe | None"]
"""Kind or index → its recipe; None for an existing index."""


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Settings of the indexes that are built over each corpus."""

    kinds: str = declare_list(
        "kinds of index, built over each corpus: bm25, flat, hnsw …; several with commas",
        *("bm25", "flat", "hnsw"),
        default="bm25",
    )
    encoder: str = declare(
        str, "minilm", about="encoder of the kinds that need one", names="encoder"
    )


def by_grade(example: Example) -> Mapping[str, float]:
    """The relevant documents with their gold grades."""
    return example.gold.page_grades


def rank_scorer(
    columns: Sequence[str], judged: Mapping[str, Relevant]
) -> Callable[[Example, Episode], Values]:
    """A scorer for ``nDCG@10``, ``R@100`` and similar columns. With several kinds of relevance, each column has a prefix:
    ``gold R@5``."""

    def score(example: Example, episode: Episode) -> Values:
        pages = dict.fromkeys(hit.passage.page_id for hit in episode.hits)
        ids = [page for page in pages if page and page != example.question.qid]
        gold = example.gold
        irrelevant = 0.0 if gold.grades and not gold.pages else None  # as trec_eval
        values: dict[str, float | None] = {}
        for name, relevant_of in judged.items():
            relevant = relevant_of(example)
            for column in columns:
                measure, _, k = column.partition("@")
                value = MEASURES[measure](ids, relevant, int(k)) if relevant else irrelevant
                values[f"{name} {column}".strip()] = value
        return values

    return score


def definitions(columns: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Column → definition."""
    return {
        f"{name} {column}".strip(): f"{WORDS[column.partition('@')[0]]} among the first {column.partition('@')[2]}."
        for name in names
        for column in columns
    }


def within(columns: Sequence[str], depth: int) -> tuple[str, ...]:
    """The columns that can be computed from ``depth`` documents."""
    return tuple(column for column in columns if int(column.partition("@")[2]) <= depth)


def prepared_chain(
    request: ExperimentRequest[WorkspaceFolder], name: str, retriever: str, k: int
) -> Chain:
    """A shipped chain with its retriever and model set; the retriever may be an index that is not built yet."""
    return override(request.workspace.chain(name), request.llm, retriever, k)


def ranked_run(
    label: str,
    dataset: str,
    examples: tuple[Example, ...],
    chain: Chain,
    columns: Sequence[str],
    judged: Mapping[str, Relevant],
    *,
    metrics: tuple[str, ...] = (),
    file: Path | None = None,
) -> RunRequest:
    """Run of a chain over the questions, scored by its hits; ``metrics``: further registered metrics."""
    scores, ref = definitions(columns, tuple(judged)), DatasetRef(dataset, str(file or ""))
    score = rank_scorer(columns, judged)
    bounds: Bounds = dict.fromkeys(scores, (0.0, 1.0))
    flow = chain_flow(chain)
    return scored_run(label, flow, ref, examples, score, scores, metrics=metrics, bounds=bounds)


def choose_systems(
    request: ExperimentRequest[WorkspaceFolder],
    built: IndexSettings,
    corpus: Path,
    form: str = "",
    *,
    retriever: str = "",
) -> Systems:
    """The indexes named by ``retriever``, or the ``built`` indexes over a corpus. Raises UsageError, NotFoundError."""
    retrievers, kinds = names_in(retriever), names_in(built.kinds)
    for name in retrievers:
        request.workspace.component_indexes(name)
    if retrievers:
        return dict.fromkeys(retrievers)
    if not kinds:
        raise UsageError("No kind of index is named.", hint=Hint("set", "kinds=bm25"))
    return {kind: index_recipe(corpus, kind, encoder=built.encoder, form=form) for kind in kinds}


def request_index(
    label: str, system: str, recipe: IndexRecipe | None, transient: bool = False
) -> Generator[IndexRequest, IndexResult, str]:
    """Request the index of a system unless it exists; return its name."""
    return system if recipe is None else (yield IndexRequest(label, recipe, transient)).name


def average(results: Sequence[RunResult], metric: str) -> float | None:
    """The mean of the sets' means over questions; None if any set has no mean."""
    means = [result.mean(metric) for result in results]
    known = [mean for mean in means if mean is not None]
    return fmean(known) if known and len(known) == len(means) else None


def mean_over_questions(results: Sequence[RunResult], metric: str) -> float | None:
    """Mean over the questions of all sets."""
    values: list[Any] = [
        value
        for result in results
        for value in result.values.get(metric, {}).values()
        if value is not None
    ]
    return fmean(values) if values else None
