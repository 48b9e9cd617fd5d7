"""Passages of an index in order, memory-mapped: row number → passage without loading the corpus.

::

    passages.jsonl   one passage per line; its sha256 is the corpus's fingerprint
    offsets.npy      uint64 (n + 1,): the start of each line, and the end of the last
    ids.npy          uint64 (2, n): sorted 64-bit hashes of the ids, and their rows
    spans.npy        uint64 (n, 2): only with chunks: the span of a passage in its document
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import shutil
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from json.encoder import encode_basestring as _q
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rallebench.core.arrays import load_array
from rallebench.core.errors import BadFileError
from rallebench.core.events import complete
from rallebench.core.files import disk_error
from rallebench.core.types import Passage
from rallebench.corpora.cards import PASSAGES
from rallebench.corpora.columns import NumberColumn, rows_with, stable_hash, write_lookup

OFFSETS, IDS, SPANS = "offsets.npy", "ids.npy", "spans.npy"
WHOLE = 2**64 - 1
"""Marker instead of a span: the passage is a whole document."""

REPORT_EVERY = 0.2
"""Seconds between two reports of progress."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a passage: characters ``start`` up to ``end`` of the text of ``document``."""

    document: str
    start: int
    end: int


class PassageStore:
    """Passages by row or by id; the files stay on disk. Several threads may read at once."""

    def __init__(self, folder: Path) -> None:
        folder = self._folder = Path(folder)
        try:
            self._offsets = _map_array(folder / OFFSETS, 1)
            self._ids = _map_array(folder / IDS, 2)
            self._spans = _map_array(folder / SPANS, 2) if (folder / SPANS).exists() else None
            with open(folder / PASSAGES, "rb") as handle:
                self._map = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
            if self._ids.shape != (2, len(self._offsets) - 1):
                raise ValueError(f"{IDS} has the wrong shape")
        except (OSError, ValueError, BadFileError) as error:
            again = "import" if (folder / "corpus.json").exists() else "index"
            raise BadFileError(
                f"{folder} is not a complete store of passages ({error}); create it again with 'rallebench {again}'."
            ) from None
        if len(self._offsets) == 0 or len(self._map) != int(self._offsets[-1]):
            raise BadFileError(
                f"{folder / PASSAGES} was changed after it was written; import the corpus or build the index again."
            )

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> Passage:
        if not 0 <= row < len(self):
            raise IndexError(row)
        try:
            record = json.loads(self._map[int(self._offsets[row]) : int(self._offsets[row + 1])])
            fields = record["id"], record["text"], record["title"], record["page"]
            if {*map(type, fields)} != {str}:
                raise TypeError(fields)
        except (ValueError, LookupError, TypeError):
            raise BadFileError(
                f"{self._folder / PASSAGES}, passage {row + 1} was damaged by another program; import the corpus or build the index again."
            ) from None
        return Passage(*fields)

    def __iter__(self) -> Iterator[Passage]:
        return (self[row] for row in range(len(self)))

    def find_row(self, doc_id: str) -> int | None:
        """Return the row of the passage with this id, or None."""
        rows = rows_with(self._ids, doc_id)
        return next((row for row in rows if self[row].doc_id == doc_id), None)

    def origin(self, row: int) -> Origin:
        """Return the document of a passage and its span in it; a whole document is its own origin.

        A title before a chunk is not part of its span.
        """
        passage = self[row]
        if self._spans is None or int(self._spans[row, 0]) == WHOLE:
            return Origin(passage.doc_id, 0, len(passage.text))
        document = passage.doc_id.rpartition("#")[0]
        return Origin(document, int(self._spans[row, 0]), int(self._spans[row, 1]))

    def join(self, rows: Sequence[int]) -> str:
        """Join passages into one text: merge overlapping chunks of a document, separate others by blank lines."""
        text, document, end = "", "", 0
        for row in rows:
            passage, origin = self[row], self.origin(row)
            length = origin.end - origin.start
            body = passage.text[-length:] if 0 < length < len(passage.text) else passage.text
            if text and origin.document == document and origin.start > 0:
                shared = max(0, end - origin.start)
                text += body[shared:] if shared else " " + body.lstrip()
            else:
                text += "\n\n" + body if text else body
            same = origin.document == document
            document, end = origin.document, max(end, origin.end) if same else origin.end
        return text

    def page_ids(self) -> frozenset[str]:
        """Return all page ids; reads the whole store once."""
        return frozenset(passage.page_id for passage in self)

    def close(self) -> None:
        self._map.close()


def _map_array(path: Path, dimensions: int) -> NDArray[np.uint64]:
    # a plain view, because reading a number through numpy's memmap class takes ten times as long
    return np.asarray(load_array(path, np.uint64, dimensions))


def write_store(folder: Path, passages: Iterable[Passage]) -> tuple[int, str]:
    """Write the store into ``folder``; return (number of passages, their sha256).

    The sha256 is the corpus's fingerprint: ids, texts, titles and page ids, in order.
    Raises BackendError if the disk is full.
    """
    try:
        return complete(writing_store(folder, ((passage, None) for passage in passages)))
    except OSError as error:
        raise disk_error(folder, error) from error


def writing_store(
    folder: Path, pieces: Iterable[tuple[Passage, tuple[int, int] | None]]
) -> Generator[int, None, tuple[int, str]]:
    """Write passages with their spans in their documents (None: whole), yielding the number written.

    Raises OSError if the disk is full, so that the caller can name the folder.
    """
    total = hashlib.sha256()
    count = end = 0
    hashes = folder / "hashes.npy"
    spans: NumberColumn | None = None
    columns = [offsets, ids] = [NumberColumn(folder / OFFSETS), NumberColumn(hashes)]
    reported = time.monotonic()
    try:
        offsets.append(0)
        with open(folder / PASSAGES, "wb") as handle:
            for p, span in pieces:
                # equal to json.dumps, at a third of its cost
                ids_and_title = (
                    f'"id": {_q(p.doc_id)}, "page": {_q(p.page_id)}, "title": {_q(p.title)}'
                )
                line = f'{{{ids_and_title}, "text": {_q(p.text)}}}\n'.encode(
                    "utf-8", "surrogatepass"
                )
                handle.write(line)
                total.update(line)
                count += 1
                end += len(line)
                offsets.append(end)
                ids.append(stable_hash(p.doc_id))
                if span is not None and spans is None:
                    columns.append(spans := NumberColumn(folder / SPANS, 2))
                    for _ in range(count - 1):
                        spans.append(WHOLE, WHOLE)
                if spans is not None:
                    spans.append(*(span or (WHOLE, WHOLE)))
                if (now := time.monotonic()) > reported + REPORT_EVERY:
                    reported = now
                    yield count
            handle.flush()
            os.fsync(handle.fileno())
        for column in columns:
            column.finish()
        write_lookup(hashes, folder / IDS)
        hashes.unlink()
    finally:
        for column in columns:
            column.close()
    return count, total.hexdigest()


def link_store(source: Path, target: Path) -> None:
    """Link the store of ``source`` into ``target``, or copy it where hard links are not supported.

    Raises OSError if the disk is full.
    """
    for name in (PASSAGES, OFFSETS, IDS, SPANS):
        if not (source / name).exists():
            continue
        with suppress(OSError):
            os.link(source / name, target / name)
            continue
        shutil.copyfile(source / name, target / name)
