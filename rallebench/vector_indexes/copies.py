"""Duplicate vectors: each distinct vector enters a graph once, with its rows stored beside it.

A graph links each vector to its nearest. Hundreds of copies are each other's nearest, so they use up all their links, and no
search can get past them, however many candidates it keeps.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.vector_indexes import (
    Build,
    Neighbours,
    Progress,
    VectorIndex,
    VectorIndexKind,
    Vectors,
)
from rallebench.vector_indexes.stored_vectors import Selection, damaged_file, no_neighbours, pieces

ROWS = "rows.npy"
"""int64 (n,): number in the graph of each row's vector; exists only if vectors are equal."""
COPIES = "equal_vectors"
"""Key in an index's parameters: number of rows whose vector also stands for other rows."""

SAME = 2e-6
"""Largest difference per number between equal vectors of length 1: the variation of an encoder for one text in two
batches.
"""
DIRECTIONS, STEP, SEED = 4, 1e-3, 7
AT_ONCE = 4096
MOST_OF_A_KEY = 64
"""Maximum number of distinct vectors compared per key; others enter the graph unchanged."""

Rows = NDArray[np.int64]


class EnteredOnce:
    """A graph kind whose index holds each vector once."""

    def __init__(self, kind: VectorIndexKind) -> None:
        self._kind, self.__doc__ = kind, kind.__doc__

    def build(self, folder: Path, vectors: Any, *_: Any, **settings: Any) -> Build:
        """Build the kind's index from the distinct vectors."""
        firsts = yield from first_rows(vectors)
        distinct = np.flatnonzero(firsts == np.arange(len(firsts)))
        if len(distinct) == len(firsts):
            return (yield from self._kind.build(folder, vectors, **settings))
        used = yield from self._kind.build(folder, Selection(vectors, distinct), **settings)
        np.save(folder / ROWS, np.searchsorted(distinct, firsts))
        return {**used, COPIES: len(firsts) - len(distinct)}

    def load(self, folder: Path) -> VectorIndex:
        """Load the kind's index, wrapped if some vectors are equal."""
        index = self._kind.load(folder)
        if not (folder / ROWS).exists():
            return index
        try:
            numbers = np.load(folder / ROWS)
            return WithCopies(index, numbers.astype(np.int64, casting="safe"))
        except (OSError, ValueError, TypeError, EOFError) as error:
            index.close()
            raise damaged_file(folder / ROWS, error) from None


class WithCopies:
    """An index of distinct vectors that returns all rows of each. ``numbers``: see ``ROWS``."""

    def __init__(self, index: VectorIndex, numbers: Rows) -> None:
        self.exact, self._index = index.exact, index
        self._rows = np.argsort(numbers, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(numbers))])

    def search(self, vectors: Vectors, k: int, *_: Any, **knobs: Any) -> Neighbours:
        """Return scores (q, k) best first and rows (q, k), −1 = none; rows of one vector in their order."""
        near_scores, near = self._index.search(vectors, min(k, len(self._starts) - 1), **knobs)
        scores, rows = no_neighbours(len(vectors), k)
        for query, (values, numbers) in enumerate(zip(near_scores, near)):
            place = 0
            for value, number in zip(values, numbers):
                if number < 0 or place >= k:
                    break
                same = self._rows[self._starts[number] : self._starts[number + 1]][: k - place]
                rows[query, place : place + len(same)] = same
                scores[query, place : place + len(same)] = value
                place += len(same)
        return scores, rows

    def close(self) -> None:
        self._index.close()


def first_rows(vectors: Any) -> Generator[Progress, None, Rows]:
    """Yield progress; return (n,): for each row the first row with an equal vector, which may be itself."""
    firsts = np.arange(len(vectors), dtype=np.int64)
    keys = yield from _keys(vectors)
    for left in _alike(keys):
        for _ in range(MOST_OF_A_KEY):
            same = _equal(vectors, left)
            firsts[left[same]] = left[0]
            left = left[~same]
            if len(left) < 2:
                break
    return firsts


def _keys(vectors: Any) -> Generator[Progress, None, NDArray[np.uint64]]:
    """Yield progress; return (n,): a key shared by equal vectors and hardly any others, from projections on a few directions."""
    count, dim = vectors.shape
    random = np.random.default_rng(SEED)
    directions = random.standard_normal((dim, DIRECTIONS))
    factors = random.integers(1, 2**63, DIRECTIONS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys = np.empty(count, dtype=np.uint64)
    for start, piece in pieces(vectors):
        yield 0, count
        lengths = np.linalg.norm(piece.astype(np.float64), axis=1, keepdims=True)
        places = (piece.astype(np.float64) / np.maximum(lengths, 1e-30)) @ directions
        steps = np.round(places / STEP).astype(np.int64).astype(np.uint64)
        keys[start : start + len(piece)] = (steps * factors).sum(axis=1, dtype=np.uint64)
    return keys


def _alike(keys: NDArray[np.uint64]) -> Iterator[Rows]:
    """Yield the rows of each key that several rows share, in order."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=keys[order[:1]] + np.uint64(1)))
    ends = np.append(starts[1:], len(keys))
    for run in np.flatnonzero(ends - starts > 1):
        yield order[starts[run] : ends[run]]


def _equal(vectors: Any, rows: Rows) -> NDArray[np.bool_]:
    """Return, for each row, whether its vector equals that of the first."""
    first = np.asarray(vectors[rows[:1]], dtype=np.float64)
    bound = SAME * max(float(np.linalg.norm(first)), 1e-30)
    parts = (rows[start : start + AT_ONCE] for start in range(0, len(rows), AT_ONCE))
    return np.concatenate([(np.abs(vectors[part] - first) <= bound).all(axis=1) for part in parts])
