"""Imported corpora: ``<workspace>/corpora/<name>/`` with the store of passages and ``corpus.json``.

An import is atomic. It takes about as much disk space as its source; indexes without chunking share its files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rallebench.core.chunking import Chunking
from rallebench.core.columns import Columns
from rallebench.core.encodings import check_encoding
from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.core.events import Progress, map_events
from rallebench.core.files import disk_error, write_json
from rallebench.core.json_values import JsonValue
from rallebench.core.parts import beside, check_name, delete, move_in
from rallebench.core.readers import role_columns, table_form
from rallebench.core.sources import Problems, Source, stamps
from rallebench.core.types import Passage, digest
from rallebench.corpora import CORPORA, ROLES, CorpusRow
from rallebench.corpora.cards import CARD, Corpus, is_imported, read_card
from rallebench.corpora.chunking import chunk
from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.reading import IMPORTED, PageMap, corpus_form, read_corpus
from rallebench.corpora.store import PassageStore, link_store, writing_store

ADDRESSES = "addresses.jsonl"


def import_corpus(
    corpora: Path,
    name: str,
    source: Path,
    *,
    form: str = "",
    columns: Columns | None = None,
    page_map: Path | None = None,
    skip_bad: bool = False,
    encoding: str = "",
    origin: str = "",
    warnings: Sequence[str] = (),
) -> Generator[Progress, None, Corpus]:
    """Import ``source`` as ``corpora/name``: yield the bytes read, return the Corpus. Close the generator to stop.

    Nothing appears before the import is complete, and existing corpora are kept. Importing the same unchanged files again does
    nothing; a corpus of that name with equal passages is kept. A passage without text is a bad row. ``columns``: role → column
    of a table whose names do not tell; ``encoding``: of the text, '' to detect it; ``origin``: the source's name on a hub;
    ``warnings``: about the source, kept with the corpus. Raises UsageError for an invalid name or form, for the first bad row
    unless ``skip_bad``, and if another corpus has the name; BackendError if the disk is full.
    """
    target, source = Path(corpora) / check_name("corpus", name), Path(source)
    encoding = check_encoding(encoding)
    if form:
        CORPORA.entry(form)
    if not source.exists():
        raise BadFileError(f"{source} does not exist.")
    if target.exists() and not (target / CARD).exists():
        raise UsageError(
            f"{target} exists and is not an imported corpus; choose another name or move it away."
        )
    form = table_form(CORPORA, source, form) if columns else form or corpus_form(source)
    stamp = _stamp(source, form, page_map, skip_bad, encoding, columns, origin)
    if target.exists() and (existing := read_card(target)).stamp == stamp:
        return existing
    pages = read_page_map(page_map) if page_map else None
    problems = Problems(skip=skip_bad, refuse_empty=True, offered=True, warnings=list(warnings))
    reading = Source(source, problems, encoding=encoding)
    reading.columns = role_columns(reading, columns, ROLES)
    try:
        with beside(Path(corpora), name) as part:
            written = yield from _write_passages(part, reading, form, pages)
            sizes = {p.name: p.stat().st_size for p in sorted(part.iterdir())}
            card = Corpus(
                name=name,
                form=form,
                source=source.name,
                origin=origin,
                columns=dict(columns or {}),
                stamp=stamp,
                passages=written.passages,
                skipped=reading.problems.count,
                problems=reading.problems.first,
                warnings=reading.problems.warnings,
                has_pages=written.has_pages,
                passages_without_page=written.without_page,
                sha256=written.sha256,
                files=sizes,
                bytes=sum(sizes.values()),
                seconds=written.seconds,
            )
            write_json(part / CARD, card.model_dump())
            return _move_in(part, target, card)
    except OSError as error:
        raise disk_error(target, error, "the corpus") from error


@dataclass(frozen=True, slots=True)
class _Written:
    """The passages of an import as they were written."""

    passages: int
    sha256: str
    has_pages: bool
    without_page: int
    seconds: float


def _write_passages(
    folder: Path, reading: Source, form: str, pages: PageMap | None
) -> Generator[Progress, None, _Written]:
    """Write the passages of a source and the addresses of their pages into a folder."""
    started = time.perf_counter()
    yield Progress("", 0, reading.total or None, "0 passages")
    addresses: dict[str, str] = {}
    passages = read_corpus(reading.path, pages, form=form, source=reading, addresses=addresses)
    counted = _PageCounter(_with_addresses(passages, addresses, folder / ADDRESSES))
    writing = writing_store(folder, ((passage, None) for passage in counted))

    def progress(count: int) -> Progress:
        seconds = time.perf_counter() - started
        message = f"{count:,} passages ({count / seconds:,.0f} per second)"
        done, total = min(reading.done, reading.total), reading.total or None
        return Progress("", done, total, message, seconds=seconds, rate=done / seconds)

    count, sha = yield from map_events(writing, progress)
    has_pages = pages is not None or counted.own_pages
    seconds = round(time.perf_counter() - started, 3)
    return _Written(count, sha, has_pages, counted.without_page, seconds)


def _with_addresses(
    passages: Iterator[Passage], addresses: dict[str, str], path: Path
) -> Iterator[Passage]:
    """Yield the passages, writing the addresses of their rows to ``path``: one page id and address per line."""
    with ExitStack() as files:
        handle: TextIO | None = None
        for passage in passages:
            while addresses:
                handle = handle or files.enter_context(open(path, "w", encoding="utf-8"))
                handle.write(json.dumps(addresses.popitem()) + "\n")
            yield passage


def page_addresses(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (page id, address) of the pages of an imported corpus with an address. Raises BadFileError if the file was changed."""
    path = Path(folder) / ADDRESSES
    if not path.exists():
        return
    for number, line in Source(path).lines():
        try:
            page, address = json.loads(line)
            yield str(page), str(address)
        except (ValueError, TypeError):
            raise BadFileError(
                f"{path}, line {number} was changed; import the corpus again."
            ) from None


