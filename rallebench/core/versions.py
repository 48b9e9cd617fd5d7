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
"""The packages with versions that a run records."""


def versions(*packages: str) -> dict[str, str]:
    """Installed versions of ``packages``; absent packages are left out."""
    installed = {package: _version(package) for package in packages}
    return {package: version for package, version in installed.items() if version}


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def optional(module: str, package: str, why: str, install: str = "") -> ModuleType:
    """Import and return a module of an optional package. Raises MissingPackageError; ``why`` continues its sentence."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingPackageError(package, why, install) from None


def imported_module(name: str) -> ModuleType | None:
    """The module ``name`` if it is imported, else None; None also while another thread is still importing it.

    If one thread uses torch while another imports it, both can block for good.
    """
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return None if getattr(spec, "_initializing", False) else module
