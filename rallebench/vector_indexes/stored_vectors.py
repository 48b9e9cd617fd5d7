"""Feeding of vectors into an index, and storage of vectors beside one so that a few can be scored exactly."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.arrays import load_array
from rallebench.core.errors import BackendError, BadFileError
from rallebench.vector_indexes import Neighbours, Progress, Vectors

PIECE_BYTES = 16 * 2**20
VECTORS = "vectors.npy"
AT_ONCE_BYTES = 2**20
"""Vectors per batch of exact scoring; few, so that a small index stays small during a search."""


def damaged_file(path: Path, reason: object = "") -> BadFileError:
    """Return the error for an index file that its library cannot read."""
    why = " ".join(str(reason).split())[-160:]
    return BadFileError(
        f"{path} is missing, truncated or damaged{f' ({why})' if why else ''}; build the index again."
    )


def not_finite_error(path: Path, row: int, count: int) -> BadFileError:
    """Return the error for a file of vectors in which a row, from 1, is not made of numbers."""
    return BadFileError(
        f"{path}, row {row} of {count} holds a value that is not a finite number; "
        "encode the corpus again, in float32 if the encoder ran in another type."
    )


def write_error(path: Path, reason: object) -> BackendError:
    """Return the error for an index file that its library could not write."""
    return BackendError(f"Could not write {path} ({reason}); free space, or use another workspace.")


def pieces(vectors: Any, rows: int = 0) -> Iterator[tuple[int, Vectors]]:
    """Yield (first row, float32 piece in C order) of (n, dim), in order; ``rows`` per piece, 0 = about 16 MB.

    Raises BackendError for a value that is not a number.
    """
    count, dim = vectors.shape
    rows = rows or max(1, PIECE_BYTES // (4 * dim))
    for start in range(0, count, rows):
        piece = np.ascontiguousarray(vectors[start : start + rows], dtype=np.float32)
        if not np.isfinite(piece).all():
            bad = start + int(np.flatnonzero(~np.isfinite(piece).all(axis=1))[0])
            raise BackendError(
                f"Vector {bad + 1} of {count} contains a value that is not a number; "
                "encode the corpus again, in float32 if the encoder ran in another type."
            )
        yield start, piece


def add_in_pieces(
    vectors: Any, add: Callable[[int, Vectors], None], rows: int = 0
) -> Generator[Progress, None, None]:
    """Pass all ``pieces`` to ``add(first row, piece)``; yield the number of vectors added and of all vectors."""
    for start, piece in pieces(vectors, rows):
        yield start, len(vectors)
        add(start, piece)
    yield len(vectors), len(vectors)


def sample(vectors: Any, size: int, seed: int) -> Vectors:
    """Return at most ``size`` rows, drawn without replacement by ``seed``, in their order."""
    if len(vectors) <= size:
        return np.ascontiguousarray(vectors, dtype=np.float32)
    rows = np.sort(np.random.default_rng(seed).choice(len(vectors), size, replace=False))
    return np.ascontiguousarray(vectors[rows], dtype=np.float32)


def keep(folder: Path, vectors: Any) -> None:
    """Put ``vectors.npy`` into ``folder``: a hard link to the file that they are mapped from, or a copy."""
    target = folder / VECTORS
    source = mapped_file(vectors)
    if source is not None:
        try:
            os.link(source, target)
        except OSError:  # another file system, or one without hard links
            shutil.copyfile(source, target)
        return
    with open(target, "wb") as handle:
        header = {"descr": "<f4", "fortran_order": False, "shape": tuple(vectors.shape)}
        np.lib.format.write_array_header_1_0(handle, header)  # type: ignore[no-untyped-call]
        for _, piece in pieces(vectors):
            handle.write(piece.astype("<f4", copy=False).data)


def mapped_file(vectors: Any) -> Path | None:
    """Return the .npy file whose whole content is memory-mapped as ``vectors``; None if there is none."""
    name = getattr(vectors, "filename", None)
    if not isinstance(vectors, np.memmap) or not name or not str(name).endswith(".npy"):
        return None
    with contextlib.suppress(BadFileError):
        mapped: Any = load_array(Path(name))
        same = mapped.shape == vectors.shape and mapped.dtype == vectors.dtype == np.dtype("<f4")
        if same and mapped.flags.c_contiguous and mapped.offset == vectors.offset:
            return Path(name)
    return None


class Selection:
    """Selected rows of vectors, read on demand."""

    def __init__(self, vectors: Any, rows: np.ndarray[Any, Any]) -> None:
        self._vectors, self._rows = vectors, rows
        self.shape, self.dtype = (len(rows), vectors.shape[1]), vectors.dtype

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: Any) -> Any:
        return self._vectors[self._rows[rows]]


class StoredRows:
    """Rows of ``vectors.npy``, read one by one, so that the file takes no memory of this process."""

    def __init__(self, folder: Path) -> None:
        path = folder / VECTORS
        try:
            mapped: Any = load_array(path, np.float32, 2)
        except BadFileError as error:
            raise damaged_file(path, error) from None
        if not mapped.flags.c_contiguous:
            raise damaged_file(path, "stored by columns")
        self.shape = mapped.shape
        self._start, self._width = int(mapped.offset), 4 * mapped.shape[1]
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._turn = threading.Lock()

    def rows(self, rows: np.ndarray[Any, Any]) -> Vectors:
        """Return float32 (len(rows), dim)."""
        file, width, read = self._file, self._width, getattr(os, "pread", self._read)
        # One read per row, because mapping the file would leave most of it in memory after some queries.
        parts = [read(file, width, start) for start in (rows * width + self._start).tolist()]
        return np.frombuffer(b"".join(parts), dtype="<f4").reshape(len(rows), self.shape[1])

    def _read(self, file: int, size: int, start: int) -> bytes:
        """Replace ``os.pread`` on systems without it."""
        with self._turn:
            os.lseek(file, start, os.SEEK_SET)
            return os.read(file, size)

    def best(self, vectors: Vectors, candidates: np.ndarray[Any, Any], k: int) -> Neighbours:
        """Return the best k of (q, c) candidate rows (−1 = none) by exact inner product; ties go to the smaller row."""
        scores, rows = no_neighbours(len(candidates), k)
        step = max(1, AT_ONCE_BYTES // max(1, self._width * candidates.shape[1]))
        for start in range(0, len(candidates), step):
            piece = slice(start, start + step)
            near = np.sort(candidates[piece], axis=1)
            present = near >= 0
            exact = np.zeros((*near.shape, self.shape[1]), dtype=np.float32)
            exact[present] = self.rows(near[present])
            products = np.einsum("qcd,qd->qc", exact, vectors[piece])
            products[~present] = -np.inf
            scores[piece], rows[piece] = rank(products, near, k)
        return scores, rows

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def no_neighbours(count: int, k: int) -> Neighbours:
    """Return empty results for ``count`` queries, to be filled."""
    return (np.full((count, k), -np.inf, dtype=np.float32), np.full((count, k), -1, dtype=np.int64))


def rank(scores: Vectors, rows: np.ndarray[Any, Any], k: int) -> Neighbours:
    """Return the best k of (q, c) scored rows, best first; equal scores keep their order."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    best, best_rows = (np.take_along_axis(values, order, axis=1) for values in (scores, rows))
    return none_found(best, best_rows, k)


def none_found(scores: Any, rows: Any, k: int) -> Neighbours:
    """Convert a library's (q, c) result to ours: k wide, with −1 and −inf for missing neighbours."""
    rows = rows.astype(np.int64, copy=False)
    if rows.shape[1] < k:
        wide = ((0, 0), (0, k - rows.shape[1]))
        rows = np.pad(rows, wide, constant_values=-1)
        scores = np.pad(scores, wide, constant_values=-np.inf)
    if rows.size and (rows[:, -1] < 0).any():
        scores = np.where(rows < 0, np.float32(-np.inf), scores)
    return scores, rows
