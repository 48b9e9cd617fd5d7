"""The file of the shipped weights: a training's difference from the base model, in 5 bits a weight."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.core.files import writing
from rallebench.reader.delta import FORMAT, GROUP, LEVELS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

LEAST_QUANTISED = 4096
"""Weights. Smaller tensors are kept as they are."""

_CLIPS = (1.0, 0.95, 0.9, 0.85, 0.8)


def quantise(values: Array) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """(the lower four bits of all weights, two a byte, then their fifth bits, eight a byte; a scale for each
    group); the size must be a multiple of GROUP.

    The scale of a group is the one of a few that leaves the least squared error.
    """
    import numpy as np

    groups = values.reshape(-1, GROUP)
    largest = np.abs(groups).max(1, keepdims=True)
    best = np.full((len(groups), 1), np.inf, dtype=np.float32)
    scales = np.zeros((len(groups), 1), dtype=np.float16)
    for clip in _CLIPS:
        candidate = (largest * clip / LEVELS).astype(np.float16)
        error = np.square(_levels(groups, candidate) * candidate.astype(np.float32) - groups).sum(
            1, keepdims=True
        )
        better = error < best
        best, scales = np.where(better, error, best), np.where(better, candidate, scales)
    codes = (_levels(groups, scales) + LEVELS).astype(np.uint8).reshape(-1)
    low = codes & 15
    return np.concatenate([low[0::2] | (low[1::2] << 4), np.packbits(codes >> 4)]), scales[:, 0]


def _levels(groups: Array, scales: Any) -> Any:
    """Each value as a whole number of its group's steps, −LEVELS..LEVELS."""
    import numpy as np

    steps = np.maximum(scales.astype(np.float32), np.float32(1e-12))
    return np.clip(np.rint(groups / steps), -LEVELS, LEVELS)


def write(
    path: Path, difference: Mapping[str, Array], base_sha256: str, about: Mapping[str, Any]
) -> int:
    """Write a difference (name → float32 array); the file's size in bytes. ``about`` is JSON-able."""
    import numpy as np
    from safetensors.numpy import save

    tensors: dict[str, Any] = {}
    shapes = {}
    for name, values in sorted(difference.items()):
        if values.size >= LEAST_QUANTISED and values.size % GROUP == 0:
            tensors[f"{name}.codes"], tensors[f"{name}.scales"] = quantise(values)
            shapes[name] = list(values.shape)
        else:
            tensors[name] = np.ascontiguousarray(values, dtype=np.float32)
    described = {"format": FORMAT, "base_sha256": base_sha256, "shapes": shapes, "about": about}
    packed = save(
        tensors, {name: json.dumps(value, ensure_ascii=False) for name, value in described.items()}
    )
    with writing(path) as file:
        file.write(packed)
    return len(packed)
