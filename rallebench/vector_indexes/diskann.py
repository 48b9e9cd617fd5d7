"""A graph on disk with DiskANN: memory holds compressed vectors alone, a query reads a few sectors."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.core.settings import Setting
from rallebench.vector_indexes import VECTOR_INDEXES, Progress, VectorIndex
from rallebench.vector_indexes._diskann import (
    COMPLEXITY,
    FORESEEN,
    SMALL,
    DiskAnn,
    build,
    package,
    quiet,
    read_about,
)
from rallebench.vector_indexes._diskann_files import DiskRows, Imported, opening, read_disk_files
from rallebench.vector_indexes._faiss import THREADS, cores
from rallebench.vector_indexes._vectors import VECTORS, damaged
from rallebench.vector_indexes.numpy_flat import NumpyFlatKind

if TYPE_CHECKING:
    from rallebench.vector_indexes import Neighbours, Vectors

BEAM = 4
GRAPH_DEGREE, BUILD_COMPLEXITY, PQ_BYTES = 64, 100, 96
GIB = 2**30

SETTINGS = {
    "graph_degree": Setting(int, GRAPH_DEGREE, 4, 512, about="neighbours of a vector in the graph"),
    "build_complexity": Setting(
        int, BUILD_COMPLEXITY, 4, 10_000, about="candidates while building"
    ),
    "pq_bytes": Setting(int, PQ_BYTES, 1, 4096, about="bytes of a compressed vector in memory"),
    "threads": THREADS,
}
KNOBS = {
    "complexity": Setting(
        int,
        COMPLEXITY,
        1,
        100_000,
        about="candidates while searching, at least k",
        sweep=(25, 50, 100, 200),
    ),
    "beam_width": Setting(int, BEAM, 1, 64, about="sectors read at once"),
}


class Small:
    """Too few vectors for a graph: compared one by one, knobs change nothing."""

    exact = True

    def __init__(self, index: VectorIndex) -> None:
        self._index = index

    def search(self, vectors: Vectors, k: int, **knobs: int) -> Neighbours:
        """Scores (q, k) best first and rows (q, k), −1 = none."""
        return self._index.search(vectors, k)

    def close(self) -> None:
        """Drop the vectors."""
        self._index.close()


class DiskAnnKind:
    """DiskANN's own files, or ``vectors.npy`` where there are fewer than 1,000."""

    def build(
        self,
        folder: Path,
        vectors: Any,
        *,
        graph_degree: int = GRAPH_DEGREE,
        build_complexity: int = BUILD_COMPLEXITY,
        pq_bytes: int = PQ_BYTES,
        threads: int = 0,
    ) -> Generator[Progress, None, dict[str, Any]]:
        """Build in a process of its own; it may use most of the memory that is free."""
        import psutil

        package()
        used = {
            "graph_degree": graph_degree,
            "build_complexity": build_complexity,
            "pq_bytes": pq_bytes,
            "threads": threads,
        }
        if len(vectors) < SMALL:
            yield from NumpyFlatKind().build(folder, vectors)
            return used
        compressed = min(pq_bytes, int(vectors.shape[1]))
        order = {
            "kind": "disk",
            "graph_degree": graph_degree,
            "complexity": max(build_complexity, graph_degree),
            "threads": threads,
            # The library gives each vector this budget's share, whole bytes of it.
            "search_memory_maximum": (compressed + 0.5) * len(vectors) / GIB,
            "build_memory_maximum": max(0.5, 0.7 * psutil.virtual_memory().available / GIB),
        }
        yield from build(folder, vectors, order)
        return used

    def load(self, folder: Path) -> VectorIndex:
        """Open the index; nothing but compressed vectors is read."""
        index: VectorIndex = load(folder, "disk")
        return index


def load(folder: Path, kind: str) -> Any:
    """Open a folder of one of the two kinds."""
    if (folder / VECTORS).exists():
        return Small(NumpyFlatKind().load(folder))
    library, about = package(), read_about(folder)
    at_once = cores(0)
    where: dict[str, Any] = {"index_directory": str(folder), "index_prefix": about["prefix"]}
    imported = read_disk_files(folder, about["prefix"]) if about["kind"] == "imported" else None
    if imported:
        where |= opening(imported)
    try:
        with quiet():
            if kind == "disk":
                # One thread alone waits for itself while it loads.
                graph = library.StaticDiskIndex(
                    **where, num_threads=at_once + 1, num_nodes_to_cache=0, cache_mechanism=0
                )
            else:
                graph = library.StaticMemoryIndex(
                    **where, num_threads=at_once + 1, initial_search_complexity=FORESEEN
                )
    except (RuntimeError, ValueError, OSError, MemoryError) as error:
        raise damaged(folder, error) from None
    index = DiskAnn(graph, about, at_once, {"beam_width": BEAM} if kind == "disk" else {})
    return Imported(index, DiskRows(imported)) if imported else index


@VECTOR_INDEXES.register(
    "diskann",
    form=SETTINGS,
    search_form=KNOBS,
    memory_factors=(1.2, 1.2),
    memory_file="ann_pq_compressed.bin",
    fixed_files=("ann_pq_pivots.bin",),
    packages=("diskannpy", "numpy"),
)
def diskann() -> DiskAnnKind:
    """DiskANN on disk: a few per cent of flat's memory, slower; Linux on x86-64."""
    return DiskAnnKind()
