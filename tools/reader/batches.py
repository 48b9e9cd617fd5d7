"""Groups → batches of arrays: groups of one size and of like lengths, side by side."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.reader.examples import Group

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Batch:
    """Groups of one size. ``ids``, ``types``, ``mask``, ``inside`` (places that may be chosen): (groups · size,
    tokens). ``first``, ``last``: (groups,) places in a group's windows laid end to end, −1 for no answer."""

    size: int
    ids: NDArray[np.int64]
    types: NDArray[np.int64]
    mask: NDArray[np.int64]
    inside: NDArray[np.bool_]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


def batches_of(groups: Sequence[Group], tokens: int, rng: random.Random) -> list[Batch]:
    """Batches of groups of one size and of like lengths, at most ``tokens`` with padding, shuffled."""
    batches: list[Batch] = []
    for size in sorted({len(g.windows) for g in groups}):
        same = [g for g in groups if len(g.windows) == size]
        # Sorted within pools only, so that a batch is not all one kind of question.
        for start in range(0, len(same), 640):
            pool = sorted(same[start : start + 640], key=_longest)
            batches += [_batch(part) for part in _cut(pool, size, tokens)]
    rng.shuffle(batches)
    return batches


def _longest(group: Group) -> int:
    return max(len(w.ids) for w in group.windows)


def _cut(pool: Sequence[Group], size: int, tokens: int) -> Iterator[list[Group]]:
    part: list[Group] = []
    for group in pool:
        # The pool is sorted: the newest is the longest.
        if part and (len(part) + 1) * size * _longest(group) > tokens:
            yield part
            part = []
        part.append(group)
    if part:
        yield part


def _batch(groups: Sequence[Group]) -> Batch:
    import numpy as np

    size, width = len(groups[0].windows), max(map(_longest, groups))
    shape = (len(groups) * size, width)
    ids, types, mask = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    inside = np.zeros(shape, dtype=bool)
    for row, sequence in enumerate(w for g in groups for w in g.windows):
        n = len(sequence.ids)
        ids[row, :n], mask[row, :n] = sequence.ids, 1
        types[row, sequence.context : n] = 1
        inside[row, sequence.context : n - 1] = True
    places = [
        (-1, -1)
        if g.answer is None
        else (g.answer[0] * width + g.answer[1], g.answer[0] * width + g.answer[2])
        for g in groups
    ]
    first, last = (np.array(column, dtype=np.int64) for column in zip(*places))
    return Batch(size, ids, types, mask, inside, first, last)
