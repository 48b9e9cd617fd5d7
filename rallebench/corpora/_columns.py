"""Long columns of numbers on their way to ``.npy`` files, and the look-up of rows by id: memory stays flat."""

from __future__ import annotations

import hashlib
import shutil
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

BLOCK = 2**16
SORTED_AT_ONCE = 2**20


class Column:
    """Numbers (uint64) that are appended to a file beside ``path`` and become ``path`` when they are finished.

    ``width``: numbers in a row; 1 gives an array of shape (n,), more one of (n, width).
    """

    def __init__(self, path: Path, width: int = 1) -> None:
        self._path, self._width = path, width
        self._raw = path.with_suffix(".raw")
        self._handle = open(self._raw, "wb")  # noqa: SIM115 - finish or close ends it
        self._held = array("Q")
        self._count = 0

    def append(self, *numbers: int) -> None:
        """Append one row."""
        self._held.extend(numbers)
        self._count += 1
        if len(self._held) >= BLOCK:
            self._flush()

    def _flush(self) -> None:
        self._held.tofile(self._handle)
        self._held = array("Q")

    def finish(self) -> None:
        """Write ``path``."""
        self._flush()
        self._handle.close()
        shape = (self._count,) if self._width == 1 else (self._count, self._width)
        header = {"descr": np.dtype(np.uint64).str, "fortran_order": False, "shape": shape}
        with open(self._path, "wb") as target, open(self._raw, "rb") as raw:
            npy.write_array_header_1_0(target, header)  # type: ignore[no-untyped-call,unused-ignore]
            shutil.copyfileobj(raw, target, 2**20)
        self._raw.unlink()

    def close(self) -> None:
        """Let go of the file, finished or not."""
        with suppress(OSError):  # a full disk, which is known already
            self._handle.close()


def stable_hash(doc_id: str) -> int:
    """A 64-bit hash that is the same in every process."""
    data = doc_id.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def write_lookup(hashes: Path, target: Path) -> None:
    """From hashes by row (``.npy``, uint64, (n,)) write (2, n) uint64: the sorted hashes, and their rows.

    Equal hashes keep the order of their rows. A range of hashes is sorted at a time, so memory stays flat, and
    nothing is written through a map: on a full disk that would end the process.
    """
    found: NDArray[np.uint64] = np.asarray(np.load(hashes, mmap_mode="r"))
    parts = max(1, -(-len(found) // SORTED_AT_ONCE))
    bounds = [np.uint64(min(2**64 * part // parts, 2**64 - 1)) for part in range(parts + 1)]
    beside = target.with_suffix(".raw")
    with open(target, "wb") as out:
        header = {
            "descr": np.dtype(np.uint64).str,
            "fortran_order": False,
            "shape": (2, len(found)),
        }
        npy.write_array_header_1_0(out, header)  # type: ignore[no-untyped-call,unused-ignore]
        with open(beside, "wb") as second:
            for part, (low, high) in enumerate(zip(bounds, bounds[1:]), 1):
                below = found <= high if part == parts else found < high
                rows = np.flatnonzero((found >= low) & below)
                order = np.argsort(found[rows], kind="stable")
                out.write(found[rows][order].tobytes())
                second.write(rows[order].astype(np.uint64).tobytes())
        with open(beside, "rb") as second:
            shutil.copyfileobj(second, out, 2**20)
    beside.unlink()


def rows_with(lookup: NDArray[np.uint64], doc_id: str) -> Sequence[int]:
    """The rows that may hold ``doc_id``, in order: nearly always one or none."""
    wanted = np.uint64(stable_hash(doc_id))
    start = int(np.searchsorted(lookup[0], wanted))
    end = start
    while end < lookup.shape[1] and lookup[0, end] == wanted:
        end += 1
    return [int(row) for row in lookup[1, start:end]]
