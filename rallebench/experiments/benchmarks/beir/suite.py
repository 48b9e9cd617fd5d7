"""BEIR (Thakur et al. 2021, arXiv:2104.08663): retrieval over sets in BEIR's format, one folder each.

Each set is searched with an index of every chosen kind over its corpus, or with an existing index. BEIR's printed BM25 figures
and Pyserini's reproductions are shown beside ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import Hint, NotFoundError, UsageError
from rallebench.core.experiment_reports import PUBLISHED
from rallebench.core.experiments import Experiment, ExperimentRequest, Release, Report
from rallebench.core.runs import RunResult
from rallebench.core.settings import dataclass_form, declare, declare_group, declare_text
from rallebench.core.tables import Column, Table
from rallebench.core.types import Example
from rallebench.corpora.beir import corpus_file
from rallebench.datasets.beir import recognises
from rallebench.datasets.reading import gold_warnings, read_questions
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.benchmarks._ranked import (
    RETRIEVE,
    IndexSettings,
    Systems,
    average,
    by_grade,
    choose_systems,
    prepared_chain,
    ranked_run,
    request_index,
)
from rallebench.experiments.benchmarks.beir.benchmark import BEIR
from rallebench.experiments.common import bars, failed_note, names_in
from rallebench.experiments.languages import searchable, unlike_english
from rallebench.experiments.published.official import why_unverified
from rallebench.experiments.published.rows import own_row, unlike
from rallebench.experiments.significance import tests_between
from rallebench.workspace.paths import WorkspaceFolder

PRINTED = "beir_table2"
FETCH = "curl -LO https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets/scifact.zip && unzip scifact.zip"
HEADLINE = "nDCG@10"
WORDS, FLAT = "bm25", "BM25 flat"
"""Our kind of index, and the printed column of its equivalent, which searches title and text as one field."""
DIFFERS = (
    "Lucene stems English words; the bm25 here leaves out the same stop words and stems none.",
)


@dataclass(frozen=True, slots=True)
class BeirSettings:
    """The settings of ``beir``."""

    data: str = declare_text(
        f"folder of a set in BEIR's form, or of several such folders; as after `{FETCH}`",
        names="folder",
    )
    datasets: str = declare_text("of a folder of several sets, some; default: all", many=True)
    indexes: IndexSettings = declare_group(IndexSettings)
    retriever: str = declare_text(
        "instead, of one set: indexes that exist", names="retriever", many=True
    )
    depth: int = declare(
        int, 100, 10, 1000, about="documents that are retrieved; recall is at this depth"
    )


@dataclass(frozen=True, slots=True)
class BeirSet:
    """A set with its questions. ``notes``: remarks on its language, and on judged queries that are missing or lack a relevant
    passage."""

    name: str
    folder: Path
    examples: tuple[Example, ...]
    systems: Systems
    notes: tuple[str, ...] = ()


def sets_in(folder: Path) -> dict[str, Path]:
    """Name → folder of every set in BEIR's format: ``folder`` itself, or its subfolders."""
    if recognises(folder):
        return {folder.resolve().name: folder}
    return {path.name: path for path in sorted(folder.iterdir()) if recognises(path)}


def read_sets(request: ExperimentRequest[WorkspaceFolder], s: BeirSettings) -> list[BeirSet]:
    """Read and check the chosen sets. Raises UsageError, NotFoundError, BadFileError."""
    folder = request.workspace.data(s.data, f"a folder in BEIR's form, as after `{FETCH}`")
    known = sets_in(folder) if folder.is_dir() else {}
    if not known:
        raise NotFoundError(
            f"{folder} is not a folder in BEIR's form and holds none: it needs corpus.jsonl, queries.jsonl and qrels; "
            f"fetch one with `{FETCH}`."
        )
    names = names_in(s.datasets) or list(known)
    for name in names:
        if name not in known:
            raise NotFoundError(f"{folder} has no set {name!r}; it has {', '.join(known)}.")
    if names_in(s.retriever) and len(names) > 1:
        raise UsageError(
            f"retriever={s.retriever} searches one corpus, and {len(names)} sets are named.",
            hint=Hint("set", f"datasets={names[0]}"),
        )
    sets = []
    for name in names:
        path = known[name]
        corpus_file(path)
        systems = choose_systems(request, s.indexes, path, "beir", retriever=s.retriever)
        examples = read_questions(path, request.limit, "beir")
        of_language = searchable(name, examples, systems.values(), s.indexes.encoder)
        notes = (*of_language, *(f"{name}: {warning}" for warning in gold_warnings(path)))
        sets.append(BeirSet(name, path, examples, systems, notes))
    return sets


