"""DiskANN disk indexes built elsewhere: their header, and their vectors row by row.

``PREFIX_disk.index`` begins with a sector of numbers: vectors, dimensions, start, bytes per node,
nodes per sector. Each node is a float32 vector followed by its neighbours. For inner products the
vectors were divided by the longest and extended by one dimension.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.errors import BadFileError, MismatchError
from rallebench.vector_indexes import Neighbours, Vectors
from rallebench.vector_indexes.diskann_library import DiskAnn
from rallebench.vector_indexes.stored_vectors import StoredRows, damaged_file

SECTOR = 4096
GRAPH, NORM = "_disk.index", "_disk.index_max_base_norm.bin"
NEEDED = (GRAPH, "_pq_compressed.bin", "_pq_pivots.bin")
OPTIONAL = (NORM, "_metadata.bin", "_disk.index_medoids.bin", "_disk.index_centroids.bin")
LOOKED_AT, SAME_LENGTH = 256, 1e-3


@dataclass(frozen=True, slots=True)
class DiskFiles:
    """Header of a disk index. ``dim``: of the original vectors; ``longest``: their divisor; ``metric``: mips or l2."""

    folder: Path
    prefix: str
    count: int
    dim: int
    node_bytes: int
    nodes_per_sector: int
    metric: str
    longest: float

    @property
    def names(self) -> list[str]:
        """Return the files that a search needs."""
        names = (self.prefix + end for end in (*NEEDED, *OPTIONAL))
        return [name for name in names if (self.folder / name).exists()]


def read_disk_files(folder: Path, prefix: str) -> DiskFiles:
    """Read the header of ``PREFIX_disk.index``. Raises BadFileError if it is incomplete or has another layout."""
    for end in NEEDED:
        if not (folder / (prefix + end)).is_file():
            raise BadFileError(
                f"{folder / (prefix + end)} is missing; a DiskANN disk index needs it."
            )
    path = folder / (prefix + GRAPH)
    with open(path, "rb") as handle:
        head = handle.read(SECTOR)
    numbers = np.frombuffer(head[8:80], dtype="<u8").tolist()
    if len(numbers) < 9:
        raise damaged_file(path, "too short")
    count, stored, _, node, per = numbers[:5]
    sectors = -(-count // per) if per else count * -(-node // SECTOR)
    if (
        not count
        or not stored
        or path.stat().st_size != SECTOR * (1 + sectors)
        or (per or 1) * node > SECTOR * (1 if per else node)
    ):
        raise BadFileError(
            f"{path} is truncated, or was written with a sector size other than the {SECTOR} bytes that diskannpy reads; "
            "import the vectors from which it was made (.npmmap or .npy)."
        )
    norm = folder / (prefix + NORM)
    mips = norm.exists()
    longest = float(np.frombuffer(norm.read_bytes()[8:12], dtype="<f4")[0]) if mips else 1.0
    return DiskFiles(
        folder, prefix, count, stored - mips, node, per, "mips" if mips else "l2", longest
    )


class DiskRows(StoredRows):
    """Vectors of a disk index, read one by one and restored to their original length."""

    def __init__(self, files: DiskFiles) -> None:
        self.shape = (files.count, files.dim)
        self._files = files
        self._width = 4 * files.dim
        self._file = os.open(files.folder / (files.prefix + GRAPH), os.O_RDONLY)

    def rows(self, rows: np.ndarray[Any, Any]) -> Vectors:
        """Return float32 (len(rows), dim)."""
        files, out = self._files, np.empty((len(rows), self.shape[1]), dtype=np.float32)
        for number, row in enumerate(rows.tolist()):
            if files.nodes_per_sector:
                sector, place = divmod(row, files.nodes_per_sector)
            else:
                sector, place = row * -(-files.node_bytes // SECTOR), 0
            os.preadv(self._file, [out[number]], SECTOR * (1 + sector) + place * files.node_bytes)
        return out * np.float32(files.longest)


def check_same_length(files: DiskFiles) -> None:
    """Raise MismatchError if it ranks by distance and lengths differ, since that is not the order of inner products."""
    if files.metric == "mips":
        return
    rows = DiskRows(files)
    try:
        some = rows.rows(
            np.linspace(0, files.count - 1, min(LOOKED_AT, files.count)).astype(np.int64)
        )
    finally:
        rows.close()
    lengths = np.linalg.norm(some, axis=1)
    if float(lengths.max() - lengths.min()) > SAME_LENGTH * float(lengths.max()):
        raise MismatchError(
            f"{files.folder / files.prefix} ranks by distance and its vectors differ in length, so it does not rank "
            "by inner product; import the vectors from which it was made (.npmmap or .npy)."
        )


class Imported:
    """A disk index of another program, whose hits are scored exactly."""

    exact = False

    def __init__(self, graph: DiskAnn, rows: DiskRows) -> None:
        self._graph, self._rows = graph, rows

    def search(self, vectors: Vectors, k: int, **knobs: int) -> Neighbours:
        """Return scores (q, k) best first and rows (q, k), −1 = none."""
        return self._rows.best(vectors, self._graph.search(vectors, k, **knobs)[1], k)

    def close(self) -> None:
        self._graph.close()
        self._rows.close()


def opening(files: DiskFiles) -> Mapping[str, Any]:
    """Return the arguments of ``StaticDiskIndex`` for files without diskannpy's own note."""
    if (files.folder / f"{files.prefix}_metadata.bin").exists():
        return {}
    return {"distance_metric": files.metric, "vector_dtype": np.float32, "dimensions": files.dim}
