"""A navigable small-world graph with Faiss (Malkov and Yashunin 2018, arXiv:1603.09320), by inner product."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.core.settings import Setting
from rallebench.vector_indexes import VECTOR_INDEXES, Progress, VectorIndex
from rallebench.vector_indexes._faiss import PACKAGES, THREADS, faiss, read, threads, write
from rallebench.vector_indexes._vectors import fed, none_found

if TYPE_CHECKING:
    from rallebench.vector_indexes import Neighbours, Vectors

FILE = "hnsw.faiss"
M, EF_CONSTRUCTION, EF_SEARCH = 32, 128, 32
PIECE = 2000

SETTINGS = {
    "m": Setting(int, M, 2, 512, about="neighbours of a vector in the graph"),
    "ef_construction": Setting(int, EF_CONSTRUCTION, 1, 10_000, about="candidates while building"),
    "threads": THREADS,
}
KNOBS = {
    "ef_search": Setting(
        int,
        EF_SEARCH,
        1,
        100_000,
        about="candidates while searching, at least k",
        sweep=(16, 32, 64, 128, 256),
    )
}


class FaissHNSW:
    """Graph search; the vectors are in memory as they are."""

    exact = False

    def __init__(self, index: Any) -> None:
        self._index = index
        self._parameters = faiss().SearchParametersHNSW

    def search(self, vectors: Vectors, k: int, *, ef_search: int = EF_SEARCH) -> Neighbours:
        """Scores (q, k) best first and rows (q, k), −1 = none."""
        most = min(k, self._index.ntotal)
        parameters = self._parameters(efSearch=max(ef_search, most))
        scores, rows = self._index.search(vectors, most, params=parameters)
        return none_found(scores, rows, k)

    def close(self) -> None:
        """Drop the graph."""
        self._index = None


class FaissHNSWKind:
    """One file with graph and vectors."""

    def build(
        self,
        folder: Path,
        vectors: Any,
        *,
        m: int = M,
        ef_construction: int = EF_CONSTRUCTION,
        threads: int = 0,
    ) -> Generator[Progress, None, dict[str, Any]]:
        """Write ``hnsw.faiss``. Levels are drawn by Faiss's fixed seed: one thread makes the same graph again."""
        package = faiss()
        index = package.IndexHNSWFlat(int(vectors.shape[1]), m, package.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = ef_construction
        yield from fed(vectors, lambda _, piece: _add(index, piece, threads), PIECE)
        write(index, folder / FILE)
        return {"m": m, "ef_construction": ef_construction, "threads": threads}

    def load(self, folder: Path) -> VectorIndex:
        """Open ``hnsw.faiss``."""
        return FaissHNSW(read(folder / FILE))


def _add(index: Any, piece: Vectors, count: int) -> None:
    """Add a piece with ``count`` threads."""
    with threads(count):
        index.add(piece)


@VECTOR_INDEXES.register(
    "hnsw", form=SETTINGS, search_form=KNOBS, memory_factors=(1.5, 1.0), packages=PACKAGES
)
def hnsw() -> FaissHNSWKind:
    """Faiss HNSW graph: fast, a little short of exact; vectors and graph in memory."""
    return FaissHNSWKind()
