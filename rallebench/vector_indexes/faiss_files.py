"""Faiss files of other programs. Flat ones, which are vectors behind a header, are read here; all others are examined by
Faiss in a process of its own, because a damaged file can end it.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from rallebench.core.arrays import load_array
from rallebench.core.errors import BadFileError
from rallebench.vector_indexes.faiss_index import faiss
from rallebench.vector_indexes.stored_vectors import damaged_file, not_finite_error

Labels = NDArray[np.int64]
INNER_PRODUCT, DISTANCE = 0, 1
"""Faiss's metrics; those above 1 have an argument in the header."""
FLAT, MAPS, BINARY = (b"IxFI", b"IxF2", b"IxFl"), (b"IxMp", b"IxM2"), b"IB"
PROGRAM = Path(__file__).with_name("_faiss_look.py")
"""Run by its path: importing it would import Faiss."""

HEADER = struct.Struct("<4siqqq?i")
"""Four letters, dimensions, vectors, two unused numbers, whether it is trained, metric."""
SIZE = struct.Struct("<Q")
MEMORY, FACTOR = 8 * 2**30, 4
"""Bytes that Faiss may take while it examines a file: these, and this many times the file's size."""
SECONDS, BYTES_A_SECOND = 300, 20 * 2**20
OTHER_METRIC = "ranks by a metric other than inner product and (squared) distance"


@dataclass(frozen=True, slots=True)
class FaissFile:
    """A Faiss file. ``name``: Faiss's class; ``by_distance``: ranked by distance, else by inner product; ``start``: byte of
    the first vector if the file holds whole ones, else 0; ``labels``: (count,) the numbers that a search returns, in any order
    unless ``start`` is given; None for 0, 1, 2 … ``m`` and ``ef_construction``: of a graph.
    """

    name: str
    count: int
    dim: int
    by_distance: bool
    start: int = 0
    labels: Labels | None = None
    m: int = 0
    ef_construction: int = 0


def read_faiss_file(path: Path) -> FaissFile:
    """Read the facts of a Faiss file. Raises BadFileError if it is damaged or cannot be searched."""
    with open(path, "rb") as handle:
        head = handle.read(HEADER.size + HEADER.size + SIZE.size)
    if head[:2] == BINARY:
        raise BadFileError(
            f"{path} is a binary Faiss index; only indexes of numbers can be searched. Import the vectors themselves."
        )
    if head[:4] in FLAT:
        return _flat(path, head, 0)
    if head[:4] in MAPS and head[HEADER.size :][:4] in FLAT:
        return _flat(path, head, HEADER.size)
    return _examine(path)


def _flat(path: Path, head: bytes, before: int) -> FaissFile:
    """Read a flat index that begins at ``before``, inside a map of ids if that is not 0."""
    start = before + HEADER.size + SIZE.size
    if len(head) < start:
        raise damaged_file(path, "too short")
    _, dim, count, _, _, _, metric = HEADER.unpack_from(head, before)
    if metric not in (INNER_PRODUCT, DISTANCE):
        raise BadFileError(f"{path} {OTHER_METRIC}; import its vectors.")
    end = start + 4 * dim * count
    size = end + (SIZE.size + 8 * count if before else 0)
    if dim < 1 or count < 1 or path.stat().st_size != size:
        says = f"it says {count} vectors of {dim} dimensions, which take {size} bytes, and has {path.stat().st_size}"
        raise damaged_file(path, says)
    labels = None
    if before:
        labels = np.array(np.memmap(path, "<i8", "r", end + SIZE.size, (count,)))
        if len(np.unique(labels)) != count or labels.min() < 0:
            raise BadFileError(
                f"{path} gives two vectors one id, or a negative one; write it with an id for each."
            )
    name = "IndexFlatL2" if metric else "IndexFlatIP"
    return FaissFile(name, count, dim, metric == DISTANCE, start, labels)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The line of ``_faiss_look``."""

    error: str = ""
    damage: str = ""
    odd_row: int = 0
    name: str = ""
    metric: int = 0
    count: int = 0
    dim: int = 0
    m: int = 0
    ef_construction: int = 0


def _examine(path: Path) -> FaissFile:
    """Have Faiss read and search the file in a process of its own."""
    faiss()  # raises if the package is missing
    size = path.stat().st_size
    with tempfile.TemporaryDirectory(prefix="rallebench-") as folder:
        order = [str(path.resolve()), folder, str(MEMORY + FACTOR * size)]
        try:
            done = subprocess.run(
                [sys.executable, str(PROGRAM), *order],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=SECONDS + size / BYTES_A_SECOND,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise damaged_file(path, "Faiss does not come to an end with it") from None
        try:
            line = done.stdout.strip().rpartition(b"\n")[2]
            answer = TypeAdapter(_Answer).validate_json(line)
        except ValidationError:
            raise damaged_file(path, f"it ended Faiss, code {done.returncode}") from None
        labels = Path(folder) / "labels.npy"
        own: Any = np.array(load_array(labels, np.int64, 1)) if labels.exists() else None
    if answer.damage:
        raise damaged_file(path, answer.damage)
    if answer.odd_row:
        raise not_finite_error(path, answer.odd_row, answer.count)
    if answer.error:
        raise BadFileError(f"{path} {answer.error}; import the vectors that it was made of.")
    if answer.metric not in (INNER_PRODUCT, DISTANCE):
        raise BadFileError(f"{path} {OTHER_METRIC}; import the vectors that it was made of.")
    return FaissFile(
        *(answer.name, answer.count, answer.dim, answer.metric == DISTANCE),
        start=_vectors_at_end(path, answer) if answer.name == "IndexHNSWFlat" else 0,
        labels=own,
        m=answer.m,
        ef_construction=answer.ef_construction,
    )


def _vectors_at_end(path: Path, answer: _Answer) -> int:
    """Return the byte at which the flat index at the end of a file begins its vectors; 0 if there is none."""
    start = path.stat().st_size - 4 * answer.count * answer.dim
    with open(path, "rb") as handle:
        handle.seek(max(0, start - HEADER.size - SIZE.size))
        head = handle.read(HEADER.size)
    is_flat = len(head) == HEADER.size and head[:4] in FLAT
    return start if is_flat and HEADER.unpack(head)[1:3] == (answer.dim, answer.count) else 0
