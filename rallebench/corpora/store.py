"""The passages of an index, in order, memory-mapped: row number → passage without loading the corpus."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from rallebench.errors import BackendError, BadFileError
from rallebench.types import Passage

PASSAGES, OFFSETS = "passages.jsonl", "offsets.npy"


class PassageStore:
    """Read passages by row; the file stays on disk. Safe for several reading threads."""

    def __init__(self, folder: Path) -> None:
        folder = Path(folder)
        try:
            self._offsets = np.load(folder / OFFSETS, mmap_mode="r")
            with open(folder / PASSAGES, "rb") as handle:
                self._map = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise BadFileError(
                f"{folder} is not a whole index ({error}); build it again with 'rallebench index'."
            ) from None
        if len(self._map) != int(self._offsets[-1]):
            raise BadFileError(
                f"{folder / PASSAGES} was changed after the index was built; build the index again."
            )

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> Passage:
        if not 0 <= row < len(self):
            raise IndexError(row)
        record = json.loads(self._map[int(self._offsets[row]) : int(self._offsets[row + 1])])
        return Passage(record["id"], record["text"], record["title"], record["page"])

    def __iter__(self) -> Iterator[Passage]:
        return (self[row] for row in range(len(self)))

    def page_ids(self) -> frozenset[str]:
        """All page ids; reads the whole store once."""
        return frozenset(passage.page_id for passage in self)

    def close(self) -> None:
        """Unmap the file."""
        self._map.close()


def write_store(folder: Path, passages: Iterable[Passage]) -> tuple[int, str]:
    """Write the store into ``folder``; return (number of passages, sha256 of all of them).

    The sha256 is the corpus's fingerprint: ids, texts, titles and page ids, in order.
    """
    offsets = array("Q", [0])
    total = hashlib.sha256()
    try:
        with open(folder / PASSAGES, "wb") as handle:
            for p in passages:
                line = json.dumps(
                    {"id": p.doc_id, "page": p.page_id, "title": p.title, "text": p.text}, ensure_ascii=False
                ).encode("utf-8", "surrogatepass")
                line += b"\n"
                handle.write(line)
                total.update(line)
                offsets.append(offsets[-1] + len(line))
            handle.flush()
            os.fsync(handle.fileno())
        np.save(folder / OFFSETS, np.frombuffer(offsets, dtype=np.uint64))
    except OSError as error:
        raise BackendError(
            f"Could not write {folder}: {error.strerror or error}; free space and build again."
        ) from error
    return len(offsets) - 1, total.hexdigest()
