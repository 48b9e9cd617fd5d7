"""The installed packages with their versions, and the imported ones."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module, metadata
from types import ModuleType

from rallebench.core.errors import MissingPackageError

RECORDED = (
    "torch",
    "transformers",
    "bitsandbytes",
    "llguidance",
    "faiss-cpu",
    "bm25s",
    "numpy",
    "openai",
    "mlflow",
    "gradio",
    "rouge",
)
"""The packages whose versions a run records."""


def versions(*packages: str) -> dict[str, str]:
    """Installed versions of ``packages``; one that is absent is left out."""
    installed = {package: _version(package) for package in packages}
    return {package: version for package, version in installed.items() if version}


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def optional(module: str, package: str, why: str, install: str = "") -> ModuleType:
    """A module of an optional package, imported now. Raises MissingPackageError; ``why`` goes on with its sentence."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingPackageError(package, why, install) from None


def imported_module(name: str) -> ModuleType | None:
    """The module ``name`` if it is imported, else None; also while another thread still imports it.

    To use torch from one thread while another imports it can block both for good.
    """
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return None if getattr(spec, "_initializing", False) else module
