"""Long columns of numbers in ``.npy`` files, and look-up of rows by id, in constant memory."""

from __future__ import annotations

import hashlib
import shutil
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rallebench.core.arrays import load_array

BLOCK = 2**16
SORTED_AT_ONCE = 2**20


class NumberColumn:
    """Appends numbers (uint64) to a raw file, from which ``finish`` writes ``path``.

    ``width``: numbers per row; 1 gives an array of shape (n,), more give (n, width).
    """

    def __init__(self, path: Path, width: int = 1) -> None:
        self._path, self._width = path, width
        self._raw = path.with_suffix(".raw")
        self._handle = open(self._raw, "wb")  # noqa: SIM115 - finish or close ends it
        self._pending = array("Q")
        self._count = 0

    def append(self, *numbers: int) -> None:
        """Append one row of ``width`` numbers."""
        self._pending.extend(numbers)
        self._count += 1
        if len(self._pending) >= BLOCK:
            self._flush()

    def _flush(self) -> None:
        self._pending.tofile(self._handle)
        self._pending = array("Q")

    def finish(self) -> None:
        """Write ``path`` in NumPy's format and remove the raw file."""
        self._flush()
        self._handle.close()
        shape = (self._count,) if self._width == 1 else (self._count, self._width)
        with open(self._path, "wb") as target, open(self._raw, "rb") as raw:
            _write_header(target, shape)
            shutil.copyfileobj(raw, target, 2**20)
        self._raw.unlink()

    def close(self) -> None:
        with suppress(OSError):  # a full disk, already reported
            self._handle.close()


def _write_header(out: BinaryIO, shape: tuple[int, ...]) -> None:
    header = {"descr": np.dtype(np.uint64).str, "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(out, header)  # type: ignore[no-untyped-call,unused-ignore]


def stable_hash(doc_id: str) -> int:
    """Return a 64-bit hash that is the same in every process."""
    data = doc_id.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def write_lookup(hashes: Path, target: Path) -> None:
    """Write (2, n) uint64, the sorted hashes and their rows, from the hashes by row (``.npy``, (n,)).

    Equal hashes keep the order of their rows. One range of hashes is sorted at a time, so memory stays
    constant. Nothing is written through a memory map, which would kill the process on a full disk.
    """
    numbers: NDArray[np.uint64] = np.asarray(load_array(hashes))
    ranges = max(1, -(-len(numbers) // SORTED_AT_ONCE))
    bounds = [np.uint64(min(2**64 * number // ranges, 2**64 - 1)) for number in range(ranges + 1)]
    raw = target.with_suffix(".raw")
    with open(target, "wb") as out:
        _write_header(out, (2, len(numbers)))
        with open(raw, "wb") as second:
            for number, (low, high) in enumerate(zip(bounds, bounds[1:]), 1):
                in_range = numbers <= high if number == ranges else numbers < high
                rows = np.flatnonzero((numbers >= low) & in_range)
                order = np.argsort(numbers[rows], kind="stable")
                out.write(numbers[rows][order].tobytes())
                second.write(rows[order].astype(np.uint64).tobytes())
        with open(raw, "rb") as second:
            shutil.copyfileobj(second, out, 2**20)
    raw.unlink()


def rows_with(lookup: NDArray[np.uint64], doc_id: str) -> Sequence[int]:
    """Return the candidate rows of ``doc_id``, in order: nearly always one or none."""
    hashed = np.uint64(stable_hash(doc_id))
    start = int(np.searchsorted(lookup[0], hashed))
    end = start
    while end < lookup.shape[1] and lookup[0, end] == hashed:
        end += 1
    return [int(row) for row in lookup[1, start:end]]
