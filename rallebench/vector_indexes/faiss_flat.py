"""Exact inner-product search with Faiss (Douze et al. 2024, arXiv:2401.08281)."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.vector_indexes import VECTOR_INDEXES, Progress, VectorIndex
from rallebench.vector_indexes._faiss import PACKAGES, faiss, read, write
from rallebench.vector_indexes._vectors import fed

if TYPE_CHECKING:
    import numpy as np

    from rallebench.vector_indexes import Neighbours, Vectors

FILE = "flat.faiss"
TIES = 16
AT_ONCE = 32
"""Queries whose neighbours are scored again together: a few MB of vectors."""
EPSILON = 1e-5
"""Scores of float32 sums that are this close, relative to the larger, may be one score in truth."""


class FaissFlat:
    """Exact search; k may exceed the number of vectors."""

    exact = True

    def __init__(self, index: Any) -> None:
        self._index = index

    def search(self, vectors: Vectors, k: int) -> Neighbours:
        """Scores (q, k) best first and rows (q, k), −1 = none; ties go to the smaller row.

        Faiss cuts ties as its heap leaves them and sums differently in batches, so a few more
        neighbours are fetched and scored again in double precision, where equal vectors score
        the same. A query with more ties than those is searched by its k-th score.
        """
        import numpy as np

        total = self._index.ntotal
        rough, near = self._index.search(vectors, min(k + TIES, total))
        most = min(k, total)
        scores = np.full((len(vectors), k), -np.inf, dtype=np.float32)
        rows = np.full((len(vectors), k), -1, dtype=np.int64)
        for start in range(0, len(vectors), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            candidates = np.sort(near[some], axis=1)
            exact = self._scored(vectors[some], candidates)
            order = np.argsort(-exact, axis=1, kind="stable")[:, :most]
            scores[some, :most] = np.take_along_axis(exact, order, axis=1)
            rows[some, :most] = np.take_along_axis(candidates, order, axis=1)
        if near.shape[1] < total and most:
            close = EPSILON * np.maximum(np.abs(rough[:, most - 1]), 0.1)
            for query in np.flatnonzero(rough[:, most - 1] - rough[:, -1] <= close):
                self._with_all_ties(
                    vectors[query], rough[query, -1] - close[query], scores[query], rows[query]
                )
        return scores, rows

    def _scored(self, vectors: Vectors, rows: np.ndarray[Any, Any]) -> Vectors:
        """Inner products (q, c) in double precision; −1 scores −inf."""
        import numpy as np

        known = self._index.reconstruct_batch(np.maximum(rows, 0).ravel()).reshape(*rows.shape, -1)
        products: Vectors = np.einsum("qcd,qd->qc", known, vectors, dtype=np.float64).astype(
            np.float32
        )
        products[rows < 0] = -np.inf
        return products

    def _with_all_ties(self, vector: Vectors, bound: float, scores: Vectors, rows: Any) -> None:
        """Fill one query's answer from all vectors that score more than ``bound``."""
        import numpy as np

        _, _, near = self._index.range_search(vector[None], float(bound))
        near = np.sort(near)
        parts = [
            self._scored(vector[None], near[None, i : i + 4096])[0]
            for i in range(0, len(near), 4096)
        ]
        close = np.concatenate(parts)
        most = min(len(rows), self._index.ntotal)
        order = np.argsort(-close, kind="stable")[:most]
        scores[:most], rows[:most] = close[order], near[order]

    def close(self) -> None:
        """Drop the vectors."""
        self._index = None


class FaissFlatKind:
    """All vectors in one file, compared one by one."""

    def build(self, folder: Path, vectors: Any) -> Generator[Progress, None, dict[str, Any]]:
        """Write ``flat.faiss``."""
        index = faiss().IndexFlatIP(int(vectors.shape[1]))
        yield from fed(vectors, lambda _, piece: index.add(piece))
        write(index, folder / FILE)
        return {}

    def load(self, folder: Path) -> VectorIndex:
        """Open ``flat.faiss``."""
        return FaissFlat(read(folder / FILE))


@VECTOR_INDEXES.register(
    "flat", form={}, search_form={}, memory_factors=(2.0, 1.0), packages=PACKAGES
)
def flat() -> FaissFlatKind:
    """Faiss flat: exact inner product; all vectors in memory."""
    return FaissFlatKind()
