"""The experiments of five papers, a folder each: its questions, prompts and settings, and what is counted.

A folder imports its experiments in ``__init__``; see :mod:`rallebench.core.experiments` for what an experiment is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rallebench.core.experiments import Experiment, ExperimentRequest
from rallebench.core.registry import Registry
from rallebench.core.settings import Setting, checked

Suite = Callable[[ExperimentRequest], Experiment]

SUITES: Registry[Suite] = Registry(
    "suite",
    "rallebench.experiments.papers",
    name="suites",
    traits={
        "needs_llm": "whether it cannot do without a model; default true",
        "asks": "whether it asks models at all; default true",
        "named_by": "settings that are part of the default name of its runs",
    },
)


Scorer = Callable[[Path, "Path | None"], "dict[str, Any]"]
"""(file of predictions, file of gold or None) → JSON-able. Raises UsageError, BadFileError."""

SCORERS: Registry[Scorer] = Registry(
    "form of predictions", "rallebench.experiments.papers", name="scorers"
)
"""``score --suite NAME``: predictions of another program, in the form in which the benchmark's own code writes them."""


def settings_of(name: str, written: Mapping[str, str]) -> dict[str, Any]:
    """All settings of the suite, with those written on the command line. Raises UsageError."""
    known: Mapping[str, Setting] = SUITES.entry(name).form
    return checked(f"suite {name!r}", known, written)
