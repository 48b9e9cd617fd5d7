"""Vectors on their way into an index, and vectors kept beside one so that a few can be scored exactly."""

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
"""Vectors that are scored exactly together: few, so that a small index stays small while it searches."""


def damaged(path: Path, reason: object = "") -> BadFileError:
    """The sentence for an index file that its library cannot read."""
    why = " ".join(str(reason).split())[-160:]
    return BadFileError(
        f"{path} is missing, cut short or damaged{f' ({why})' if why else ''}; build the index again."
    )


def unwritten(path: Path, reason: object) -> BackendError:
    """The sentence for an index file that its library could not write."""
    return BackendError(f"Could not write {path} ({reason}); free space, or use another workspace.")


def pieces(vectors: Any, rows: int = 0) -> Iterator[tuple[int, Vectors]]:
    """(first row, float32 piece in C order) of (n, dim), in order; ``rows`` a piece, 0 = about 16 MB.

    Raises BackendError for a value that is not a number.
    """
    count, dim = vectors.shape
    rows = rows or max(1, PIECE_BYTES // (4 * dim))
    for start in range(0, count, rows):
        piece = np.ascontiguousarray(vectors[start : start + rows], dtype=np.float32)
        if not np.isfinite(piece).all():
            bad = start + int(np.flatnonzero(~np.isfinite(piece).all(axis=1))[0])
            raise BackendError(
                f"Vector {bad + 1} of {count} holds a value that is not a number; "
                "encode the corpus again, in float32 if the encoder ran in another type."
            )
        yield start, piece


def fed(
    vectors: Any, add: Callable[[int, Vectors], None], rows: int = 0
) -> Generator[Progress, None, None]:
    """Hand all ``pieces`` to ``add(first row, piece)``, yielding how many vectors are in, and all of them."""
    for start, piece in pieces(vectors, rows):
        yield start, len(vectors)
        add(start, piece)
    yield len(vectors), len(vectors)


def sample(vectors: Any, size: int, seed: int) -> Vectors:
    """At most ``size`` rows, drawn without repetition by ``seed``, in their order."""
    if len(vectors) <= size:
        return np.ascontiguousarray(vectors, dtype=np.float32)
    rows = np.sort(np.random.default_rng(seed).choice(len(vectors), size, replace=False))
    return np.ascontiguousarray(vectors[rows], dtype=np.float32)


def keep(folder: Path, vectors: Any) -> None:
    """Have ``vectors.npy`` in ``folder``: a second name of the file they are mapped from, or a copy of it."""
    target = folder / VECTORS
    source = npy_of(vectors)
    if source is not None:
        try:
            os.link(source, target)
        except OSError:  # another file system, or one without links
            shutil.copyfile(source, target)
        return
    with open(target, "wb") as handle:
        header = {"descr": "<f4", "fortran_order": False, "shape": tuple(vectors.shape)}
        np.lib.format.write_array_header_1_0(handle, header)  # type: ignore[no-untyped-call]
        for _, piece in pieces(vectors):
            handle.write(piece.astype("<f4", copy=False).data)


def npy_of(vectors: Any) -> Path | None:
    """The .npy file of which ``vectors`` is the whole content, memory-mapped; None if there is none."""
    name = getattr(vectors, "filename", None)
    if not isinstance(vectors, np.memmap) or not name or not str(name).endswith(".npy"):
        return None
    with contextlib.suppress(BadFileError):
        mapped: Any = load_array(Path(name))
        same = mapped.shape == vectors.shape and mapped.dtype == vectors.dtype == np.dtype("<f4")
        if same and mapped.flags.c_contiguous and mapped.offset == vectors.offset:
            return Path(name)
    return None


class StoredRows:
    """Rows of ``vectors.npy``, read one by one: the file takes no memory of this process."""

    def __init__(self, folder: Path) -> None:
        path = folder / VECTORS
        try:
            mapped: Any = load_array(path, "<f4", 2)
        except BadFileError as error:
            raise damaged(path, error) from None
        if not mapped.flags.c_contiguous:
            raise damaged(path, "stored by columns")
        self.shape = mapped.shape
        self._start, self._width = int(mapped.offset), 4 * mapped.shape[1]
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._turn = threading.Lock()

    def rows(self, rows: np.ndarray[Any, Any]) -> Vectors:
        """Float32 (len(rows), dim)."""
        file, width, read = self._file, self._width, getattr(os, "pread", self._read)
        # One read a row: mapping the file instead would leave most of it in memory after some queries.
        parts = [read(file, width, start) for start in (rows * width + self._start).tolist()]
        return np.frombuffer(b"".join(parts), dtype="<f4").reshape(len(rows), self.shape[1])

    def _read(self, file: int, size: int, start: int) -> bytes:
        """``os.pread`` where there is none."""
        with self._turn:
            os.lseek(file, start, os.SEEK_SET)
            return os.read(file, size)

    def best(self, vectors: Vectors, candidates: np.ndarray[Any, Any], k: int) -> Neighbours:
        """The best k of (q, c) candidate rows (−1 = none) by exact inner product, ties to the smaller row."""
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
            scores[piece], rows[piece] = ranked(products, near, k)
        return scores, rows

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def no_neighbours(count: int, k: int) -> Neighbours:
    """The answer of ``count`` queries that found nothing, to be filled."""
    return (np.full((count, k), -np.inf, dtype=np.float32), np.full((count, k), -1, dtype=np.int64))


def ranked(scores: Vectors, rows: np.ndarray[Any, Any], k: int) -> Neighbours:
    """The best k of (q, c) scored rows, best first; equal scores keep their order."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    best, best_rows = (np.take_along_axis(values, order, axis=1) for values in (scores, rows))
    return none_found(best, best_rows, k)


def none_found(scores: Any, rows: Any, k: int) -> Neighbours:
    """A library's (q, c) answer as ours: k wide, −1 and −inf where nothing was found."""
    rows = rows.astype(np.int64, copy=False)
    if rows.shape[1] < k:
        wide = ((0, 0), (0, k - rows.shape[1]))
        rows = np.pad(rows, wide, constant_values=-1)
        scores = np.pad(scores, wide, constant_values=-np.inf)
    if rows.size and (rows[:, -1] < 0).any():
        scores = np.where(rows < 0, np.float32(-np.inf), scores)
    return scores, rows
