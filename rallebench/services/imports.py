"""Import a corpus or a dataset: detect its kind, preview it, import it and build its indexes, all as one job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from rallebench.core.chunking import Chunking
from rallebench.core.errors import NotFoundError, RalleError, UsageError
from rallebench.core.events import Operation, Progress, map_events
from rallebench.core.parts import check_name
from rallebench.core.readers import matching_formats
from rallebench.core.sources import Problem, Problems, Source
from rallebench.core.types import Passage
from rallebench.corpora import CORPORA
from rallebench.corpora.cards import Corpus, imported_corpora
from rallebench.corpora.chunking import (
    chunk,
    default_chunking,
)
from rallebench.corpora.imported import holds_documents, import_corpus
from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.page_names import find_pages
from rallebench.corpora.reading import corpus_form, read_corpus
from rallebench.datasets import DATASETS
from rallebench.datasets.importing import ImportedDataset
from rallebench.datasets.kilt import examples
from rallebench.datasets.reading import dataset_form, records
from rallebench.datasets.survey import (
    GoldCount,
    PageFinder,
    Survey,
    named_pages,
    sentences,
    survey,
    with_pages,
)
from rallebench.services import uploads
from rallebench.services.data import Data, DefaultChunking
from rallebench.services.jobs import Job, JobManager
from rallebench.workspace.indexes.build import build_index
from rallebench.workspace.indexes.reading import long_rows, recorded_long_passages
from rallebench.workspace.indexes.recipes import corpus_chunking, index_recipe
from rallebench.workspace.paths import WorkspaceFolder

ImportKind = Literal["corpus", "dataset", "both"]
ROWS, MAX_ROWS = 8, 2000
"""Maximum number of rows shown in a preview, and of rows read to find them and their problems."""

MOST_MEASURED = 500
"""Maximum number of passages whose tokens a preview counts."""

MOST_PASSAGES = 100_000
"""Maximum number of passages, over all imported corpora, in which a preview looks up pages."""

WAYS: Mapping[str, str] = {"bm25": "bm25", "dense": "flat"}
"""Retrieval method that an import can build → kind of index. A hybrid fuses both."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The first rows of a corpus or a dataset as they would be imported, and the bad rows among them.

    ``rows``: Passages or Examples. ``read``: number of rows examined; ``ended``: True if these are all; ``seen``:
    number of readable rows. ``warnings``: gold answers or text that may be lost; ``notes``: forms of gold answers
    that were recognised.
    """

    form: str
    rows: tuple[Any, ...]
    problems: tuple[Problem, ...]
    bad: int
    read: int
    ended: bool
    seen: tuple[Any, ...] = field(default=(), repr=False)
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


MOST_COUNTED = 10_000
"""Maximum number of files and folders to count."""


@dataclass(frozen=True, slots=True)
class Looked:
    """The previews of ``source``. Unless it can be imported as either, one of ``corpus`` and ``dataset`` is None."""

    source: Path
    kind: ImportKind
    corpus: Preview | None
    dataset: Preview | None

    @property
    def files(self) -> int | None:
        """Number of files in a folder; None for a single file or a folder with too many to count."""
        if self.source.is_file():
            return None
        paths = list(islice(self.source.rglob("*"), MOST_COUNTED))
        return sum(path.is_file() for path in paths) if len(paths) < MOST_COUNTED else None

    @property
    def name(self) -> str:
        """A name derived from the source's name."""
        return re.sub(r"[^\w.-]+", "-", self.source.name.split(".")[0]).strip("-.") or "import"


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The source of an import, its name, and the indexes to build. ``indexes``: any of ``bm25``, ``dense``,
    ``hybrid``.
    """

    name: str
    source: Path
    kind: ImportKind
    form: str = ""
    page_map: Path | None = None
    skip_bad: bool = False
    chunking: Chunking | DefaultChunking | None = "default"
    indexes: tuple[str, ...] = ()
    encoder: str = "minilm"


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import. ``indexes``: names of the built indexes, including the hybrid; ``passages``: passages
    in each index, 0 without one; ``long``: a warning about passages that the encoder truncates, or ''.
    """

    corpus: Corpus | None = None
    dataset: ImportedDataset | None = None
    indexes: tuple[str, ...] = field(default=())
    passages: int = 0
    long: str = ""


