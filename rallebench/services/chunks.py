"""Chunking as the front ends choose it."""

from __future__ import annotations

from collections.abc import Mapping

from rallebench.corpora.chunking import PRESETS, Chunking, choose, spans

__all__ = ["Chunking", "choose", "preset_of", "presets", "spans"]


def presets() -> Mapping[str, Chunking]:
    """Name → chunking of a paper."""
    return PRESETS


def preset_of(chunking: Chunking) -> str:
    """The preset that a chunking is, '' if it is none."""
    return next((name for name, preset in PRESETS.items() if preset == chunking), "")
