"""The checks before the weights are read: devices, attention implementation, tokenizer."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from rallebench.checkpoints.memory import SPREAD
from rallebench.core.errors import BadFileError, MissingPackageError, UsageError
from rallebench.llms._transformers.settings import TransformersSettings

_FLASH = {"flash_attention_2": "flash_attn", "flash_attention_3": "flash_attn_interface"}


def check_hardware(name: str, settings: TransformersSettings) -> None:
    """Raise UsageError for a missing device or attention implementation; imports torch."""
    import torch

    where = settings.device_map
    devices = list(where.values()) if isinstance(where, dict) else [where]
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for device in devices:
        number = _cuda_number(device)
        if number is not None and number >= count:
            have = (
                f"only {count} CUDA devices are here" if count else "there is no CUDA device here"
            )
            raise UsageError(
                f"{name!r}: device_map names {device!r}, but {have}; choose cpu, or leave device_map out."
            )
    attention = settings.attn_implementation
    if not attention.startswith("flash_attention"):
        return
    if not count or where == "cpu":
        raise UsageError(
            f"{name!r}: attn_implementation {attention} needs a CUDA device; set it to auto, or load the "
            "model on one."
        )
    package = _FLASH.get(attention)
    if package and not any(importlib.util.find_spec(known) for known in (package, "kernels")):
        raise MissingPackageError(
            package,
            f"and attn_implementation {attention} needs it (or set that to auto)",
            "flash-attn",
        )


def check_vocabulary(where: str, tokenizer: Any, config: Any) -> None:
    """Raise BadFileError if the tokenizer's own words exceed the model's vocabulary.

    Added tokens may lie beyond it: many tokenizers have such a padding token.
    """
    known = getattr(config.get_text_config(), "vocab_size", None)
    words = getattr(tokenizer, "vocab_size", 0)
    if known is not None and words > known:
        raise BadFileError(
            f"The tokenizer in {where} has {words} tokens, but the model knows only {known}, so they belong "
            "to different models; put the model's own tokenizer there."
        )


def from_pretrained_arguments(settings: TransformersSettings) -> dict[str, Any]:
    """The arguments of ``from_pretrained`` for optional settings."""
    arguments: dict[str, Any] = {}
    if settings.attn_implementation != "auto":
        arguments["attn_implementation"] = settings.attn_implementation
    if isinstance(settings.max_memory, Mapping) and settings.device_map in SPREAD:
        # accelerate knows GPUs by number; JSON has only texts for names.
        room = {int(d) if str(d).isdigit() else d: most for d, most in settings.max_memory.items()}
        arguments["max_memory"] = room
    return arguments


def _cuda_number(device: Any) -> int | None:
    """The number of a CUDA device, None for any other device."""
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if isinstance(device, str) and device.split(":")[0] == "cuda":
        return int(device.partition(":")[2] or 0)
    return None
