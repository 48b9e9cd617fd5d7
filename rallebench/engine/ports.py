"""Protocols for the parts of the product that the engine uses: loading, the reply cache, indexes, tracking."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from rallebench.core.backends import Backends
from rallebench.core.events import Operation
from rallebench.core.experiment_reports import ExperimentReport
from rallebench.core.experiments import IndexRecipe, IndexResult
from rallebench.core.memory import Memory
from rallebench.core.runs import RunRequest
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.store import RunFolder


class RunContext(Protocol):
    """The surroundings of a run, or of a judge's pass inside a run."""

    @property
    def runs(self) -> Path:
        """The folder of all runs."""

    def load(self, request: RunRequest) -> Operation[Backends]:
        """Load and hold the models and indexes that a run names."""

    def reply_cache(self) -> ReplyCache | None:
        """Open the cache of replies. Called after everything is loaded, so that a refused request writes nothing."""

    def memory(self, names: tuple[str, ...]) -> Mapping[str, Memory | None]:
        """Return model or index, and its parts → its memory; None if it is unknown."""

    def coverage(self, request: RunRequest, backends: Backends | None) -> tuple[str, ...]:
        """Return one sentence per retriever that lacks gold pages. Without ``backends``: the retrievers known before
        loading; with them: the others."""

    def track(self, run: RunFolder) -> str:
        """Log a run. Returns '' or one sentence on why this failed."""


class WorkContext(RunContext, Protocol):
    """The surroundings of an experiment; ``services.context`` implements them for the workbench."""

    def load_models(self, llms: tuple[str, ...]) -> Operation[Backends]:
        """Load and hold language models."""

    def ensure_index(self, recipe: IndexRecipe) -> Operation[IndexResult]:
        """Find or build an index."""

    def temperature(self, llm: str) -> float | None:
        """Return the temperature of a model where a request sets none; None if unknown before it is loaded."""

    def foresee(self, recipe: IndexRecipe) -> tuple[str, bool]:
        """Return the name of a recipe's index ('' if not known yet) and True if it is built."""

    def index_costs(self, recipes: tuple[IndexRecipe, ...]) -> Operation[str]:
        """Return the costs of the indexes of these recipes, in one sentence."""

    def release(self, names: tuple[str, ...]) -> None:
        """Unload models and indexes that were loaded for the experiment, unless they are in use."""

    def track_experiment(self, report: ExperimentReport, kind: str) -> str:
        """Put the runs below one parent in MLflow. Returns '' or one sentence on why this failed."""
