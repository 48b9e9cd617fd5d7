"""The jobs of a trade-off's programs, and the lines that they print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rallebench.core.types import Json


@dataclass(frozen=True, slots=True)
class ExactJob:
    """The job of ``exact``. ``index``: an index over vectors; ``fingerprints``: of the measured builds."""

    workspace: str
    index: str
    fingerprints: Sequence[str]
    k: int
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class ProbeJob:
    """The job of ``probe``. ``settings``: of the search, one measurement each; ``vectors``: of the texts, as ``exact`` prints
    them, for an index over vectors; else None."""

    workspace: str
    index: str
    fingerprints: Sequence[str]
    k: int
    texts: Sequence[str]
    batch: int
    rounds: int
    settings: Sequence[Json]
    vectors: str | None


@dataclass(frozen=True, slots=True)
class ExactNeighbours:
    """The line of ``exact``. ``vectors``: base64 of float32, n rows; ``encode_ms``: of one query; ``nearest``: per question the ids of
    the k nearest, more with ties; None if no exact vectors of this corpus and encoder are stored."""

    vectors: str | None = None
    encode_ms: float | None = None
    nearest: Sequence[Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """A line of ``probe``. ``docs``, ``pages``: ids per query, best first; ``ram``: bytes."""

    knobs: Json
    docs: Sequence[Sequence[str]]
    pages: Sequence[Sequence[str]]
    single_ms: float
    batch_ms: float
    ram: int