def look(
    source: Path,
    *,
    kind: str = "",
    form: str = "",
    page_map: Path | None = None,
    corpora: Path | None = None,
) -> Looked:
    """Preview a file or folder; ``kind`` and ``form`` are detected unless given. ``corpora``: the imported corpora
    whose pages the questions may name. Raises RalleError for a bad source.
    """
    if not source.exists():
        raise NotFoundError(f"{source} does not exist; check the path.")
    errors = []
    corpus = dataset = None
    if kind != "dataset" and form not in set(DATASETS.names()) - set(CORPORA.names()):
        try:
            corpus = preview_corpus(source, form, page_map)
        except RalleError as error:
            errors.append(error)
    if kind != "corpus" and form not in set(CORPORA.names()) - set(DATASETS.names()):
        try:
            if source.is_file() or kind == "dataset" or _names_questions(source):
                dataset = preview_questions(source, form, corpora)
        except RalleError as error:
            errors.append(error)
    if kind in ("corpus", "dataset"):
        if errors:
            raise errors[0]
        return Looked(source, kind, corpus, dataset)  # type: ignore[arg-type]
    has_text, has_questions = bool(corpus and corpus.rows), bool(dataset and dataset.rows)
    if has_questions and (source.is_file() or not has_text):
        return Looked(source, "dataset", None, dataset)
    if has_questions:
        return Looked(source, "both", corpus, dataset)
    if corpus is None and errors:
        raise errors[0]
    return Looked(source, "corpus", corpus, None)


def preview_corpus(source: Path, form: str = "", page_map: Path | None = None) -> Preview:
    """Preview the first passages of a corpus. Raises UsageError if nothing can be read."""
    form = form or corpus_form(source)
    pages = read_page_map(page_map) if page_map else None
    read = Source(source, Problems(skip=True, refuse_empty=True))
    return _preview(form, read_corpus(source, pages, form=form, source=read), read)


def preview_questions(source: Path, form: str = "", corpora: Path | None = None) -> Preview:
    """Preview the first questions of a dataset, with the pages of ``corpora`` that they name. Raises UsageError if
    nothing can be read.
    """
    form = form or dataset_form(source)
    read = Source(source, Problems(skip=True))
    surveyed = survey(read, form, MAX_ROWS) or Survey()
    find = _page_finder(corpora) if corpora else None
    chosen = named_pages(surveyed, find) if find else None
    rows = examples(read, with_pages(records(read, form), chosen or ()))
    preview = _preview(form, rows, read)
    golds = [example.gold for example in preview.seen]
    answers, pages = sum(bool(g.answers) for g in golds), sum(bool(g.pages) for g in golds)
    warnings, notes = sentences(surveyed, GoldCount(len(golds), answers, pages), chosen)
    return replace(preview, warnings=(*preview.warnings, *warnings), notes=tuple(notes))


def _page_finder(corpora: Path) -> PageFinder | None:
    """Return a lookup of pages by name; None if the corpora are too large to read for a preview."""
    passages = sum(card.passages for card in imported_corpora(corpora).values())
    return partial(find_pages, corpora) if passages <= MOST_PASSAGES else None


def _preview(form: str, rows: Iterator[Any], read: Source) -> Preview:
    first: list[Any] = []
    with suppress(UsageError):  # if all rows are bad, the preview shows them
        first = list(islice(rows, MAX_ROWS))
    problems, count = read.problems, len(first)
    ended, looked = count < MAX_ROWS, count + problems.count
    begin, bad = tuple(first[:ROWS]), tuple(problems.first)
    warnings = tuple(problems.warnings)
    return Preview(form, begin, bad, problems.count, looked, ended, tuple(first), warnings)


def _names_questions(source: Path) -> bool:
    return any(matching_formats(DATASETS, source))


def long_sentence(preview: Preview, chunking: Chunking | None, encoder: str) -> str:
    """Return a warning, with a remedy, if some of the first passages are longer than the encoder reads; otherwise
    ''.
    """
    pieces = chunk(preview.seen, chunking)
    rows = [passage for passage, _ in islice(pieces, MOST_MEASURED)]
    whole = preview.ended and next(pieces, None) is None
    long = long_rows(encoder, rows)
    if long is None or not long.longer:
        return ""
    of = "" if whole else " These are the first; there are more."
    mend = "Cut them into chunks." if chunking is None else "Choose smaller chunks."
    return f"{long.sentence}{of} {mend}"


