"""Any index of Faiss (Douze et al. 2024, arXiv:2401.08281): another program's file, or one built by a factory string."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.arrays import load_array
from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.settings import Setting
from rallebench.vector_indexes import VECTOR_INDEXES, Build, Neighbours, Vectors, complete_settings
from rallebench.vector_indexes.copies import EnteredOnce
from rallebench.vector_indexes.faiss_files import DISTANCE, Labels
from rallebench.vector_indexes.faiss_index import (
    PACKAGES,
    THREADS,
    FaissIndex,
    adding,
    faiss,
    read,
    write,
)
from rallebench.vector_indexes.faiss_index import threads as threads_of
from rallebench.vector_indexes.stored_vectors import (
    add_in_pieces,
    damaged_file,
    none_found,
    pieces,
    sample,
)

LABELS = "labels.npy"
"""int64 (2, n): the labels that a search returns, ascending, and their rows; exists only if they differ."""
TRAINED_ON, SEED = 100_000, 1234
SWEPT = (2, 8, 32, 128)

SETTINGS = {
    "factory": Setting(
        str, "Flat", about="Faiss's factory string, as in OPQ16_64,IVF1024,PQ16 or HNSW32"
    ),
    "threads": THREADS,
}
KNOBS = {
    "nprobe": Setting(
        int, 0, 0, 10_000_000, about="lists searched per query; 0 = as the file says", sweep=SWEPT
    ),
    "ef_search": Setting(
        int,
        0,
        0,
        100_000,
        about="candidates in a graph, at least k; 0 = as the file says",
        sweep=(16, 64, 256),
    ),
}


def parts(index: Any) -> list[Any]:
    """Return an index and those inside it, outermost first."""
    nested = []
    while index is not None:
        nested.append(faiss().downcast_index(index))
        index = getattr(nested[-1], "index", None) or getattr(nested[-1], "base_index", None)
    return nested


def scores_of_distances(distances: Vectors) -> Vectors:
    """Turn squared distances into scores, higher is better: for vectors of length 1 their inner product.

    >>> import numpy as np
    >>> scores_of_distances(np.array([[0.0, 2.0]], dtype=np.float32)).tolist()
    [[1.0, 0.0]]
    """
    scores: Vectors = 1 - distances / 2
    return scores


class FaissFactory(FaissIndex):
    """Faiss index of any type, imported or built by a factory string; as fast, small and exact as its type."""

    exact, file = False, "faiss.index"

    @classmethod
    def build(cls, folder: Path, vectors: Any, **settings: Any) -> Build:
        """Write ``faiss.index``, by inner product, trained on a sample with a fixed seed."""
        package, used = faiss(), complete_settings(SETTINGS, settings)
        count, dim = vectors.shape
        try:
            index = package.index_factory(int(dim), used["factory"], package.METRIC_INNER_PRODUCT)
        except RuntimeError:
            raise UsageError(
                f"Faiss has no index {used['factory'][:60]!r} for inner products of {dim} dimensions; see its factory strings."
            ) from None
        yield 0, count
        if not index.is_trained:
            learnt_from = sample(vectors, TRAINED_ON, SEED)
            for _ in pieces(learnt_from):  # raises for values that are not numbers
                pass
            try:
                with threads_of(used["threads"]):
                    index.train(learnt_from)
            except RuntimeError as error:
                why = " ".join(str(error).split())[-120:]
                raise UsageError(
                    f"Faiss could not train {used['factory'][:60]!r} on {len(learnt_from):,} vectors ({why}); choose smaller "
                    "numbers in the factory string, or another kind."
                ) from None
        yield from add_in_pieces(vectors, adding(index, used["threads"]))
        write(index, folder / cls.file)
        return used

    @classmethod
    def load(cls, folder: Path) -> FaissFactory:
        index = read(folder / cls.file)
        labels: Labels | None = None
        if (folder / LABELS).exists():
            try:
                labels = np.array(load_array(folder / LABELS, np.int64, 2))
            except BadFileError as error:
                raise damaged_file(folder / LABELS, error) from None
        return cls(index, labels)

    def __init__(self, index: Any, labels: Labels | None = None) -> None:
        super().__init__(index)
        self._labels = labels
        inside = parts(index)
        self._lists = [(part, part.nprobe) for part in inside if hasattr(part, "nprobe")]
        self._graphs = [(p.hnsw, p.hnsw.efSearch) for p in inside if hasattr(p, "hnsw")]
        self._turn = threading.Lock()

    def search(
        self, vectors: Vectors, k: int, *, nprobe: int = 0, ef_search: int = 0
    ) -> Neighbours:
        """Return scores (q, k) best first and rows (q, k), −1 = none. Distances are turned into scores."""
        most = min(k, self._index.ntotal)
        with self._turn:  # Faiss reads the search settings from the index
            for part, own in self._lists:
                part.nprobe = nprobe or own
            for graph, own in self._graphs:
                graph.efSearch = max(ef_search or own, most)
            scores, rows = self._index.search(np.ascontiguousarray(vectors), most)
        if self._index.metric_type == DISTANCE:
            scores = scores_of_distances(scores)
        return none_found(scores, self._rows(rows), k)

    def _rows(self, labels: Labels) -> Labels:
        """Return the rows of labels; −1 for those that a search leaves empty."""
        if self._labels is None:
            return labels
        known, rows = self._labels
        places = np.minimum(np.searchsorted(known, labels), len(known) - 1)
        own: Labels = np.where(known[places] == labels, rows[places], -1)
        return own


VECTOR_INDEXES.register(
    "faiss", form=SETTINGS, search_form=KNOBS, memory_factors=(2.0, 1.0), packages=PACKAGES
)(EnteredOnce(FaissFactory))
