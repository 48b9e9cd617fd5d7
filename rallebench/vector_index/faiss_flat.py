"""Exact inner-product search with Faiss (Douze et al. 2024, arXiv:2401.08281)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.errors import MissingPackageError
from rallebench.vector_index import VECTOR_INDEXES, VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FILE = "flat.faiss"
TIES = 16


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingPackageError("faiss-cpu", "and this index needs it") from None
    return faiss


class FaissFlat:
    """Exact search; k may exceed the number of vectors."""

    exact = True

    def __init__(self, index: Any) -> None:
        self._index = index

    def search(self, vectors: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores (q, k) best first and rows (q, k), −1 = none; ties go to the smaller row.

        Faiss cuts ties as its heap leaves them and sums differently in batches, so a few more
        neighbours are fetched and scored again, query by query, in double precision.
        """
        import numpy as np

        _, found = self._index.search(vectors, min(k + TIES, self._index.ntotal))
        scores = np.full((len(vectors), k), -np.inf, dtype=np.float32)
        rows = np.full((len(vectors), k), -1, dtype=np.int64)
        for query, candidates in enumerate(found):
            candidates = np.sort(candidates[candidates >= 0])
            exact = (self._index.reconstruct_batch(candidates).astype(np.float64) * vectors[query]).sum(
                axis=1
            )
            best = np.argsort(-exact, kind="stable")[:k]
            scores[query, : len(best)] = exact[best]
            rows[query, : len(best)] = candidates[best]
        return scores, rows


class FaissFlatKind:
    """All vectors in one file, compared one by one."""

    def build(self, folder: Path, vectors: Any, **parameters: Any) -> dict[str, Any]:
        """Write ``flat.faiss``."""
        faiss = _faiss()
        index = faiss.IndexFlatIP(int(vectors.shape[1]))
        index.add(vectors)
        faiss.write_index(index, str(folder / FILE))
        return {}

    def load(self, folder: Path) -> VectorIndex:
        """Open ``flat.faiss``."""
        faiss = _faiss()
        return FaissFlat(faiss.read_index(str(folder / FILE)))


@VECTOR_INDEXES.register("flat")
def flat() -> FaissFlatKind:
    """Faiss flat: exact inner product."""
    return FaissFlatKind()