def chunking_of_preview(preview: Preview, encoder: str) -> Chunking | None:
    """Return the default chunking of the previewed corpus."""
    return default_chunking(encoder) if holds_documents(Path(), preview.form) else None


def first_chunks(
    rows: Iterable[Passage], chunking: Chunking | None
) -> list[tuple[Passage, tuple[int, int] | None]]:
    """Return the first six passages of the index to be built, each with its place in its document."""
    return list(islice(chunk(rows, chunking), 6))


def index_names(request: ImportRequest) -> dict[str, str]:
    """Retrieval method → the name of its index: ``handbook-bm25``, ``handbook-minilm``, ``handbook-hybrid``."""
    encoder = re.sub(r"[^\w.-]+", "-", request.encoder).strip("-")
    names = {"bm25": f"{request.name}-bm25", "dense": f"{request.name}-{encoder}"}
    return {
        way: names.get(way, f"{request.name}-hybrid")
        for way in ("bm25", "dense", "hybrid")
        if way in request.indexes
    }


def start(workspace: WorkspaceFolder, data: Data, jobs: JobManager, request: ImportRequest) -> Job:
    """Start an import as a job; raises UsageError at once for an impossible request."""
    check_name("corpus" if request.kind != "dataset" else "dataset", request.name)
    if not request.source.exists():
        raise NotFoundError(f"{request.source} is no longer there; choose it again.")
    if request.kind != "dataset":
        _check(workspace, request)
    return jobs.submit(
        "import", request.name, request, lambda job: _perform(workspace, data, request)
    )


def _check(workspace: WorkspaceFolder, request: ImportRequest) -> None:
    if "hybrid" in request.indexes and not {"bm25", "dense"} <= set(request.indexes):
        raise UsageError("A hybrid is made of BM25 and dense; tick both, or leave the hybrid out.")
    names, combinations = index_names(request), workspace.combinations()
    for way, name in names.items():
        entry = combinations.get(name)
        is_same = way == "hybrid" and entry is not None and entry.of == [*names.values()][:2]
        taken = entry is not None or (way == "hybrid" and name in workspace.retrievers())
        if name in workspace.llms() or (taken and not is_same):
            raise UsageError(f"{name!r} is taken; choose another name for the import.")


def _perform(
    workspace: WorkspaceFolder, data: Data, request: ImportRequest
) -> Operation[ImportResult]:
    corpus = dataset = None
    if request.kind != "dataset":
        corpus = yield from _corpus(workspace, request)
    if request.kind != "corpus":
        yield Progress("dataset", message=f"reading the questions of {request.source.name}")
        form = request.form if request.kind == "dataset" else ""
        dataset = data.import_dataset(
            request.name, request.source, form=form, skip_bad=request.skip_bad
        )
    indexes = (yield from _indexes(workspace, data, request)) if corpus else ()
    uploads.forget(workspace, request.source)
    manifests = workspace.manifests()
    built = [manifests[name] for name in indexes if name in manifests]
    passages = built[0].passages if built else 0
    return ImportResult(
        corpus,
        dataset,
        indexes,
        passages,
        "".join(long.sentence for long in map(recorded_long_passages, built) if long),
    )


def _corpus(workspace: WorkspaceFolder, request: ImportRequest) -> Operation[Corpus]:
    importing = import_corpus(
        workspace.corpora,
        request.name,
        request.source,
        form=request.form if request.kind == "corpus" else "",
        page_map=request.page_map,
        skip_bad=request.skip_bad,
    )
    corpus = yield from map_events(importing, lambda event: replace(event, task="corpus"))
    yield Progress("corpus", message=f"{corpus.passages:,} passages read")
    return corpus


def _indexes(
    workspace: WorkspaceFolder, data: Data, request: ImportRequest
) -> Operation[tuple[str, ...]]:
    names = index_names(request)
    source = workspace.corpora / request.name
    chunking = request.chunking
    if chunking == "default":
        chunking = corpus_chunking(source, request.encoder)
    for way, name in names.items():
        if way == "hybrid":
            with suppress(UsageError):  # an earlier, identical import has already saved it
                data.combine(
                    name, "rrf", [names["bm25"], names["dense"]], {}, f"{request.name}, both"
                )
            continue
        recipe = index_recipe(source, WAYS[way], encoder=request.encoder, chunking=chunking)
        for event in build_index(workspace.indexes, name, recipe):
            yield replace(event, task=name, message=f"{name}: {event.message}")
    return tuple(names.values())
