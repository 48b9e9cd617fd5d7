"""The numeric type for passages: the fastest that leaves the ranking unchanged, by measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rallebench.encoders import BulkEncoder, Encoder, Vectors
from rallebench.encoders._engine import collect_rows

SAMPLE, QUERIES, DEPTH = 256, 32, 10
LEAST_OVERLAP = 0.995
TIE = 1e-6
"""Smaller differences between inner products of unit vectors are rounding errors of float32."""
LEAST_GAIN = 1.1
"""Minimum speed-up at which a type is worth its rounding."""
WORTH_MEASURING = 2048
"""Number of passages from which a measurement pays for itself."""


@dataclass(frozen=True)
class NumericType:
    """A numeric type, and the measurements behind the choice (empty without a measurement)."""

    dtype: str
    measured: Mapping[str, Any] = field(default_factory=dict)


def choose_type(encoder: Encoder, count: int, text_of: Callable[[int], str]) -> NumericType:
    """Choose the type for ``count`` passages: the user's choice, or measured on a sample of them.

    >>> from rallebench.encoders.hashing import hashing
    >>> choose_type(hashing(), 10, str)
    NumericType(dtype='float32', measured={})
    """
    if not isinstance(encoder, BulkEncoder):
        return NumericType("float32")
    if encoder.dtype != "auto":
        return NumericType(encoder.dtype)
    if count < WORTH_MEASURING or not encoder.fast_dtypes:
        return NumericType("float32")
    texts = [text_of(row * count // SAMPLE) for row in range(SAMPLE)]
    return measured_choice(encoder, texts)


def measured_choice(encoder: BulkEncoder, texts: Sequence[str]) -> NumericType:
    """Choose float32, or the fastest type that keeps the top 10 of every eighth text in ``texts``.

    Each type encodes all texts once, after a warm-up.
    """
    exact, slow = _encode_timed(encoder, "float32", texts)
    best, best_speed = "float32", slow * LEAST_GAIN
    figures: dict[str, Any] = {
        "sample": len(texts),
        "float32": {"passages_per_second": round(slow, 1)},
    }
    for dtype in encoder.fast_dtypes:
        vectors, speed = _encode_timed(encoder, dtype, texts)
        overlap = top_overlap(exact[:: max(1, len(texts) // QUERIES)], exact, vectors, DEPTH)
        figures[dtype] = {
            "passages_per_second": round(speed, 1),
            "overlap_at_10": round(overlap, 4),
        }
        if overlap >= LEAST_OVERLAP and speed > best_speed:
            best, best_speed = dtype, speed
    return NumericType(best, figures)


def top_overlap(queries: Vectors, exact: Vectors, others: Vectors, depth: int) -> float:
    """Return the mean share of the ``depth`` nearest in ``others`` that are also the nearest in ``exact``.

    Copies of a text share a rank, in any order.
    """
    depth = min(depth, len(exact))
    scores = queries @ exact.T
    last = -np.partition(-scores, depth - 1, axis=1)[:, depth - 1 : depth]
    nearest = np.argsort(-(queries @ others.T), axis=1, kind="stable")[:, :depth]
    return float((np.take_along_axis(scores, nearest, axis=1) >= last - TIE).mean())


def _encode_timed(encoder: BulkEncoder, dtype: str, texts: Sequence[str]) -> tuple[Vectors, float]:
    """Return the vectors of ``texts``, and the texts per second."""
    encode = encoder.bulk(dtype)
    for _ in encode(texts[:16]):
        pass
    started = time.perf_counter()
    batches = list(encode(texts))
    speed = len(texts) / (time.perf_counter() - started)
    return collect_rows(len(texts), batches[0][1].shape[1], iter(batches)), speed
