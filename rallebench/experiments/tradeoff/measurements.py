"""Jobs for the programs of a trade-off, and the lines they print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rallebench.core.types import Json


@dataclass(frozen=True, slots=True)
class ExactJob:
    """The job of ``exact``. ``index``: an index over vectors; ``fingerprints``: digests of the measured builds."""

    workspace: str
    index: str
    fingerprints: Sequence[str]
    k: int
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class ProbeJob:
    """The job of ``probe``. ``settings``: search settings, measured one at a time; ``vectors``: the texts encoded by
    ``exact``, for an index over vectors, else None."""

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
    """The output line of ``exact``. ``vectors``: base64 of float32, n rows; ``encode_ms``: milliseconds to encode one query;
    ``nearest``: the ids of the k nearest passages of each question, more in case of ties. None if no exact vectors of this
    corpus and encoder are stored."""

    vectors: str | None = None
    encode_ms: float | None = None
    nearest: Sequence[Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """An output line of ``probe``. ``docs``, ``pages``: ids per query, best first; ``ram``: bytes."""

    knobs: Json
    docs: Sequence[Sequence[str]]
    pages: Sequence[Sequence[str]]
    single_ms: float
    batch_ms: float
    ram: int
