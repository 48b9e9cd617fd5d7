"""Exact inner-product search with Faiss (Douze et al. 2024, arXiv:2401.08281)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rallebench.vector_indexes import VECTOR_INDEXES, Build, Neighbours, Vectors
from rallebench.vector_indexes.faiss_index import PACKAGES, FaissIndex, faiss, write
from rallebench.vector_indexes.stored_vectors import add_in_pieces, no_neighbours, rank

TIES = 16
AT_ONCE = 32
"""Queries per batch of rescoring: a few MB of vectors."""
PIECE = 4096
"""Neighbours of a query that are rescored together."""
EPSILON = 1e-5
"""Relative difference up to which two float32 scores may be equal in exact arithmetic."""


@VECTOR_INDEXES.register(
    "flat", form={}, search_form={}, memory_factors=(2.0, 1.0), packages=PACKAGES
)
class FaissFlat(FaissIndex):
    """Faiss flat: exact inner product; all vectors in memory."""

    exact, file = True, "flat.faiss"

    @classmethod
    def build(cls, folder: Path, vectors: Any) -> Build:
        """Write ``flat.faiss``."""
        index = faiss().IndexFlatIP(int(vectors.shape[1]))
        yield from add_in_pieces(vectors, lambda _, piece: index.add(piece))
        write(index, folder / cls.file)
        return {}

    def search(self, vectors: Vectors, k: int) -> Neighbours:
        """Return scores (q, k) best first and rows (q, k), −1 = none; ties go to the smaller row.

        Faiss cuts ties arbitrarily and sums differently in batches, so a few more neighbours are
        fetched and rescored in double precision, where equal vectors have equal scores. A query
        with more ties than that is searched by its k-th score.
        """
        total = self._index.ntotal
        rough, near = self._index.search(vectors, min(k + TIES, total))
        most = min(k, total)
        scores, rows = no_neighbours(len(vectors), k)
        for start in range(0, len(vectors), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            scores[some], rows[some] = self._rank(vectors[some], near[some], k)
        if near.shape[1] < total and most:
            close = EPSILON * np.maximum(np.abs(rough[:, most - 1]), 0.1)
            for query in np.flatnonzero(rough[:, most - 1] - rough[:, -1] <= close):
                vector, bound = vectors[query][None], float(rough[query, -1] - close[query])
                # all vectors that score above the bound
                tied = self._index.range_search(vector, bound)[2]
                (scores[query],), (rows[query],) = self._rank(vector, tied[None], k)
        return scores, rows

    def _rank(self, vectors: Vectors, rows: np.ndarray[Any, Any], k: int) -> Neighbours:
        """Return the best k of (q, c) rows by inner products in double precision; −1 scores −inf."""
        rows = np.sort(rows, axis=1)
        parts = []
        for start in range(0, rows.shape[1], PIECE):
            near = rows[:, start : start + PIECE]
            known = self._index.reconstruct_batch(np.maximum(near, 0).ravel())
            known = known.reshape(*near.shape, -1)
            products: Vectors = np.einsum("qcd,qd->qc", known, vectors, dtype=np.float64)
            products = products.astype(np.float32)
            products[near < 0] = -np.inf
            parts.append(products)
        return rank(np.concatenate(parts, axis=1), rows, k)
