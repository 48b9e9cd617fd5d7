"""The quality and the cost of indexes, on one's own corpus and questions: quality against time, memory and disk.

Each index is searched in a process of its own (``probe``), so that its memory is its own; ``running`` is the experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rallebench.core.errors import BadFileError

FORMAT = "rallebench-tradeoff/1"


@dataclass(frozen=True, slots=True)
class Point:
    """One index at one search setting-time knobs. None: not measured.

    ``recall``: the share of the exact k nearest passages that were found, mean over ``n`` queries; None for
    an index without vectors. ``quality``: metric → mean over the ``n_gold`` questions with gold pages.
    ``single_ms``, ``batch_ms``: milliseconds per query, asked one by one (median) and in batches (the
    best of the rounds), passages read. ``encode_ms``: what turning one query into a vector adds; None
    where the search contains it. ``ram``: bytes that a process grew by opening and searching the index, over
    one that has only imported its library. ``error``: one sentence if the index could not be measured.
    """

    index: str
    kind: str
    knobs: Mapping[str, Any] = field(default_factory=dict)
    k: int = 10
    n: int = 0
    recall: float | None = None
    quality: Mapping[str, float] = field(default_factory=dict)
    n_gold: int = 0
    single_ms: float | None = None
    batch_ms: float | None = None
    encode_ms: float | None = None
    ram: int | None = None
    disk: int = 0
    build_seconds: float = 0.0
    passages: int = 0
    error: str = ""

    @property
    def label(self) -> str:
        """The index with its knobs.

        >>> Point("mine", "hnsw", {"ef_search": 64}).label
        'mine (ef_search 64)'
        """
        settings = ", ".join(f"{name} {value}" for name, value in self.knobs.items())
        return f"{self.index} ({settings})" if settings else self.index


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """A finished comparison: the request, and a Point per index and setting."""

    name: str
    dataset: str
    k: int
    n: int
    points: tuple[Point, ...]

    def to_json(self) -> dict[str, Any]:
        """One JSON document, as it is stored and printed."""
        return {
            "format": FORMAT,
            **asdict(self),
            "points": [asdict(point) for point in self.points],
        }


def from_json(value: Any, source: str) -> Tradeoff:
    """The inverse of ``as_json``; BadFileError, which names ``source``, for anything else."""
    try:
        points = tuple(Point(**point) for point in value["points"])
        return Tradeoff(value["name"], value["dataset"], value["k"], value["n"], points)
    except (KeyError, TypeError):
        raise BadFileError(f"{source} is no trade-off that rallebench measured.") from None