class _PageCounter:
    """Iterates over passages and counts those without a page; ``own_pages``: True if any page id differs from its passage id."""

    def __init__(self, passages: Iterator[Any]) -> None:
        self._passages = passages
        self.without_page = 0
        self.own_pages = False

    def __iter__(self) -> Iterator[Any]:
        for passage in self._passages:
            self.without_page += not passage.page_id
            self.own_pages = self.own_pages or passage.page_id != passage.doc_id
            yield passage


def _stamp(
    source: Path,
    form: str,
    page_map: Path | None,
    skip_bad: bool,
    encoding: str,
    columns: Columns | None,
    origin: str,
) -> str:
    """Return 12 hex digits that change with the source's files, or its commit on a hub, and with the options."""
    paths = [page_map] if origin else [source, page_map]
    stats: list[JsonValue] = [stamp for path in paths if path for stamp in stamps(path)]
    more: list[JsonValue] = [x for x in (encoding, dict(columns or {}), origin) if x]
    return digest([stats, form, bool(page_map), skip_bad, *more])[:12]


def _move_in(part: Path, target: Path, card: Corpus) -> Corpus:
    """Move the finished folder into place; an existing equal corpus is kept."""
    if move_in(part, target):
        return card
    existing = read_card(target)
    if existing.sha256 != card.sha256:
        raise UsageError(
            f"A corpus {target.name!r} exists already with other passages ({existing.passages} passages of "
            f"{existing.source}); choose another name or remove {target}."
        )
    return existing


# ── imported corpora ─────────────────────────────────────────────────────────


def holds_documents(path: Path, form: str = "") -> bool:
    """Return whether a corpus consists of documents, which are chunked by default, rather than of passages."""
    form = form or (read_card(path).form if is_imported(path) else corpus_form(path))
    return bool(CORPORA.entry(form).traits.get("documents"))


def delete_corpus(corpora: Path, name: str) -> None:
    """Delete an imported corpus; indexes keep the shared files. Raises NotFoundError."""
    folder = Path(corpora) / check_name("corpus", name)
    if not is_imported(folder):
        raise NotFoundError(f"There is no imported corpus {name!r}.")
    delete(folder)


@CORPORA.register(IMPORTED, recognises=is_imported)
def read_imported(source: Source) -> Iterator[CorpusRow]:
    """An imported corpus of the workspace."""
    with closing(PassageStore(source.path)) as store:
        for number, passage in enumerate(store, 1):
            yield CorpusRow(number, passage.doc_id, passage.text, passage.title, passage.page_id)


# ── into an index ────────────────────────────────────────────────────────────


def store_corpus(
    folder: Path,
    corpus: Path,
    pages: PageMap | None = None,
    chunking: Chunking | None = None,
    *,
    form: str = "",
    warnings: list[str] | None = None,
) -> Generator[tuple[int, float], None, tuple[int, str]]:
    """Write the passages of a corpus into an index folder, yielding (passages, fraction 0 … 1 of the corpus).

    Returns their number and their sha256. An imported corpus without new chunks or pages is linked. ``warnings``:
    receives sentences about skipped parts of the corpus. Raises what ``read_corpus`` and ``write_store`` raise.
    """
    if is_imported(corpus) and chunking is None and pages is None:
        card = read_card(corpus)
        PassageStore(corpus).close()  # raises BadFileError unless it is complete
        link_store(corpus, folder)
        return card.passages, card.sha256
    source = Source(corpus, Problems(warnings=[] if warnings is None else warnings))
    writing = writing_store(
        folder, chunk(read_corpus(corpus, pages, form=form, source=source), chunking)
    )
    return (
        yield from map_events(
            writing,
            lambda count: (count, min(1.0, source.done / source.total) if source.total else 0.0),
        )
    )
