"""Which ids were seen, in 8 bytes each: 22 million ids in a dict would take gigabytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]


def hashes(ids: Sequence[str]) -> Hashes:
    """64-bit hashes that hold in this process."""
    return np.array([hash(doc_id) & 0xFFFFFFFFFFFFFFFF for doc_id in ids], dtype=np.uint64)


class SeenIds:
    """Sorted levels of hashes, each more than twice as long as the next, merged as they grow.

    Two ids share a hash with a chance of 1.3e-5 among 22 million: whoever is told that an id was seen
    looks whether it truly was.
    """

    def __init__(self) -> None:
        self._levels: list[Hashes] = []

    def add(self, ids: Sequence[str]) -> list[int]:
        """Add a batch; return the positions in it of ids that seem to have been seen, in order."""
        found = hashes(ids)
        maybe = np.zeros(len(ids), dtype=bool)
        for level in self._levels:
            at = np.searchsorted(level, found)
            maybe |= level[np.minimum(at, len(level) - 1)] == found
        order = np.argsort(found, kind="stable")
        again = found[order][1:] == found[order][:-1]
        maybe[order[1:][again]] = True
        self._push(np.unique(found))
        return [int(position) for position in np.flatnonzero(maybe)]

    def _push(self, level: Hashes) -> None:
        while self._levels and len(self._levels[-1]) <= 2 * len(level):
            level = np.concatenate([self._levels.pop(), level])
            level.sort(kind="stable")  # merges sorted runs
        if len(level):
            self._levels.append(level)
