"""Import a corpus or a dataset: import it and build its indexes as one job. ``import_previews`` shows it before."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from rallebench.core.chunking import Chunking
from rallebench.core.columns import Columns
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.events import Operation, Progress, map_events
from rallebench.core.json_values import object_json
from rallebench.core.own_files import parse
from rallebench.core.parts import check_name
from rallebench.corpora.cards import Corpus, is_imported, read_card
from rallebench.corpora.imported import import_corpus
from rallebench.datasets.importing import ImportedDataset
from rallebench.hub.fetching import Fetched
from rallebench.services import uploads
from rallebench.services.data import Data, DefaultChunking
from rallebench.services.import_previews import ImportKind
from rallebench.services.job_records import JobRecord
from rallebench.services.jobs import Job, JobManager
from rallebench.workspace.indexes.build import build_index
from rallebench.workspace.indexes.reading import recorded_long_passages
from rallebench.workspace.indexes.recipes import corpus_chunking, index_recipe
from rallebench.workspace.paths import WorkspaceFolder

KIND = "import"
"""Kind of the job of an import."""
WAYS: Mapping[str, str] = {"bm25": "bm25", "dense": "flat"}
"""Retrieval method that an import can build → kind of index. A hybrid fuses both."""


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A file of questions about a corpus, imported after it. ``columns``: role → column of a table."""

    source: Path
    form: str = ""
    columns: Columns | None = None


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The source of an import, its name, and the indexes to build. ``indexes``: any of ``bm25``, ``dense``,
    ``hybrid``; ``hub``: the files of the hub behind the source; ``questions``: a file of questions about the corpus.
    """

    name: str
    source: Path
    kind: ImportKind
    form: str = ""
    columns: Columns | None = None
    page_map: Path | None = None
    skip_bad: bool = False
    encoding: str = ""
    chunking: Chunking | DefaultChunking | None = "default"
    indexes: tuple[str, ...] = ()
    encoder: str = "minilm"
    hub: Fetched | None = None
    questions: QuestionFile | None = None


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


def index_names(request: ImportRequest) -> dict[str, str]:
    """Retrieval method → the name of its index: ``handbook-bm25``, ``handbook-minilm``, ``handbook-hybrid``."""
    encoder = re.sub(r"[^\w.-]+", "-", request.encoder).strip("-")
    names = {"bm25": f"{request.name}-bm25", "dense": f"{request.name}-{encoder}"}
    return {
        way: names.get(way, f"{request.name}-hybrid")
        for way in ("bm25", "dense", "hybrid")
        if way in request.indexes
    }


@dataclass(frozen=True, slots=True)
class MissingParts:
    """The parts of an import that are not in the workspace. ``indexes``: names; ``sources``: files that are needed and gone."""

    corpus: bool
    dataset: bool
    indexes: tuple[str, ...]
    sources: tuple[Path, ...]

    def __bool__(self) -> bool:
        return self.corpus or self.dataset or bool(self.indexes)


def find_missing(workspace: WorkspaceFolder, request: ImportRequest) -> MissingParts:
    """Return the parts that an import has not made yet."""
    brings_corpus = request.kind != "dataset"
    brings_questions = request.kind != "corpus" or request.questions is not None
    corpus = brings_corpus and not is_imported(workspace.corpora / request.name)
    dataset = brings_questions and request.name not in workspace.own_datasets()
    present = {*workspace.manifests(), *workspace.combinations()}
    indexes = [name for name in index_names(request).values() if name not in present]
    questions = request.questions.source if request.questions else request.source
    needed = [request.source] * corpus + [questions] * dataset
    gone = tuple(path for path in dict.fromkeys(needed) if not path.exists())
    return MissingParts(corpus, dataset, tuple(indexes) if brings_corpus else (), gone)


def start(
    workspace: WorkspaceFolder,
    data: Data,
    jobs: JobManager,
    request: ImportRequest,
    *,
    completes: bool = False,
) -> Job:
    """Start an import as a job; raises UsageError at once for an impossible request. ``completes``: the import was
    interrupted, so only the sources of its missing parts are needed.
    """
    check_name("corpus" if request.kind != "dataset" else "dataset", request.name)
    needed = find_missing(workspace, request).sources if completes else (request.source,)
    for path in needed:
        if not path.exists():
            raise NotFoundError(f"{path} is no longer there; choose it again.")
    if request.kind != "dataset":
        _check(workspace, request)
    return jobs.submit(
        KIND,
        request.name,
        request,
        lambda job: _perform(workspace, data, request),
        record=object_json(request),
    )


def read_record(record: JobRecord) -> ImportRequest:
    """Return the request of an interrupted import. Raises BadFileError."""
    return parse(record.detail, ImportRequest, Path(record.name), "import it again")


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
    if request.kind != "corpus" or request.questions:
        dataset = yield from _dataset(data, request)
    indexes = (yield from _indexes(workspace, data, request)) if corpus else ()
    uploads.forget(workspace, request.source)
    if request.questions:
        uploads.forget(workspace, request.questions.source)
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
    folder = workspace.corpora / request.name
    if not request.source.exists() and is_imported(folder):  # before the import was interrupted
        return read_card(folder)
    importing = import_corpus(
        workspace.corpora,
        request.name,
        request.source,
        form=request.form if request.kind == "corpus" else "",
        columns=request.columns if request.kind == "corpus" else None,
        page_map=request.page_map,
        skip_bad=request.skip_bad,
        encoding=request.encoding,
        origin=request.hub.origin if request.hub else "",
        warnings=request.hub.warnings if request.hub else (),
    )
    corpus = yield from map_events(importing, lambda event: replace(event, task="corpus"))
    noun = "documents" if corpus.form == "folder" else "passages"
    yield Progress("corpus", message=f"{corpus.passages:,} {noun} read")
    return corpus


def _dataset(data: Data, request: ImportRequest) -> Operation[ImportedDataset | None]:
    """Import the questions: of the source itself, or of the file about the corpus. None if they were imported before the
    import was interrupted, and their file is gone.
    """
    separate = request.questions
    source = separate.source if separate else request.source
    if not source.exists():
        return None
    form, columns = (request.form, request.columns) if request.kind == "dataset" else ("", None)
    if separate:
        form, columns = separate.form, separate.columns
    yield Progress("dataset", message=f"reading the questions of {source.name}")
    importing = data.import_dataset(
        request.name,
        source if separate else request.hub or source,
        form=form,
        columns=columns,
        skip_bad=request.skip_bad,
        encoding=request.encoding,
    )
    dataset = None
    for event in importing:
        if isinstance(event, ImportedDataset):
            dataset = event
        else:
            yield replace(event, task="dataset")
    return dataset


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
