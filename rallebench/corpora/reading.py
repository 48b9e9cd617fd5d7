"""Streaming a corpus of any format as passages: recognise the format, check ids, add page ids."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Protocol

from rallebench.core.errors import BadFileError
from rallebench.core.readers import matching_formats, read_rows
from rallebench.core.sources import MAX_KEPT_PROBLEMS, Problems, Source
from rallebench.core.types import Passage
from rallebench.corpora import CORPORA, CorpusRow
from rallebench.corpora._collections import first_table
from rallebench.corpora._seen import SeenIds
from rallebench.corpora.store import PassageStore

BATCH_ROWS, BATCH_CHARACTERS, BATCH_SECONDS = 4096, 2**22, 0.3
"""Limits of a batch (whichever is reached first), so that memory stays small and slow files report progress."""

IMPORTED = "imported"
ZIP = b"PK\x03\x04"


class PageMap(Protocol):
    """Passage id → page id, such as a dict."""

    def get(self, key: str, default: str, /) -> str:
        """Return the page id, or ``default``."""


def corpus_form(path: Path) -> str:
    """Return the format of a corpus, by file name or by the files in the folder (of rows: by the first); ``tsv`` for other files.

    Raises BadFileError for a folder of unknown format, and for a packed file.
    """
    path = Path(path)
    if form := next(matching_formats(CORPORA, path), ""):
        return form
    if file := first_table(path):
        return corpus_form(file)
    if path.is_dir():
        raise BadFileError(
            f"{path} is a folder without documents (.txt, .md, .html, .pdf), a corpus.jsonl, or JSON files with id and text; "
            "name a file, another folder, or its format."
        )
    if path.is_file() and _begins_with(path, ZIP):
        raise BadFileError(
            f"{path} is packed, as archives and Office documents are: import an archive, or unpack it; save a document as .docx, "
            ".xlsx, text, HTML or PDF."
        )
    return "tsv"


def _begins_with(path: Path, mark: bytes) -> bool:
    try:
        with open(path, "rb") as handle:
            return handle.read(len(mark)) == mark
    except OSError:  # the reader reports it
        return False


def read_corpus(
    path: Path,
    page_map: PageMap | None = None,
    *,
    form: str = "",
    problems: Problems | None = None,
    source: Source | None = None,
    addresses: dict[str, str] | None = None,
) -> Iterator[Passage]:
    """Yield the passages of a corpus in order.

    ``page_map``: passage id → page id, '' for a passage without an entry. Without a map the record's page
    id, or else the passage id, is the page id. ``form``: a name of CORPORA; '' recognises it.
    ``problems`` handles bad rows; without it the first one raises. ``source``: counts the bytes read, and has its own
    ``problems``. ``addresses``: receives page id → address before its passage is yielded. Memory is constant except for
    8 bytes per id.

    Raises BadFileError with the line number for a malformed row, an empty or repeated id, or a corpus without
    passages, NotFoundError for an unknown form, MissingPackageError for a missing package.
    """
    path = Path(path)
    source = source or Source(path, problems or Problems())
    form = form or corpus_form(path)
    # The import checked the ids, and an empty page id is intended.
    if form == IMPORTED and page_map is None:
        with closing(PassageStore(path)) as store:
            yield from store
        return
    count = 0
    for row in _distinct(source, form):
        count += 1
        page = page_map.get(row.doc_id, "") if page_map is not None else (row.page_id or row.doc_id)
        if row.url and page and addresses is not None:
            addresses[page] = row.url
        yield Passage(row.doc_id, row.text, row.title, page)
    if not count:
        problems = source.problems
        reason = "it should contain one passage per line: id, text, title."
        if problems.first:
            reason = f"only {problems.count} bad rows; the first: {problems.first[0].message}"
        raise BadFileError(f"{path} contains no passages{',' if problems.first else ';'} {reason}")


def corpus_rows(source: Source, form: str) -> Iterator[CorpusRow]:
    """Return the rows of a corpus in a format as they are."""
    return read_rows(CORPORA[form], source, form)


def _sound(source: Source, form: str) -> Iterator[CorpusRow]:
    """Yield the rows that have an id and, if required, a text."""
    refuse_empty = source.problems.refuse_empty
    for row in corpus_rows(source, form):
        if not row.doc_id:
            source.bad(row.line, " has an empty id.")
        elif refuse_empty and not row.text.strip():
            source.bad(
                row.line, f" has no text (id {row.doc_id!r}); fill it in, or remove the row."
            )
        else:
            yield row


def _distinct(source: Source, form: str) -> Iterator[CorpusRow]:
    """Yield the sound rows with new ids, checked in batches; a repeated id is looked up in the file."""
    rows = _sound(source, form)
    seen_ids, size = SeenIds(), 64
    ended = False
    while not ended:
        batch: list[CorpusRow] = []
        characters = 0
        failed: Exception | None = None
        try:
            deadline = time.monotonic() + BATCH_SECONDS
            while (
                len(batch) < size and characters < BATCH_CHARACTERS and time.monotonic() < deadline
            ):
                row = next(rows)
                batch.append(row)
                characters += len(row.text)
        except StopIteration:
            ended = True
        except Exception as error:  # the rows before it come first
            ended, failed = True, error
        dropped = _find_repeated(batch, seen_ids.add([row.doc_id for row in batch]), source, form)
        yield from (row for position, row in enumerate(batch) if position not in dropped)
        if failed is not None:
            raise failed
        size = min(size * 4, BATCH_ROWS)


def _find_repeated(
    batch: list[CorpusRow], candidates: list[int], source: Source, form: str
) -> set[int]:
    """Return the positions of rows with a repeated id, and report each as a bad row of ``source``.

    The corpus is read again for the earlier lines, until twenty bad rows are reported.
    """
    first: dict[str, int] = {}
    if candidates and source.problems.count < MAX_KEPT_PROBLEMS:
        first = _first_lines({batch[position].doc_id for position in candidates}, source, form)
    dropped = set()
    for position in candidates:
        row = batch[position]
        earlier = first.get(row.doc_id)
        if earlier != row.line:  # otherwise another id has the same hash
            where = f" of line {earlier}" if earlier else ""
            dropped.add(position)
            source.bad(row.line, f" repeats the id {row.doc_id!r}{where}; ids must be unique.")
    return dropped


def _first_lines(ids: set[str], source: Source, form: str) -> dict[str, int]:
    """Return id → its first line; empty for a corpus that can be read only once."""
    if not (source.path.is_file() or source.path.is_dir()):
        return {}
    problems = Problems(skip=True, refuse_empty=source.problems.refuse_empty)
    reread = Source(source.path, problems, encoding=source.encoding, columns=source.columns)
    lines: dict[str, int] = {}
    for row in _sound(reread, form):
        if row.doc_id in ids:
            lines.setdefault(row.doc_id, row.line)
            if len(lines) == len(ids):
                break
    return lines
