"""Exact inner-product search in plain numpy: the reference that other kinds are tested against."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.vector_index import VECTOR_INDEXES, VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FILE = "vectors.npy"


class NumpyFlat:
    """Exact search over float32 (n, dim)."""

    exact = True

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._vectors = vectors

    def search(self, vectors: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores (q, k) best first and rows (q, k), −1 = none; ties go to the smaller row."""
        import numpy as np

        products = (vectors.astype(np.float64) @ self._vectors.T.astype(np.float64)).astype(np.float32)
        found = min(k, products.shape[1])
        rows = np.full((len(vectors), k), -1, dtype=np.int64)
        scores = np.full((len(vectors), k), -np.inf, dtype=np.float32)
        rows[:, :found] = np.argsort(-products, axis=1, kind="stable")[:, :found]
        scores[:, :found] = np.take_along_axis(products, rows[:, :found], axis=1)
        return scores, rows


class NumpyFlatKind:
    """A plain array."""

    def build(self, folder: Path, vectors: Any, **parameters: Any) -> dict[str, Any]:
        """Write ``vectors.npy``."""
        import numpy as np

        np.save(folder / FILE, vectors)
        return {}

    def load(self, folder: Path) -> VectorIndex:
        """Open ``vectors.npy`` memory-mapped."""
        import numpy as np

        return NumpyFlat(np.load(folder / FILE, mmap_mode="r"))


@VECTOR_INDEXES.register("numpy-flat")
def numpy_flat() -> NumpyFlatKind:
    """Exact inner product in numpy: the reference."""
    return NumpyFlatKind()
