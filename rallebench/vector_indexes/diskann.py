"""DiskANN's graph ("Vamana"): on disk, with only compressed vectors in memory and a few sectors read per query, or in memory.
Fewer than 1,000 vectors are stored as ``vectors.npy`` instead, because a graph would save nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rallebench.core.settings import Setting
from rallebench.vector_indexes import VECTOR_INDEXES, Build, complete_settings
from rallebench.vector_indexes.copies import EnteredOnce
from rallebench.vector_indexes.diskann_files import DiskRows, Imported, opening, read_disk_files
from rallebench.vector_indexes.diskann_library import (
    COMPLEXITY,
    FORESEEN,
    DiskAnn,
    build,
    package,
    quiet,
    read_about,
)
from rallebench.vector_indexes.faiss_index import THREADS, cores
from rallebench.vector_indexes.numpy_flat import NumpyFlat
from rallebench.vector_indexes.stored_vectors import VECTORS, damaged_file

SMALL = 1000
BEAM, GIB = 4, 2**30
SWEPT = (25, 50, 100, 200)
PACKAGES = ("diskannpy", "numpy")

SETTINGS = {
    "graph_degree": Setting(int, 64, 4, 512, about="neighbours per vector in the graph"),
    "build_complexity": Setting(int, 100, 4, 10_000, about="candidates while building"),
    "pq_bytes": Setting(int, 96, 1, 4096, about="bytes per compressed vector in memory"),
    "threads": THREADS,
}
MEMORY_SETTINGS = {name: SETTINGS[name] for name in SETTINGS if name != "pq_bytes"}
MEMORY_KNOBS = {
    "complexity": Setting(
        int, COMPLEXITY, 1, 100_000, about="candidates while searching, at least k", sweep=SWEPT
    )
}
KNOBS = {**MEMORY_KNOBS, "beam_width": Setting(int, BEAM, 1, 64, about="sectors read at once")}


class DiskAnnInMemory:
    """DiskANN's graph in memory; Linux on x86-64."""

    form, where = MEMORY_SETTINGS, "memory"

    @classmethod
    def build(cls, folder: Path, vectors: Any, **settings: Any) -> Build:
        """Build in a separate process."""
        package()
        used = complete_settings(cls.form, settings)
        if len(vectors) < SMALL:
            yield from NumpyFlat.build(folder, vectors)
            return used
        order = {
            "kind": cls.where,
            "graph_degree": used["graph_degree"],
            "complexity": max(used["build_complexity"], used["graph_degree"]),
            "threads": used["threads"],
            **(_budgets(used, vectors) if cls.where == "disk" else {}),
        }
        yield from build(folder, vectors, order)
        return used

    @classmethod
    def load(cls, folder: Path) -> NumpyFlat | DiskAnn | Imported:
        """Open the graph; for an index on disk, only compressed vectors are loaded."""
        if (folder / VECTORS).exists():
            index: NumpyFlat = NumpyFlat.load(folder)
            return index
        library, about = package(), read_about(folder)
        at_once, prefix = cores(0), about["prefix"]
        imported = read_disk_files(folder, prefix) if about["kind"] == "imported" else None
        # With a single thread it deadlocks while it loads.
        options: dict[str, Any] = {"num_threads": at_once + 1}
        options |= {"index_directory": str(folder), "index_prefix": prefix}
        options |= opening(imported) if imported else {}
        try:
            with quiet():
                if cls.where == "disk":
                    graph = library.StaticDiskIndex(
                        **options, num_nodes_to_cache=0, cache_mechanism=0
                    )
                else:
                    graph = library.StaticMemoryIndex(**options, initial_search_complexity=FORESEEN)
        except (RuntimeError, ValueError, OSError, MemoryError) as error:
            raise damaged_file(folder, error) from None
        own = DiskAnn(graph, about, at_once, {"beam_width": BEAM} if cls.where == "disk" else {})
        return Imported(own, DiskRows(imported)) if imported else own


class DiskAnnOnDisk(DiskAnnInMemory):
    """DiskANN on disk: a few per cent of flat's memory, slower; Linux on x86-64."""

    form, where = SETTINGS, "disk"


def _budgets(used: dict[str, Any], vectors: Any) -> dict[str, float]:
    """Return the budgets in GiB: a build may use most of the free memory."""
    import psutil

    compressed = min(used["pq_bytes"], int(vectors.shape[1]))
    return {
        # The library gives each vector its share of this budget, in whole bytes.
        "search_memory_maximum": (compressed + 0.5) * len(vectors) / GIB,
        "build_memory_maximum": max(0.5, 0.7 * psutil.virtual_memory().available / GIB),
    }


VECTOR_INDEXES.register(
    "diskann-memory",
    form=MEMORY_SETTINGS,
    search_form=MEMORY_KNOBS,
    memory_factors=(1.5, 1.0),
    packages=PACKAGES,
)(EnteredOnce(DiskAnnInMemory))


VECTOR_INDEXES.register(
    "diskann",
    form=SETTINGS,
    search_form=KNOBS,
    memory_factors=(1.2, 1.2),
    memory_file="ann_pq_compressed.bin",
    fixed_files=("ann_pq_pivots.bin",),
    packages=PACKAGES,
)(EnteredOnce(DiskAnnOnDisk))
