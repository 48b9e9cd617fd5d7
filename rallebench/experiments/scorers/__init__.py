"""Scorers of prediction files written by other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rallebench.core.registry import Registry

Scorer = Callable[[Path, "Path | None"], "dict[str, Any]"]
"""(file of predictions, file of gold or None) → JSON-able. Raises UsageError, BadFileError."""

SCORERS: Registry[Scorer] = Registry(
    "form of predictions",
    "rallebench.experiments.scorers",
    expects="a function (file of predictions, file of gold or None) → its scores as JSON",
    rooms=("predictions",),
)
"""``score --suite NAME``: predictions of another program, in the form in which the benchmark's own code writes them."""
