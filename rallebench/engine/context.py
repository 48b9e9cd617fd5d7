"""What the engine needs of the product around it: loading, the reply cache, indexes, tracking."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from rallebench.core.events import Operation
from rallebench.core.experiments import IndexResult
from rallebench.core.runs import Backends, RunRequest
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.store import RunFolder


class WorkContext(Protocol):
    """For runs and experiments alike; ``services.context`` has the one of the workbench."""

    @property
    def runs(self) -> Path:
        """The folder of all runs."""

    def load(self, request: RunRequest) -> Operation[Backends]:
        """Load and hold what a run names."""

    def load_models(self, llms: tuple[str, ...]) -> Operation[Backends]:
        """Load and hold language models."""

    def reply_cache(self) -> ReplyCache | None:
        """The cache of replies; opened only when all is loaded, so that a refused request writes nothing."""

    def memory(self, names: tuple[str, ...]) -> Mapping[str, Mapping[str, int] | None]:
        """Model or index, and what it is made of → bytes of ``ram`` and ``vram``; None where they are not known."""

    def coverage(self, request: RunRequest, backends: Backends | None) -> tuple[str, ...]:
        """One sentence per retriever that lacks gold pages. Without ``backends``: what can be told before the load; with
        them: what could not be told before."""

    def track(self, run: RunFolder) -> str:
        """Log a run; '' or one sentence on why that did not work."""

    def ensure_index(self, recipe: Any) -> Operation[IndexResult]:
        """Find or build an index."""

    def foresee(self, recipe: Any) -> tuple[str, bool]:
        """(the name of an index of this recipe, '' where it is not known yet; whether it is built)."""

    def index_costs(self, recipes: tuple[Any, ...]) -> Operation[str]:
        """What the indexes of these recipes take, in one sentence."""

    def release(self, names: tuple[str, ...]) -> None:
        """Unload what was loaded for the experiment and is used by nothing else; what cannot be unloaded now stays."""

    def track_experiment(self, document: Mapping[str, Any], kind: str) -> str:
        """Put the runs below one parent in MLflow; '' or one sentence on why that did not work."""
