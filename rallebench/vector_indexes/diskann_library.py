"""Common part of the two DiskANN kinds (Subramanya et al. 2019, "DiskANN", NeurIPS 32), using diskannpy.

Inner products become distances: vectors are divided by the longest, M, and if their lengths differ,
extended by a dimension √(1 − |x|²/M²), so that all have length 1 (Bachrach et al. 2014,
doi:10.1145/2645710.2645741). For a query divided by its length, |q'−x'|² = 2 − 2 q·x/(M |q|).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.errors import BackendError, MissingPackageError
from rallebench.core.files import read_object, write_json
from rallebench.core.json_values import JsonValue
from rallebench.core.types import Json
from rallebench.core.versions import optional
from rallebench.vector_indexes import Neighbours, Progress, Vectors, _diskann_build
from rallebench.vector_indexes.faiss_index import cores
from rallebench.vector_indexes.stored_vectors import damaged_file, none_found, pieces

ABOUT, PREFIX, DATA, LOG = "diskann.json", "ann", "vectors.bin", "build.log"
COMPLEXITY, FORESEEN = 100, 1000
"""``FORESEEN``: candidates for which the library reserves room; beyond it, the library allocates more and prints a message."""
SAME_LENGTH = 1e-6
WATCH_SECONDS = 0.5
_PERCENT = re.compile(rb"([\d.]+)% of index build completed")
_quiet = threading.Lock()


def package() -> Any:
    """Return diskannpy. Raises MissingPackageError with the platforms that have it."""
    diskannpy = optional(
        "diskannpy",
        "diskannpy",
        "and this index needs it (there are wheels for Linux on x86-64 with Python below 3.12 only; "
        "elsewhere choose 'ivf-sq8' for little memory or 'hnsw' for speed)",
    )
    if int(np.__version__.split(".")[0]) > 1:
        why = f"and diskannpy answers wrongly with numpy {np.__version__}"
        raise MissingPackageError("numpy 1.25", why, "numpy==1.25.0")
    return diskannpy


def build(folder: Path, vectors: Any, order: Mapping[str, Any]) -> Generator[Progress, None, None]:
    """Write the index of ``order`` ("disk" or "memory", with the builder's arguments) into ``folder``."""
    package()
    count, dim = vectors.shape
    longest, augmented = yield from _lengths(vectors)
    with open(folder / DATA, "wb") as handle:
        _header(handle, count, dim + augmented)
        for _, piece in pieces(vectors):
            handle.write(_normalise(piece, longest, augmented).data)
    full = {**order, "data": str(folder / DATA), "folder": str(folder), "prefix": PREFIX}
    full["threads"] = cores(order["threads"])
    yield from _in_a_child(folder, full, count)
    (folder / DATA).unlink()
    spare = ("_vectors.bin", "_mem.index.data", "_mem.index", "_sample_data.bin", "_sample_ids.bin")
    for name in spare if order["kind"] == "disk" else ():
        (folder / f"{PREFIX}{name}").unlink(missing_ok=True)
    about(folder, order["kind"], count, dim, longest, augmented)


def about(
    folder: Path,
    kind: str,
    count: int,
    dim: int,
    longest: float,
    augmented: bool,
    prefix: str = PREFIX,
) -> None:
    """Record the facts missing in the files themselves, and the sizes of the files."""
    files = {p.name: p.stat().st_size for p in sorted(folder.glob(f"{prefix}*"))}
    size = {"count": int(count), "dim": int(dim), "longest": float(longest)}
    form: dict[str, JsonValue] = {"augmented": bool(augmented), "prefix": prefix, "files": files}
    write_json(folder / ABOUT, {"kind": kind, **size, **form})


def _lengths(vectors: Any) -> Generator[Progress, None, tuple[float, bool]]:
    """Yield progress; return the longest length, and whether lengths differ."""
    low, high = np.inf, 0.0
    for _, piece in pieces(vectors):
        yield 0, len(vectors)
        lengths = np.sqrt(np.einsum("nd,nd->n", piece, piece, dtype=np.float64))
        low, high = min(low, float(lengths.min())), max(high, float(lengths.max()))
    high = high or 1.0
    return (1.0, False) if abs(1 - low) < SAME_LENGTH > abs(1 - high) else (high, True)


def _normalise(piece: Vectors, longest: float, augmented: bool) -> np.ndarray[Any, Any]:
    if not augmented:
        return piece
    scaled = piece.astype(np.float64) / longest
    rest = np.sqrt(np.maximum(0.0, 1.0 - np.einsum("nd,nd->n", scaled, scaled)))
    return np.ascontiguousarray(np.column_stack([scaled, rest]), dtype="<f4")


def _header(handle: Any, count: int, dim: int) -> None:
    handle.write(int(count).to_bytes(4, "little") + int(dim).to_bytes(4, "little"))


def _in_a_child(
    folder: Path, order: Mapping[str, Any], count: int
) -> Generator[Progress, None, None]:
    """Run the builder; closing this generator, or the end of this process, stops it."""
    with open(folder / LOG, "wb") as log:
        child = subprocess.Popen(
            [sys.executable, _diskann_build.__file__, json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": str(order["threads"])},
        )
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = child.wait(WATCH_SECONDS)
                    break
                yield int(count * _percent(folder / LOG) / 100), count
        finally:
            assert child.stdin is not None
            child.stdin.close()
            child.wait()
    if code:
        last = (folder / LOG).read_bytes()[-2000:].decode("utf-8", "replace").split("\n")
        reason = next((line.strip() for line in reversed(last) if line.strip()), "no message")
        raise BackendError(
            f"DiskANN could not build the index ({reason[-200:]}; code {code}). If the disk or the memory is full, "
            "free some; otherwise choose another kind."
        )
    (folder / LOG).unlink()
    yield count, count


def _percent(log: Path) -> float:
    with open(log, "rb") as handle:
        handle.seek(max(0, os.path.getsize(log) - 300))
        percents = _PERCENT.findall(handle.read())
    return min(100.0, float(percents[-1])) if percents else 0.0


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Discard the library's output from C++; nothing else can print meanwhile."""
    with _quiet, open(os.devnull, "wb") as nowhere:
        c = ctypes.CDLL(None)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        c.fflush(None)
        before = [os.dup(1), os.dup(2)]
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            c.fflush(None)
            for number, saved in enumerate(before, 1):
                os.dup2(saved, number)
                os.close(saved)


def read_about(folder: Path) -> Json:
    """Read ``diskann.json`` and check that every file has the recorded size."""
    try:
        about = read_object(folder / ABOUT)
        for name, size in about["files"].items():
            if not (folder / name).exists() or (folder / name).stat().st_size != size:
                raise damaged_file(folder / name)
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged_file(folder / ABOUT, error) from None
    return about


class DiskAnn:
    """A loaded graph, searched one query at a time, because a batch would hold Python's global lock."""

    exact = False

    def __init__(
        self, graph: Any, about: Mapping[str, Any], asked_at_once: int, knobs: Mapping[str, int]
    ) -> None:
        self._graph, self._knobs = [graph], dict(knobs)
        self._drop = weakref.finalize(self, _close_silently, self._graph)
        self._count, self._augmented = int(about["count"]), bool(about["augmented"])
        self._longest = float(about["longest"])
        self._turns = threading.BoundedSemaphore(asked_at_once)

    def search(
        self, vectors: Vectors, k: int, *, complexity: int = COMPLEXITY, **more: int
    ) -> Neighbours:
        """Return scores (q, k) best first and rows (q, k), −1 = none."""
        most = min(k, self._count)
        complexity, more = max(complexity, most), {**self._knobs, **more}
        lengths = np.maximum(np.sqrt(np.einsum("qd,qd->q", vectors, vectors)), np.float32(1e-30))
        queries = np.zeros((len(vectors), vectors.shape[1] + self._augmented), dtype=np.float32)
        np.divide(vectors, lengths[:, None], out=queries[:, : vectors.shape[1]])
        rows = np.empty((len(vectors), most), dtype=np.uint32)
        distances = np.empty((len(vectors), most), dtype=np.float32)
        graph = self._graph[0]
        for number, query in enumerate(queries):
            with self._turns, quiet() if complexity > FORESEEN else contextlib.nullcontext():
                rows[number], distances[number] = graph.search(query, most, complexity, **more)
        scores = (1.0 - distances / 2.0) * (self._longest * lengths[:, None])
        neighbours = rows.astype(np.int64)
        # unreached slots keep their old value: a distance smaller than the previous one
        missing = np.zeros(neighbours.shape, dtype=bool)
        missing[:, 1:] = np.diff(distances, axis=1) < 0
        missing = np.logical_or.accumulate(missing, axis=1) | (neighbours >= self._count)
        neighbours[missing] = -1
        return none_found(np.where(missing, np.float32(-np.inf), scores), neighbours, k)

    def close(self) -> None:
        self._drop()


def _close_silently(graph: list[Any]) -> None:
    """Close the graph silently: the library prints when an index is freed, which could follow a program's last line."""
    with quiet():
        graph.clear()