@BEIR.suite(
    "beir",
    form=dataclass_form(BeirSettings),
    named_by=("datasets", "kinds", "retriever"),
)
def beir(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """BEIR's sets: nDCG@10 and recall of retrieval alone, beside BM25 as BEIR and Pyserini print it."""
    settings = request.read(BeirSettings)
    depth = settings.depth
    columns = (HEADLINE, f"R@{depth}")
    sets = read_sets(request, settings)
    results: dict[str, dict[str, RunResult]] = {}
    notes = [note for each in sets for note in each.notes]
    for each in sets:
        for system, recipe in each.systems.items():
            label = f"{each.name} {system}"
            index = yield from request_index(label, system, recipe, transient=True)
            chain = prepared_chain(request, RETRIEVE, index, depth + 1)  # one hit may be the query
            run = ranked_run(
                *(label, each.name, each.examples, chain, columns, {"": by_grade}), file=each.folder
            )
            result = yield run
            results.setdefault(each.name, {})[system] = result
            notes += failed_note(label, result, "counted here and in no mean")
            yield Release((index,))
    if any(result.simulated for by in results.values() for result in by.values()):
        return Report()
    return _report(sets, results, columns, notes)


def _report(
    sets: Sequence[BeirSet],
    results: Mapping[str, Mapping[str, RunResult]],
    columns: Sequence[str],
    notes: list[str],
) -> Report:
    systems = list(sets[0].systems)
    printed = published_table(PRINTED)
    known = {row.system: printed.shares(row) for row in printed.rows}
    whys = {
        name: unlike_english(examples)
        or unlike(name, name, len(examples), printed.n.get(name))
        or why_unverified("beir", name, examples)
        for name, by in results.items()
        if name in known and (examples := by[systems[0]].request.examples)
    }
    papers = {name: known[name] for name, why in whys.items() if not why}
    series = {
        s: [(name, by[s].means.get(HEADLINE)) for name, by in results.items()] for s in systems
    }
    series["BM25, printed"] = [
        (name, papers.get(name, {}).get(printed.columns[0])) for name in results
    ]
    notes += [
        f"{name}: the printed figures are left out: {why}." for name, why in whys.items() if why
    ]
    unknown = [name for name in results if name not in known]
    if unknown:
        notes.append(
            f"No figure is printed for {', '.join(unknown)}; a folder must be named as BEIR names its set."
        )
    data = {
        "headline": HEADLINE,
        "means": {name: {s: by[s].mean(HEADLINE) for s in systems} for name, by in results.items()},
        PUBLISHED: tuple(
            own_row(
                PRINTED,
                f"{name}, {WORDS}",
                {FLAT: by[WORDS].means.get(HEADLINE)},
                whys[name],
                DIFFERS,
            )
            for name, by in results.items()
            if WORDS in by and name in whys
        ),
    }
    tables = (
        _sets_table(systems, results, columns, papers, printed.columns),
        *tests_between(results, columns),
    )
    figures = (bars("nDCG@10 by set", "set", HEADLINE, series),)
    return Report(data, tuple(notes), tables=tables, figures=figures)


def _sets_table(
    systems: Sequence[str],
    results: Mapping[str, Mapping[str, RunResult]],
    columns: Sequence[str],
    papers: Mapping[str, Mapping[str, Any]],
    printed: Sequence[str],
) -> Table:
    """A row for each set: our columns, then the ``printed`` columns of ``papers``. With several sets, the last row is their
    mean."""
    rows: list[tuple[Any, ...]] = []
    for name, by in results.items():
        ours = (by[s].means.get(column) for s in systems for column in columns)
        theirs = (papers.get(name, {}).get(column) for column in printed)
        rows.append((name, len(by[systems[0]].request.examples), *ours, *theirs))
    if len(rows) > 1:
        means = (
            average([by[s] for by in results.values()], column)
            for s in systems
            for column in columns
        )
        rows.append(("mean of the sets", None, *means, *(None for _ in printed)))
    heads = (
        Column("set", "text"),
        Column("questions", "count"),
        *(Column(f"{s} {column}", "percent") for s in systems for column in columns),
        *(Column(f"{column}, printed", "percent") for column in printed),
    )
    note = (
        "Printed is nDCG@10 of BM25: as in BEIR's Table 2, and Pyserini's with title and text as two fields or as one. "
        "The whole sets have the numbers of questions of BEIR's README, the parts of cqadupstack those of MTEB. "
        f"{DIFFERS[0]}"
    )
    return Table("BEIR", heads, tuple(rows), True, note)
