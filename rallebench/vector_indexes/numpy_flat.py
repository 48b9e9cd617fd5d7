"""Exact inner-product search in plain numpy: the reference for testing other kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.arrays import load_array
from rallebench.core.errors import BadFileError
from rallebench.vector_indexes import VECTOR_INDEXES, Build, Neighbours, Vectors
from rallebench.vector_indexes.stored_vectors import (
    VECTORS,
    damaged_file,
    keep,
    no_neighbours,
    pieces,
    rank,
)

QUERIES = 64
"""Queries per batch, since their products with all vectors are held in memory."""


@VECTOR_INDEXES.register(
    "numpy-flat",
    form={},
    search_form={},
    memory_factors=(0.0, 3.0),
    vector_bytes=0,
    packages=("numpy",),
)
class NumpyFlat:
    """Exact inner product in numpy: the reference."""

    exact = True

    @staticmethod
    def build(folder: Path, vectors: Any) -> Build:
        """Write ``vectors.npy``, or hard-link the file that the vectors are mapped from."""
        for start, _ in pieces(vectors):
            yield start, len(vectors)
        keep(folder, vectors)
        yield len(vectors), len(vectors)
        return {}

    @classmethod
    def load(cls, folder: Path) -> Any:
        try:
            return cls(load_array(folder / VECTORS, np.float32, 2))
        except BadFileError as error:
            raise damaged_file(folder / VECTORS, error) from None

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def search(self, vectors: Vectors, k: int, **_: Any) -> Neighbours:
        """Return scores (q, k) best first and rows (q, k), −1 = none; ties go to the smaller row. Knobs have no effect."""
        scores, rows = no_neighbours(len(vectors), k)
        all_rows = np.arange(len(self._vectors))
        for start in range(0, len(vectors), QUERIES):
            some = slice(start, start + QUERIES)
            products = self._products(vectors[some])
            scores[some], rows[some] = rank(products, np.broadcast_to(all_rows, products.shape), k)
        return scores, rows

    def _products(self, vectors: Vectors) -> Vectors:
        """Return float32 (q, n), summed in double precision."""
        products = np.empty((len(vectors), len(self._vectors)), dtype=np.float32)
        for start, piece in pieces(self._vectors):
            products[:, start : start + len(piece)] = vectors.astype(np.float64) @ piece.T.astype(
                np.float64
            )
        return products

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
