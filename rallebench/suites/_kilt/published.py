"""What RaLLe's paper prints (Hoshi et al. 2023, arXiv:2308.10633), as shares: KILT's dev files over all of Wikipedia."""

from __future__ import annotations

from collections.abc import Mapping

READER = "RaLLe: Llama2-70B, e5 flat, top 5"
HEADLINE: Mapping[str, float] = {
    "fev": 0.499, "ay2": 0.512, "wnwi": 0.486, "wncw": 0.456, "trex": 0.289, "zsre": 0.350,
    "nq": 0.364, "hopo": 0.281, "tqa": 0.711, "eli5": 0.215, "wow": 0.132,
}  # fmt: skip
"""Set → headline metric of the retrieve-read chain."""

HAS_ANSWER: Mapping[str, float] = {
    "fev": 0.886, "ay2": 0.579, "trex": 0.492, "zsre": 0.432, "nq": 0.488, "hopo": 0.358, "tqa": 0.839,
}  # fmt: skip
"""The same in brackets, where it is printed."""

R_PRECISION: Mapping[str, tuple[float, float]] = {
    "BM25": (0.302, 0.259),
    "m-e5": (0.529, 0.418),
    "e5 flat": (0.552, 0.419),
    "e5 HNSW": (0.433, 0.326),
    "e5 DiskANN": (0.516, 0.394),
}
"""Retriever → R-precision averaged over the eleven sets, with and without REWRITE-EL."""

SPEED: Mapping[str, tuple[float, float | None]] = {
    "BM25": (0.121, None),
    "e5 flat": (0.169, 84.8),
    "e5 HNSW": (0.008, 90.4),
    "e5 DiskANN": (0.022, 10.9),
}
"""Retriever → (seconds a query, GB of memory; None: not printed), 22.2 million passages."""
