"""BrowseComp-Plus (Chen et al. 2025, arXiv:2508.06600): hard questions over one fixed corpus, for retrieval alone and for
agents.

Documents have two judgements: *evidence* is needed for the answer; *gold* also contains it. Without a model, the whole
question is the query. With a model, agents search and read the corpus; the score counts the evidence listed by their searches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import Hint, NotFoundError, RalleError, UsageError
from rallebench.core.experiment_reports import PUBLISHED, OwnRow
from rallebench.core.experiments import Experiment, ExperimentRequest, Release, Report
from rallebench.core.files import sha256_file
from rallebench.core.report import RunReport
from rallebench.core.runs import DatasetRef, RunRequest, RunResult
from rallebench.core.scoring import Values
from rallebench.core.settings import (
    dataclass_form,
    declare,
    declare_group,
    declare_list,
    declare_text,
)
from rallebench.core.tables import Column, Table
from rallebench.core.types import Episode, Example, Retrieve
from rallebench.datasets.browsecomp import folder_file, gold_documents
from rallebench.datasets.reading import read_questions
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.benchmarks._ranked import (
    RETRIEVE,
    IndexSettings,
    Systems,
    by_grade,
    choose_systems,
    prepared_chain,
    ranked_run,
    request_index,
    within,
)
from rallebench.experiments.benchmarks.browsecomp.benchmark import BROWSECOMP
from rallebench.experiments.common import bars, failed_note, names_in, scored_run
from rallebench.experiments.languages import searchable
from rallebench.experiments.published.official import why_unverified
from rallebench.experiments.published.rows import own_row, unlike
from rallebench.experiments.significance import tests_between
from rallebench.workflows import WORKFLOWS, agent_workflows
from rallebench.workspace.flows import prepare_agent
from rallebench.workspace.paths import WorkspaceFolder

RETRIEVERS, AGENTS = "browsecomp_table2", "browsecomp_table1"
FETCH = (
    "git clone https://github.com/texttron/BrowseComp-Plus && cd BrowseComp-Plus && pip install datasets && "
    "python scripts_build_index/decrypt_dataset.py --output data/browsecomp_plus_decrypted.jsonl"
)
CORPUS = (
    'python -c "from datasets import load_dataset; '
    "load_dataset('Tevatron/browsecomp-plus-corpus', split='train').to_json('corpus.jsonl')\""
)
ENVIRONMENT = "corpus-tools"
COLUMNS = ("R@5", "R@100", "R@1000", "nDCG@10")
SEEN: Mapping[str, str] = {
    "evidence recall": "The share of the evidence documents that a search ever listed.",
    "gold recall": "The share of the documents with the answer that a search ever listed.",
    "searches": "The searches of an episode.",
}
ACCURACY = "has_answer_all"
TESTED = ("evidence R@5", "gold R@5", ACCURACY, "evidence recall")
"""Metrics of the paired tests for retrieval alone and for agents."""


@dataclass(frozen=True, slots=True)
class BrowseCompSettings:
    """The settings of ``browsecomp``."""

    data: str = declare_text(
        f"the decrypted file, or the folder of its repository: `{FETCH}`", names="file folder"
    )
    corpus: str = declare_text(
        f"the fixed corpus, indexed by the kinds: `{CORPUS}`", names="corpus file"
    )
    indexes: IndexSettings = declare_group(IndexSettings)
    retriever: str = declare_list("instead: indexes of the corpus that exist", names="retriever")
    workflows: str = declare_list(
        "agents that a model acts as: react, function-calling …", default="react", names="workflow"
    )
    k: int = declare(int, 5, 1, 50, about="passages that a search of an agent lists")
    steps: int = declare(int, 30, 1, 1000, about="steps of an agent at most", advanced=True)
    depth: int = declare(
        int,
        10,
        10,
        1000,
        about="documents that retrieval alone finds; all are stored, and of 830 questions 1000 long ones take 25 GB",
    )


@BROWSECOMP.suite(
    "browsecomp",
    form=dataclass_form(BrowseCompSettings),
    named_by=("kinds", "retriever", "workflows"),
)
def browsecomp(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """BrowseComp-Plus: retrieval alone by evidence and by gold documents; with a model, agents over the fixed corpus."""
    s = request.read(BrowseCompSettings)
    file, questions = _questions(request, s.data)
    systems = _systems(request, s)
    workflows = _workflows(request, s.workflows) if request.llm else []
    encoder = s.indexes.encoder
    notes = [*searchable("BrowseComp-Plus", questions, systems.values(), encoder)]
    searched: dict[str, RunResult] = {}
    acted: dict[str, RunResult] = {}
    for system, recipe in systems.items():
        index = yield from request_index(f"corpus {system}", system, recipe)
        searched[system] = yield _retrieval(request, s.depth, system, index, file, questions)
        for workflow in workflows:
            label = f"{workflow} {request.llm} {system}"
            acted[label] = yield _agent(request, s, label, workflow, index, file, questions)
        yield Release((index,))
    results = {**searched, **acted}
    if any(result.simulated for result in results.values()):
        return Report()
    notes += [
        note
        for label, result in results.items()
        for note in failed_note(label, result, "counted here and in no mean")
    ]
    return _report(searched, acted, notes)


def _questions(
    request: ExperimentRequest[WorkspaceFolder], data: str
) -> tuple[Path, tuple[Example, ...]]:
    path = request.workspace.data(data, f"the decrypted file: `{FETCH}`")
    file = folder_file(path)
    if file.is_dir():
        raise NotFoundError(
            f"{file} has no data/browsecomp_plus_decrypted.jsonl; make it with `{FETCH}`."
        )
    return file, read_questions(file, request.limit, "browsecomp")


def _systems(request: ExperimentRequest[WorkspaceFolder], s: BrowseCompSettings) -> Systems:
    if not s.corpus and not names_in(s.retriever):
        raise UsageError(
            f"The corpus is not named; fetch it with `{CORPUS}`.",
            hint=Hint("set", "corpus=corpus.jsonl"),
        )
    corpus = request.workspace.corpus(s.corpus) if s.corpus else Path()
    return choose_systems(request, s.indexes, corpus, retriever=s.retriever)


def _workflows(request: ExperimentRequest[WorkspaceFolder], written: str) -> list[str]:
    """The chosen workflows. Raises UsageError for a workflow without an environment."""
    acting = [name for name in agent_workflows() if WORKFLOWS.entry(name).traits.get("needs_env")]
    names = names_in(written)
    for name in names:
        if name not in acting:
            raise UsageError(
                f"workflows={name}: choose of {', '.join(acting)}, which search a corpus."
            )
    request.workspace.llm(request.llm)
    return names


def _retrieval(
    request: ExperimentRequest[WorkspaceFolder],
    depth: int,
    system: str,
    index: str,
    file: Path,
    questions: tuple[Example, ...],
) -> RunRequest:
    columns = within(COLUMNS, depth)
    judged = {"evidence": by_grade, "gold": _gold}
    chain = prepared_chain(request, RETRIEVE, index, depth)
    return ranked_run(system, "browsecomp", questions, chain, columns, judged, file=file)


def _gold(example: Example) -> Mapping[str, float]:
    return dict.fromkeys(gold_documents(example.record), 1.0)


def _agent(
    request: ExperimentRequest[WorkspaceFolder],
    s: BrowseCompSettings,
    label: str,
    workflow: str,
    index: str,
    file: Path,
    questions: tuple[Example, ...],
) -> RunRequest:
    values = {"env.retriever": index, "env.k": str(s.k), "steps": str(s.steps)}
    agent = prepare_agent(
        request.workspace,
        workflow,
        ENVIRONMENT,
        request.llm,
        values,
        seed=request.seed,
        allow_python=request.allow_python,
        unbuilt=not _is_there(request, index),
    )
    return scored_run(
        label,
        agent.flow,
        DatasetRef("browsecomp", str(file), sha256_file(file)),
        questions,
        _score_documents,
        SEEN,
        metrics=(ACCURACY, "em", "f1"),
    )


def _is_there(request: ExperimentRequest[WorkspaceFolder], index: str) -> bool:
    """Return whether an index exists; when planning, it may not be built yet."""
    try:
        request.workspace.component_indexes(index)
    except RalleError:
        return False
    return True


def _score_documents(example: Example, episode: Episode) -> Values:
    """The recall of the documents listed by the searches of an episode."""
    pages = {hit.passage.page_id for hit in episode.hits}
    evidence, gold = example.gold.pages, gold_documents(example.record)
    return {
        "evidence recall": len(evidence & pages) / len(evidence) if evidence else None,
        "gold recall": len(gold & pages) / len(gold) if gold else None,
        "searches": float(sum(isinstance(step.request, Retrieve) for step in episode.steps)),
    }


def _report(
    searched: Mapping[str, RunResult], acted: Mapping[str, RunResult], notes: Sequence[str]
) -> Report:
    columns = list(next(iter(searched.values())).means)
    printed = published_table(RETRIEVERS)
    own = list(_own_rows(searched, acted))
    why = own[0].why
    ours = ((label, *(r.means.get(c) for c in columns)) for label, r in searched.items())
    theirs = (
        (f"{row.system}, printed", *(printed.shares(row).get(c) for c in columns))
        for row in printed.rows
        if not why
    )
    heads = (Column("retriever", "text"), *(Column(c, "percent") for c in columns))
    note = "The whole question is the query."
    note += f" The printed figures are left out: {why}." if why else f" {DIFFERS}"
    tables = [Table("Retrieval alone", heads, (*ours, *theirs), True, note)]
    if acted:
        tables.append(_agents(acted, why))
    groups = {"retrieval": searched, "agents": acted}
    tables += tests_between(groups, TESTED, names={ACCURACY: "accuracy"})
    series = {
        name: [(label, result.means.get(name)) for label, result in {**searched, **acted}.items()]
        for name in dict.fromkeys(("evidence R@5", "evidence recall"))
    }
    means = {label: result.mean("evidence R@5") for label, result in searched.items()}
    means |= {label: result.mean("evidence recall") for label, result in acted.items()}
    return Report(
        {
            "headline": "evidence recall" if acted else "evidence R@5",
            "means": means,
            PUBLISHED: tuple(own),
        },
        tuple(notes),
        tables=tuple(tables),
        figures=(bars("Evidence", "system", "share", series),),
    )


DIFFERS = "Printed figures are of whole documents."
JUDGED = "The paper's accuracy is a judge's, so ours is not beside it; the prompts of its agents are their own."


def _own_rows(
    searched: Mapping[str, RunResult], acted: Mapping[str, RunResult]
) -> Iterator[OwnRow]:
    """A row of BrowseComp-Plus's tables for each retriever and agent, over all 830 questions."""
    n, name = published_table(RETRIEVERS).n, "BrowseComp-Plus"
    for label, result in searched.items():
        why = unlike(name, name, len(result.request.examples), n)
        why = why or why_unverified("browsecomp", name, result.request.examples)
        cells = {c: m for c, m in result.means.items() if c in published_table(RETRIEVERS).columns}
        yield own_row(RETRIEVERS, label, cells, why, (DIFFERS,))
    for label, result in acted.items():
        why = unlike(name, name, len(result.request.examples), n)
        why = why or why_unverified("browsecomp", name, result.request.examples)
        cells = {"recall": result.means["evidence recall"], "searches": result.means["searches"]}
        retriever = label.rpartition(" ")[2]
        yield own_row(AGENTS, label, cells, why, (DIFFERS, JUDGED), retriever=retriever)


def _agents(acted: Mapping[str, RunResult], why: str) -> Table:
    rows: list[tuple[Any, ...]] = [
        (
            label,
            (result.report or RunReport()).metrics.get(ACCURACY),
            result.means.get("evidence recall"),
            result.means.get("gold recall"),
            _number(result.mean("searches")),
        )
        for label, result in acted.items()
    ]
    rows += () if why else _printed_agents()
    heads = (
        Column("agent", "text"),
        Column("accuracy", "percent"),
        *(Column(name, "percent") for name in ("evidence recall", "gold recall")),
        Column("searches", "text"),
    )
    note = (
        "Accuracy here is whether the accepted answer stands in the agent's; the paper asks a judge, and its agents have prompts of "
        "their own."
    )
    return Table("Agents", heads, tuple(rows), True, note)


def _printed_agents() -> Iterator[tuple[Any, ...]]:
    for row in published_table(AGENTS).rows:
        values = row.values
        label = f"{row.system}, {row.settings['retriever']}, printed"
        shares = (values["accuracy"] / 100, values["recall"] / 100, None)
        yield label, *shares, _number(values["searches"])


def _number(value: float | None) -> str:
    """A number as text, because all other cells of its table are percentages."""
    return "" if value is None else f"{value:.2f}"
