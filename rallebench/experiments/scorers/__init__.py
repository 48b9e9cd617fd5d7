"""Scorers of prediction files written by other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rallebench.core.registry import Registry

Scorer = Callable[[Path, "Path | None"], "dict[str, Any]"]
"""(prediction file, gold file or None) → JSON-able scores. Raises UsageError, BadFileError."""

SCORERS: Registry[Scorer] = Registry(
    "form of predictions",
    "rallebench.experiments.scorers",
    expects="a function (file of predictions, file of gold or None) → its scores as JSON",
    rooms=("predictions",),
)
"""Scorers for ``score --suite NAME``, by name. They read predictions in the format of the benchmark's own code."""
