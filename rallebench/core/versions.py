"""Which versions of which packages are installed."""

from __future__ import annotations

import contextlib
from importlib import metadata

RECORDED = (
    "torch",
    "transformers",
    "bitsandbytes",
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
    installed = {}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed[package] = metadata.version(package)
    return installed
