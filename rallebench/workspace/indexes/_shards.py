"""The files of one encoding, and what they say of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rallebench.core.types import Passage

VECTORS, PART, PROGRESS = "vectors.npy", "vectors.part", "progress.jsonl"
FORMAT, FORM = "rallebench-vectors/1", "{title}, {text}"
SHARD = 1024
"""Passages. Sorted by length inside, so a larger one pads less; a smaller one loses less."""


@dataclass(frozen=True, slots=True)
class Building:
    """Progress of a build: what is done now, and how far (``total`` 0 = not known).

    ``rate``: how many of them a second in this session, 0 = not known.
    """

    stage: str
    done: int
    total: int
    seconds: float
    rate: float = 0.0

    @property
    def left(self) -> float | None:
        """Seconds that are left at this rate; None where that is not known."""
        return (self.total - self.done) / self.rate if self.rate > 0 and self.total else None


class Passages(Protocol):
    """A PassageStore, or a list."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Passage: ...


@dataclass(frozen=True)
class EncodedPassages:
    """Vectors on the disk, read-only: float32 (n, dim), unit length. ``encoding`` says how they were made."""

    vectors: NDArray[np.float32]
    dtype: str
    encoding: Mapping[str, Any] = field(default_factory=dict)


def passage_text(passage: Passage) -> str:
    """The string that is embedded."""
    return FORM.format(title=passage.title, text=passage.text)


def read_progress(folder: Path) -> tuple[dict[str, Any], dict[int, str]]:
    """The header ({}: none of ours) and first row → sha256 of the finished shards; torn lines are passed over.

    Nothing here is trusted: vectors are compared with their sha256 before they are used.
    """
    lines: list[Any] = []
    with contextlib.suppress(FileNotFoundError), open(folder / PROGRESS, "rb") as handle:
        for line in handle:
            with contextlib.suppress(ValueError):
                lines.append(json.loads(line))
    if not lines or not isinstance(lines[0], dict) or lines[0].get("format") != FORMAT:
        return {}, {}
    shards = [
        line for line in lines[1:] if isinstance(line, dict) and isinstance(line.get("first"), int)
    ]
    return lines[0], {shard["first"]: str(shard.get("sha256")) for shard in shards}


def passages_in(finished: Mapping[int, str], total: int) -> int:
    """How many of ``total`` passages are in finished shards."""
    return sum(min(SHARD, total - first) for first in finished)
