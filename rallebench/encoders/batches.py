"""Batches of texts under a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def cuts(lengths: Any, tokens: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of batches of texts sorted by falling length, at most ``tokens`` including padding.

    >>> list(cuts([100, 50, 50, 10, 10, 10], 100, 2))
    [(0, 1), (1, 3), (3, 5), (5, 6)]
    """
    start = 0
    while start < len(lengths):
        stop = min(len(lengths), start + min(most, max(1, tokens // int(lengths[start]))))
        yield start, stop
        start = stop
