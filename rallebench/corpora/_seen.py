"""A set of ids in 8 bytes each: 22 million ids in a dict would take gigabytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]


def hashes(ids: Sequence[str]) -> Hashes:
    """Return 64-bit hashes, valid in this process only."""
    return np.array([hash(doc_id) & 0xFFFFFFFFFFFFFFFF for doc_id in ids], dtype=np.uint64)


class SeenIds:
    """Sorted levels of hashes, each more than twice as long as the next, merged as they grow.

    Two of 22 million ids share a hash with a probability of 1.3e-5, so the caller checks each candidate.
    """

    def __init__(self) -> None:
        self._levels: list[Hashes] = []

    def add(self, ids: Sequence[str]) -> list[int]:
        """Add a batch; return the positions of its possibly repeated ids, in order."""
        new = hashes(ids)
        candidates = np.zeros(len(ids), dtype=bool)
        for level in self._levels:
            at = np.searchsorted(level, new)
            candidates |= level[np.minimum(at, len(level) - 1)] == new
        order = np.argsort(new, kind="stable")
        repeated = new[order][1:] == new[order][:-1]
        candidates[order[1:][repeated]] = True
        self._push(np.unique(new))
        return [int(position) for position in np.flatnonzero(candidates)]

    def _push(self, level: Hashes) -> None:
        while self._levels and len(self._levels[-1]) <= 2 * len(level):
            level = np.concatenate([self._levels.pop(), level])
            level.sort(kind="stable")  # merges sorted runs
        if len(level):
            self._levels.append(level)
