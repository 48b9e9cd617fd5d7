"""The best rows of BM25's scores: those of a full sort, ties in corpus order."""

from __future__ import annotations

import numpy as np
import pytest

from rallebench.retrievers.bm25 import best_rows


@pytest.mark.parametrize("size", [1, 2, 7, 300, 5000])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 1.0])
@pytest.mark.parametrize("different", [1, 3, 10_000])
def test_the_best_rows_are_those_of_a_full_sort(size: int, share: float, different: int) -> None:
    drawn = np.random.default_rng(size)
    scores = (drawn.integers(1, different + 1, size) * (drawn.random(size) < share)).astype(
        np.float32
    )
    for k in {1, 2, 5, 100, size} & set(range(1, size + 1)):
        assert best_rows(scores, k).tolist() == np.argsort(-scores, kind="stable")[:k].tolist()
