"""A navigable small-world graph with its authors' library (Malkov and Yashunin 2018, arXiv:1603.09320)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.files import read_object, write_json
from rallebench.core.versions import optional
from rallebench.vector_indexes import VECTOR_INDEXES, Build, Neighbours, Vectors, complete_settings
from rallebench.vector_indexes.copies import EnteredOnce
from rallebench.vector_indexes.faiss_index import cores
from rallebench.vector_indexes.hnsw import EF_SEARCH, KNOBS, PIECE, SETTINGS
from rallebench.vector_indexes.stored_vectors import (
    add_in_pieces,
    damaged_file,
    no_neighbours,
    none_found,
    write_error,
)

FILE, ABOUT = "hnswlib.bin", "hnswlib.json"
SEED = 100


def _package() -> Any:
    why = "and this index needs it (it is compiled during installation; 'hnsw' needs no compiler)"
    return optional("hnswlib", "hnswlib", why)


class HnswlibIndex:
    """hnswlib HNSW graph: fast, almost exact; vectors and graph in memory."""

    exact = False

    @staticmethod
    def build(folder: Path, vectors: Any, **settings: Any) -> Build:
        """Write ``hnswlib.bin``. Levels are drawn with a fixed seed: with one thread, the graph is reproducible."""
        used, (count, dim) = complete_settings(SETTINGS, settings), vectors.shape
        index = _package().Index(space="ip", dim=int(dim))
        graph = {"M": used["m"], "ef_construction": used["ef_construction"]}
        index.init_index(max_elements=count, random_seed=SEED, **graph)
        threads = cores(used["threads"])

        def add(start: int, piece: Vectors) -> None:
            index.add_items(piece, np.arange(start, start + len(piece)), num_threads=threads)

        yield from add_in_pieces(vectors, add, PIECE)
        try:
            index.save_index(str(folder / FILE))
        except RuntimeError as error:
            raise write_error(folder / FILE, error) from error
        size = (folder / FILE).stat().st_size
        if size < index.index_file_size():  # the library does not check that everything was written
            raise write_error(folder / FILE, f"{size} of {index.index_file_size()} bytes are there")
        write_json(folder / ABOUT, {"count": int(count), "dim": int(dim), "bytes": size})
        return used

    @classmethod
    def load(cls, folder: Path) -> HnswlibIndex:
        package, path = _package(), folder / FILE
        about = read_object(folder / ABOUT)
        if not path.exists() or path.stat().st_size != about["bytes"]:
            raise damaged_file(path)
        index = package.Index(space="ip", dim=about["dim"])
        try:
            index.load_index(str(path), max_elements=about["count"])
        except (RuntimeError, MemoryError) as error:
            raise damaged_file(path, error) from None
        return cls(index)

    def __init__(self, index: Any) -> None:
        self._index = index
        # The library keeps ``ef`` in the index, so only searches with the same ``ef`` run concurrently.
        self._ef, self._searching = 0, 0
        self._turn = threading.Condition()

    def search(self, vectors: Vectors, k: int, *, ef_search: int = EF_SEARCH) -> Neighbours:
        """Return scores (q, k) best first and rows (q, k), −1 = none."""
        most = min(k, self._index.element_count)
        with self._with(max(ef_search, most)):
            try:
                rows, distances = self._index.knn_query(vectors, most)
            except RuntimeError:  # some query reached fewer than k vectors
                return _one_by_one(self._index, vectors, most, k)
        return none_found(1.0 - distances, rows, k)

    @contextlib.contextmanager
    def _with(self, ef: int) -> Iterator[None]:
        with self._turn:
            self._turn.wait_for(lambda: self._ef == ef or not self._searching)
            if self._ef != ef:
                self._index.set_ef(ef)
                self._ef = ef
            self._searching += 1
        try:
            yield
        finally:
            with self._turn:
                self._searching -= 1
                self._turn.notify_all()

    def close(self) -> None:
        self._index = None


def _one_by_one(index: Any, vectors: Vectors, most: int, k: int) -> Neighbours:
    """Search one by one and return as many neighbours as each query reaches; fewer than k if copies of a vector crowd the
    graph.
    """
    scores, rows = no_neighbours(len(vectors), k)
    for number, vector in enumerate(vectors):
        low, high = 0, most  # largest number known to be reached, and smallest number known to fail
        while low < high:
            middle = (low + high + 1) // 2
            try:
                neighbours, distances = index.knn_query(vector[None], middle, num_threads=1)
            except RuntimeError:
                high = middle - 1
                continue
            low = middle
            rows[number, :low], scores[number, :low] = neighbours[0], 1.0 - distances[0]
    return scores, rows


VECTOR_INDEXES.register(
    "hnswlib",
    form=SETTINGS,
    search_form=KNOBS,
    memory_factors=(1.2, 1.0),
    packages=("hnswlib", "numpy"),
)(EnteredOnce(HnswlibIndex))
