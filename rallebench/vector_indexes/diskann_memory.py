"""DiskANN's graph ("Vamana") in memory."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from rallebench.vector_indexes import VECTOR_INDEXES, Progress, VectorIndex
from rallebench.vector_indexes import diskann as on_disk
from rallebench.vector_indexes._diskann import SMALL, build, package
from rallebench.vector_indexes.numpy_flat import NumpyFlatKind

SETTINGS = {
    name: on_disk.SETTINGS[name] for name in ("graph_degree", "build_complexity", "threads")
}
KNOBS = {"complexity": on_disk.KNOBS["complexity"]}


class DiskAnnMemoryKind:
    """Graph and vectors, or ``vectors.npy`` where there are fewer than 1,000."""

    def build(
        self,
        folder: Path,
        vectors: Any,
        *,
        graph_degree: int = on_disk.GRAPH_DEGREE,
        build_complexity: int = on_disk.BUILD_COMPLEXITY,
        threads: int = 0,
    ) -> Generator[Progress, None, dict[str, Any]]:
        """Build in a process of its own."""
        package()
        used = {
            "graph_degree": graph_degree,
            "build_complexity": build_complexity,
            "threads": threads,
        }
        if len(vectors) < SMALL:
            yield from NumpyFlatKind().build(folder, vectors)
            return used
        order = {
            "kind": "memory",
            "graph_degree": graph_degree,
            "complexity": max(build_complexity, graph_degree),
            "threads": threads,
        }
        yield from build(folder, vectors, order)
        return used

    def load(self, folder: Path) -> VectorIndex:
        """Open the graph with its vectors."""
        index: VectorIndex = on_disk.load(folder, "memory")
        return index


@VECTOR_INDEXES.register(
    "diskann-memory",
    form=SETTINGS,
    search_form=KNOBS,
    memory_factors=(1.5, 1.0),
    packages=("diskannpy", "numpy"),
)
def diskann_memory() -> DiskAnnMemoryKind:
    """DiskANN's graph in memory; Linux on x86-64."""
    return DiskAnnMemoryKind()
