"""Packages needed to load a model: checked beforehand, their warnings silenced."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

from rallebench.core.errors import MissingPackageError


def need_packages(packages: Sequence[str], quantization: str, use: str) -> None:
    """Raise MissingPackageError for a package that is not installed; ``use``: its purpose, as a clause."""
    if "torch" not in sys.modules:
        # spinning threads stall a shared machine; torch reads this variable once
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise MissingPackageError(package.replace("_", "-"), f"and {use}")
    if quantization != "none" and importlib.util.find_spec("bitsandbytes") is None:
        raise MissingPackageError("bitsandbytes", f"and quantization {quantization} needs it")


_importing = threading.Lock()
_imported: set[str] = set()


def are_importing() -> bool:
    """Return whether a thread is importing libraries."""
    return _importing.locked()


def import_class(where: str) -> None:
    """Create the model of a folder or hub id without weights, so that imports are not measured as part of the load.

    One thread at a time, because transformers imports its parts on first use, and two threads doing so may deadlock.
    """
    with _importing:
        if where in _imported:
            return
        import torch
        from transformers import AutoConfig, AutoModel, AutoTokenizer  # noqa: F401

        with contextlib.suppress(Exception), torch.device("meta"):
            AutoModel.from_config(AutoConfig.from_pretrained(where, local_files_only=True))
        _imported.add(where)


def eight_bits(threshold: float = 6.0) -> Any:
    """Return the configuration of 8-bit layers, without bitsandbytes' warning, at every call, that they compute in
    float16.
    """
    from transformers import BitsAndBytesConfig

    logging.getLogger("bitsandbytes.autograd._functions").addFilter(_is_no_cast_warning)
    return BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=float(threshold))


def _is_no_cast_warning(record: logging.LogRecord) -> bool:
    return "will be cast from" not in record.getMessage()
