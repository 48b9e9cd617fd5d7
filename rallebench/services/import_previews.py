"""Previews of a file or folder before its import: its kind, its first rows, and the columns of a table in their roles."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from rallebench.core.chunking import Chunking
from rallebench.core.columns import Columns
from rallebench.core.encodings import check_encoding
from rallebench.core.errors import NotFoundError, RalleError, UsageError
from rallebench.core.events import Pacer, complete
from rallebench.core.hub_names import parse_hub_name
from rallebench.core.readers import matching_formats, role_columns, table_form
from rallebench.core.sources import Problem, Problems, Source
from rallebench.core.types import Passage
from rallebench.corpora import CORPORA
from rallebench.corpora import ROLES as CORPUS_ROLES
from rallebench.corpora.cards import imported_corpora
from rallebench.corpora.chunking import (
    chunk,
    default_chunking,
)
from rallebench.corpora.imported import holds_documents
from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.page_names import find_pages
from rallebench.corpora.reading import corpus_form, read_corpus
from rallebench.datasets import DATASETS
from rallebench.datasets.fields import ROLES as DATASET_ROLES
from rallebench.datasets.fields import normal
from rallebench.datasets.kilt import examples
from rallebench.datasets.page_ids import find_corpus_pages, with_corpus_ids
from rallebench.datasets.reading import known_form, records
from rallebench.datasets.survey import (
    GoldCount,
    PageFinder,
    Survey,
    named_pages,
    sentences,
    survey,
    with_pages,
)
from rallebench.services.import_tables import TableColumns, holds_short_texts, read_columns

ImportKind = Literal["corpus", "dataset", "both"]
ROWS, MAX_ROWS = 8, 2000
"""Maximum number of rows shown in a preview, and of rows read to find them and their problems."""

MOST_CHARACTERS = 20_000_000
"""Characters of passages after which a preview reads no further."""

PACE = 0.15
"""Seconds between two reports of the rows read so far."""

MOST_PASSAGES = 100_000
"""Maximum number of passages, over all imported corpora, in which a preview looks up pages."""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first ``rows`` of a preview while it reads. ``count``: readable rows so far; ``share``: of the bytes read; None if
    unknown.
    """

    form: str
    rows: tuple[Any, ...]
    count: int
    share: float | None


Reading = Generator[FirstRows, None, "Preview"]


