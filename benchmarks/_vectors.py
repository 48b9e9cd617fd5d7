"""The vectors of ``vector_search.py``: drawn around centres, with the true neighbours of its queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import _report

DIM, K = 384, 10
BLOCK = 50_000


def vectors(path: Path, count: int, query_count: int, hard: bool) -> tuple[Any, Any]:
    """(count, 384) memory-mapped from ``path`` and (query_count, 384) queries."""
    import numpy as np

    drawn = np.random.default_rng(_report.SEED)
    clusters, spread = (count // 250, 2.5) if hard else (count // 100, 0.6)
    centres = drawn.normal(size=(max(1, clusters), DIM)).astype(np.float32)
    open_memmap: Callable[..., Any] = np.lib.format.open_memmap
    out = open_memmap(path, "w+", np.float32, (count + query_count, DIM))
    for start in range(0, count + query_count, BLOCK):
        size = min(BLOCK, count + query_count - start)
        piece = centres[drawn.integers(0, len(centres), size)]
        piece += np.float32(spread) * drawn.standard_normal((size, DIM), dtype=np.float32)
        out[start : start + size] = piece / np.linalg.norm(piece, axis=1, keepdims=True)
    out.flush()
    whole = np.load(path, mmap_mode="r")
    queries = np.array(whole[count:])
    np.save(path.with_suffix(".only.npy"), whole[:count])
    path.unlink()
    return np.load(path.with_suffix(".only.npy"), mmap_mode="r"), queries


def exact(known: Any, queries: Any) -> Any:
    """Rows (q, 10) of the largest inner products, block by block."""
    import numpy as np

    scores = np.empty((len(queries), 0), dtype=np.float32)
    rows = np.empty((len(queries), 0), dtype=np.int64)
    for start in range(0, len(known), BLOCK):
        products = queries @ np.asarray(known[start : start + BLOCK]).T
        numbers = np.broadcast_to(np.arange(start, start + products.shape[1]), products.shape)
        scores, rows = (
            np.concatenate([scores, products], axis=1),
            np.concatenate([rows, numbers], axis=1),
        )
        best = np.argsort(-scores, axis=1, kind="stable")[:, :K]
        scores, rows = (
            np.take_along_axis(scores, best, axis=1),
            np.take_along_axis(rows, best, axis=1),
        )
    return rows


def recall(rows: Any, true: Any) -> float:
    """The mean share of the true ten that was found."""
    return sum(len({*a} & {*b}) / len(b) for a, b in zip(rows.tolist(), true.tolist())) / len(true)
