"""Passages of foreign vectors: ids, one for each vector, are looked up in the corpus."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rallebench.core.arrays import load_array
from rallebench.core.errors import BadFileError, MismatchError
from rallebench.core.sources import Source
from rallebench.core.types import Passage
from rallebench.vector_indexes import Progress
from rallebench.workspace.indexes.vector_files import IDS_AT_ONCE, texts

Rows = NDArray[np.int64]
Ids = Callable[[], Iterable[tuple[int | None, str]]]
"""Reads (label, passage id) of each vector; the label is None where the vector's position is meant."""
MAX_ID = 60


class PassagesById(Protocol):
    """The passages of a corpus."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Passage: ...

    def find_row(self, doc_id: str) -> int | None: ...


def ids_in(path: Path) -> Iterator[tuple[int | None, str]]:
    """Yield the ids of a file: ``.npy``, or text with an id a line, as Pyserini's ``docid``. Two columns are the label, an id
    in a Faiss file, and the passage's id. Raises BadFileError.
    """
    if path.suffix.lower() == ".npy":
        array: Any = load_array(path)
        if array.ndim != 1 or array.dtype.kind not in "USiu":
            raise BadFileError(
                f"{path} holds {array.dtype} of shape {array.shape}; a list of texts or whole numbers is needed."
            )
        for start in range(0, len(array), IDS_AT_ONCE):
            yield from ((None, text) for text in texts(array[start : start + IDS_AT_ONCE]))
        return
    source = Source(path)
    for line, text in source.lines():
        label, tab, name = text.strip().partition("\t")
        if not label or "\t" in name or (tab and not label.strip().isdecimal()):
            source.bad(line, " is neither the id of a passage nor a number, a tab and an id.")
        yield (int(label), name.strip()) if tab else (None, label)


def passage_rows(
    name: str, count: int, labels: Rows | None, ids: Ids | None, passages: PassagesById
) -> Generator[Progress, None, Rows | None]:
    """Yield progress; return (count,): the row of each vector's passage, None if it is the vector's own row.

    ``labels``: the vectors' numbers in a Faiss file, None for 0, 1, 2 … Without ``ids`` they are ids of passages if all of
    them are, else rows. Raises MismatchError unless every passage has one vector.
    """
    if ids is not None:
        rows = yield from _rows_of_ids(name, count, labels, ids, passages)
    elif labels is not None:
        rows = yield from _rows_of_labels(name, labels, passages)
    else:
        return None
    times = np.bincount(rows, minlength=len(passages))
    if (times != 1).any():
        more, without = int(np.argmax(times)), int(np.argmin(times))
        raise MismatchError(
            f"{name} has {times[more]} vectors for the passage in row {more + 1} of the corpus and {times[without]} for that in row "
            f"{without + 1}; give the ids of the vectors, each of them once."
        )
    return None if np.array_equal(rows, np.arange(count)) else rows


def _rows_of_ids(
    name: str, count: int, labels: Rows | None, ids: Ids, passages: PassagesById
) -> Generator[Progress, None, Rows]:
    numbers, rows = np.arange(count), np.empty(count, dtype=np.int64)
    read = 0
    for label, doc_id in ids():
        if read < count:
            in_order = read < len(passages) and passages[read].doc_id == doc_id
            row = read if in_order else passages.find_row(doc_id)
            if row is None:
                raise MismatchError(
                    f"{name} has a vector for {doc_id[:MAX_ID]!r} (number {read + 1} of {count}), which the corpus lacks; "
                    "give the corpus that it was made of, cut in the same way."
                )
            numbers[read], rows[read] = (read if label is None else label), row
        read += 1
        if read % IDS_AT_ONCE == 0:
            yield 0, count
    if read != count:
        raise MismatchError(
            f"{name} holds {count} vectors, and there are {read} ids for them; give an id for each."
        )
    order = np.argsort(numbers, kind="stable")
    own = np.arange(count) if labels is None else labels
    places = np.minimum(np.searchsorted(numbers[order], own), count - 1)
    missing = np.flatnonzero(numbers[order][places] != own)
    if len(missing):
        raise MismatchError(
            f"{name} holds a vector with the number {own[missing[0]]}, for which there is no id; write the ids as lines of number, "
            "tab and passage id."
        )
    sorted_rows: Rows = rows[order][places]
    return sorted_rows


def _rows_of_labels(
    name: str, labels: Rows, passages: PassagesById
) -> Generator[Progress, None, Rows]:
    rows = np.empty(len(labels), dtype=np.int64)
    for place, label in enumerate(labels.tolist()):
        row = passages.find_row(str(label))
        if row is None:
            break
        rows[place] = row
        if place % IDS_AT_ONCE == 0:
            yield 0, len(labels)
    else:
        return rows
    if not np.array_equal(np.sort(labels), np.arange(len(labels))):
        raise MismatchError(
            f"{name} numbers its vectors by ids such as {label}, which are neither rows nor ids of the corpus; give a file with "
            "lines of number, tab and passage id as their ids."
        )
    return labels