@dataclass(frozen=True, slots=True)
class Preview:
    """The first rows of a corpus or a dataset as they would be imported, and the bad rows among them.

    ``rows``: Passages or Examples. ``read``: number of rows examined; ``ended``: True if these are all; ``seen``:
    number of readable rows. ``warnings``: gold answers or text that may be lost; ``notes``: forms of gold answers
    that were recognised. ``problem``: why nothing can be read, if no row is bad.
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
    problem: RalleError | None = None


MOST_COUNTED = 10_000
"""Maximum number of files and folders to count."""


@dataclass(frozen=True, slots=True)
class Looked:
    """The previews of ``source``. Unless it can be imported as either, one of ``corpus`` and ``dataset`` is None.

    ``table``: its columns, if they may be given roles; ``problem``: why such a table cannot be read, None if it can.
    """

    source: Path
    kind: ImportKind
    corpus: Preview | None
    dataset: Preview | None
    table: TableColumns | None = None
    problem: RalleError | None = None

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
        return source_name(self.source)


def source_name(source: Path | str) -> str:
    """Return a name for the import of a file, a folder, or a name of the hub.

    >>> source_name(Path("data/My set (v2).csv")), source_name("hf:rajpurkar/squad_v2?split=validation")
    ('My-set-v2', 'squad_v2-validation')
    """
    if not isinstance(source, Path):
        return parse_hub_name(source).label
    return re.sub(r"[^\w.-]+", "-", source.name.split(".")[0]).strip("-.") or "import"


@dataclass(frozen=True, slots=True)
class Choices:
    """The source of a preview, and what was chosen for it. ``kind`` and ``form`` are detected unless given. ``columns``: role →
    column of a table. ``corpora``: the imported corpora whose pages the questions may name. ``encoding``: of the text, '' to
    detect it.
    """

    source: Path
    kind: str = ""
    form: str = ""
    columns: Columns | None = None
    page_map: Path | None = None
    corpora: Path | None = None
    encoding: str = ""


def look(
    source: Path,
    kind: str = "",
    form: str = "",
    columns: Columns | None = None,
    corpora: Path | None = None,
) -> Looked:
    """Preview a file or folder; see ``watch``."""
    return complete(watch(Choices(source, kind, form, columns, corpora=corpora)))


def watch(choices: Choices) -> Generator[FirstRows, None, Looked]:
    """Preview a file or folder, yielding the first rows while it is read. Raises RalleError for a bad source, except for a table
    whose columns have no roles yet.
    """
    source, kind, form, columns = choices.source, choices.kind, choices.form, choices.columns
    if not source.exists():
        raise NotFoundError(f"{source} does not exist; check the path.")
    encoding = check_encoding(choices.encoding)
    errors = []
    corpus = dataset = None
    if kind != "dataset" and form not in set(DATASETS.names()) - set(CORPORA.names()):
        try:
            corpus = yield from _preview_corpus(source, form, choices.page_map, encoding, columns)
        except RalleError as error:
            errors.append(error)
    if kind != "corpus" and form not in set(CORPORA.names()) - set(DATASETS.names()):
        try:
            if source.is_file() or kind == "dataset" or names_questions(source):
                dataset = yield from _preview_questions(
                    source, form, choices.corpora, encoding, columns
                )
        except RalleError as error:
            errors.append(error)
    looked = _with_kind(source, kind, corpus, dataset)
    part = looked.dataset if looked.kind == "dataset" else looked.corpus
    known = form or (part.form if part and part.rows else "")
    table = read_columns(source, looked.kind, known, encoding)
    if part is None and looked.kind != "both" and errors:
        if table is None:
            raise errors[0]
        return replace(looked, table=table, problem=errors[-1])
    return replace(looked, table=table, problem=part.problem if part else None)


def _with_kind(source: Path, kind: str, corpus: Preview | None, dataset: Preview | None) -> Looked:
    """Return the previews with the kind that they show."""
    if kind == "corpus":
        return Looked(source, "corpus", corpus, dataset)
    if kind == "dataset":
        return Looked(source, "dataset", corpus, dataset)
    has_text, has_questions = bool(corpus and corpus.rows), bool(dataset and dataset.rows)
    if has_questions and (source.is_file() or not has_text):
        return Looked(source, "dataset", None, dataset)
    if has_questions:
        return Looked(source, "both", corpus, dataset)
    if not has_text and holds_short_texts(source):
        return Looked(source, "dataset", None, dataset)
    return Looked(source, "corpus", corpus, None)


def _preview_corpus(
    source: Path, form: str, page_map: Path | None, encoding: str, columns: Columns | None
) -> Reading:
    """Preview the first passages of a corpus. Raises UsageError if nothing can be read."""
    form = table_form(CORPORA, source, form) if columns else form or corpus_form(source)
    pages = read_page_map(page_map) if page_map else None
    read = Source(source, Problems(skip=True, refuse_empty=True), encoding=encoding)
    read.columns = role_columns(read, columns, CORPUS_ROLES)
    passages = read_corpus(source, pages, form=form, source=read)
    return (yield from _preview(form, passages, read))


def _preview_questions(
    source: Path, form: str, corpora: Path | None, encoding: str, columns: Columns | None
) -> Reading:
    """Preview the first questions of a dataset, with the pages of ``corpora`` that they name. Raises UsageError if
    nothing can be read.
    """
    read = Source(source, Problems(skip=True), encoding=encoding)
    form = table_form(DATASETS, source, form) if columns else form or known_form(read)
    read.columns = role_columns(read, columns, DATASET_ROLES, normal)
    surveyed = complete(survey(read, form, MAX_ROWS)) or Survey()
    find = _page_finder(corpora) if corpora else None
    chosen = named_pages(surveyed, find) if find else None
    known = complete(find_corpus_pages(read, form, find, MAX_ROWS)) if find else None
    rows = examples(read, with_corpus_ids(with_pages(records(read, form), chosen or ()), known))
    preview = yield from _preview(form, rows, read)
    golds = [example.gold for example in preview.seen]
    answers, pages = sum(bool(g.answers) for g in golds), sum(bool(g.pages) for g in golds)
    count = GoldCount(len(golds), answers, pages, sum(g.unanswerable for g in golds))
    warnings, notes = sentences(surveyed, count, chosen)
    if known:
        warnings, notes = [*warnings, *known.warnings], [*notes, known.note]
    return replace(preview, warnings=(*preview.warnings, *warnings), notes=tuple(notes))


def _page_finder(corpora: Path) -> PageFinder | None:
    """Return a lookup of pages by name; None if the corpora are too large to read for a preview."""
    passages = sum(card.passages for card in imported_corpora(corpora).values())
    return partial(find_pages, corpora) if passages <= MOST_PASSAGES else None


def _preview(form: str, rows: Iterator[Any], read: Source) -> Reading:
    first: list[Any] = []
    problem: RalleError | None = None
    pacer, characters, ended = Pacer(PACE), 0, True
    try:
        for row in rows:
            first.append(row)
            characters += len(row.text) if isinstance(row, Passage) else 0
            if len(first) == 1 or pacer.due():
                share = min(1.0, read.done / read.total) if read.total else None
                yield FirstRows(form, tuple(first[:ROWS]), len(first), share)
            if len(first) >= MAX_ROWS or characters >= MOST_CHARACTERS:
                ended = False
                break
    except UsageError as error:  # if all rows are bad, the preview shows them
        problem = None if read.problems.count else error
    problems = read.problems
    looked = len(first) + problems.count
    begin, bad = tuple(first[:ROWS]), tuple(problems.first)
    warnings = tuple(problems.warnings)
    return Preview(
        form, begin, bad, problems.count, looked, ended, tuple(first), warnings, problem=problem
    )


def names_questions(source: Path) -> bool:
    """Return whether a folder has the files of a dataset."""
    return any(matching_formats(DATASETS, source))


def chunking_of_preview(preview: Preview, encoder: str) -> Chunking | None:
    """Return the default chunking of the previewed corpus."""
    return default_chunking(encoder) if holds_documents(Path(), preview.form) else None


def first_chunks(
    rows: Iterable[Passage], chunking: Chunking | None
) -> list[tuple[Passage, tuple[int, int] | None]]:
    """Return the first six passages of the index to be built, each with its place in its document."""
    return list(islice(chunk(rows, chunking), 6))
