"""A navigable small-world graph with Faiss (Malkov and Yashunin 2018, arXiv:1603.09320), by inner product."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rallebench.core.settings import Setting
from rallebench.vector_indexes import VECTOR_INDEXES, Build, Neighbours, Vectors, complete_settings
from rallebench.vector_indexes.copies import EnteredOnce
from rallebench.vector_indexes.faiss_index import (
    PACKAGES,
    THREADS,
    FaissIndex,
    adding,
    faiss,
    write,
)
from rallebench.vector_indexes.stored_vectors import add_in_pieces, none_found

EF_SEARCH = 32
PIECE = 2000
SWEPT = (16, 32, 64, 128, 256)

SETTINGS = {
    "m": Setting(int, 32, 2, 512, about="neighbours per vector in the graph"),
    "ef_construction": Setting(int, 128, 1, 10_000, about="candidates while building"),
    "threads": THREADS,
}
KNOBS = {
    "ef_search": Setting(
        int, EF_SEARCH, 1, 100_000, about="candidates while searching, at least k", sweep=SWEPT
    )
}


class FaissHNSW(FaissIndex):
    """Faiss HNSW graph: fast, almost exact; vectors and graph in memory."""

    exact, file = False, "hnsw.faiss"

    @classmethod
    def build(cls, folder: Path, vectors: Any, **settings: Any) -> Build:
        """Write ``hnsw.faiss``. Faiss draws levels with a fixed seed: with one thread, the graph is reproducible."""
        package, used = faiss(), complete_settings(SETTINGS, settings)
        index = package.IndexHNSWFlat(
            int(vectors.shape[1]), used["m"], package.METRIC_INNER_PRODUCT
        )
        index.hnsw.efConstruction = used["ef_construction"]
        yield from add_in_pieces(vectors, adding(index, used["threads"]), PIECE)
        write(index, folder / cls.file)
        return used

    def search(self, vectors: Vectors, k: int, *, ef_search: int = EF_SEARCH) -> Neighbours:
        """Return scores (q, k) best first and rows (q, k), −1 = none."""
        most = min(k, self._index.ntotal)
        parameters = faiss().SearchParametersHNSW(efSearch=max(ef_search, most))
        scores, rows = self._index.search(vectors, most, params=parameters)
        return none_found(scores, rows, k)


VECTOR_INDEXES.register(
    "hnsw", form=SETTINGS, search_form=KNOBS, memory_factors=(1.5, 1.0), packages=PACKAGES
)(EnteredOnce(FaissHNSW))
