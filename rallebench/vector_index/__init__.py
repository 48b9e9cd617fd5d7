"""Vectors → neighbours. A vector index is a module with ``build`` and ``load``, one file each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rallebench.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class VectorIndex(Protocol):
    """``exact``: whether a smaller k is always a prefix of a larger one."""

    exact: bool

    def search(self, vectors: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Inner-product search: (q, dim) → scores (q, k) best first, rows (q, k), −1 = none."""
        ...


class VectorIndexKind(Protocol):
    """How an index file is made and opened."""

    def build(self, folder: Path, vectors: Any, **parameters: Any) -> dict[str, Any]:
        """Write the index of float32 (n, dim) into ``folder``; return its parameters."""
        ...

    def load(self, folder: Path) -> VectorIndex:
        """Open the index in ``folder``."""
        ...


VECTOR_INDEXES: Registry[Callable[[], VectorIndexKind]] = Registry("vector index", "rallebench.vector_index")
