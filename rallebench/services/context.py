"""Resources used by runs and experiments: loading, reply cache, indexes, tracking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rallebench.core.backends import Backends, PagedRetriever
from rallebench.core.errors import RalleError
from rallebench.core.events import Operation
from rallebench.core.experiment_reports import ExperimentReport
from rallebench.core.experiments import IndexRecipe, IndexResult
from rallebench.core.memory import Memory
from rallebench.core.runs import RunRequest
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.store import RunFolder
from rallebench.llms import LLMS
from rallebench.services.leases import Lease
from rallebench.services.models import ModelManager
from rallebench.services.tracking import Tracking
from rallebench.workspace.coverage import coverage, missing_pages
from rallebench.workspace.indexes.ensure import ensure_index, expected_name, index_costs
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class EngineParts:
    """Parts of the workbench used by runs and experiments. ``reply_cache`` opens the cache."""

    workspace: WorkspaceFolder
    models: ModelManager
    tracking: Tracking
    reply_cache: Callable[[], ReplyCache]


class EngineContext:
    """The workbench as seen by the engine (``engine.ports``). ``lease`` holds the models of the work.

    ``heavy``: also load models that may take gigabytes; otherwise they must already be loaded.
    """

    def __init__(self, parts: EngineParts, lease: Lease, *, heavy: bool = True) -> None:
        self._parts, self._lease, self._heavy = parts, lease, heavy
        self._loaded_before = {line.name for line in parts.models.status()}

    @property
    def runs(self) -> Path:
        return self._parts.workspace.runs

    def load(self, request: RunRequest) -> Operation[Backends]:
        flow = request.flow
        return (yield from self._lease.load_for(flow.llms, flow.retrievers, heavy=self._heavy))

    def load_models(self, llms: tuple[str, ...]) -> Operation[Backends]:
        return (yield from self._lease.load_for(llms, (), heavy=self._heavy))

    def reply_cache(self) -> ReplyCache | None:
        return self._parts.reply_cache()

    def memory(self, names: tuple[str, ...]) -> Mapping[str, Memory | None]:
        return self._parts.models.memory(names)

    def coverage(self, request: RunRequest, backends: Backends | None) -> tuple[str, ...]:
        names = request.flow.retrievers
        known = coverage(self._parts.workspace, names, request.examples)
        if backends is None:
            return tuple(filter(None, known.values()))
        loaded = {name: backends.retrievers[name] for name in names if name not in known}
        return tuple(
            sentence
            for name, retriever in loaded.items()
            if isinstance(retriever, PagedRetriever)
            and (sentence := missing_pages(name, retriever.page_ids(), request.examples))
        )

    def track(self, run: RunFolder) -> str:
        """Log a run to MLflow; return '' or one sentence explaining a failure."""
        return self._parts.tracking.track_run(run)

    # for experiments

    def ensure_index(self, recipe: IndexRecipe) -> Operation[IndexResult]:
        parts = self._parts
        return ensure_index(parts.workspace, recipe, parts.models.encoders)

    def temperature(self, llm: str) -> float | None:
        """Return a model's own temperature: of the loaded model, or of its entry."""
        loaded = self._parts.models.backends.llms.get(llm)
        if loaded is not None:
            return float(getattr(loaded, "temperature", 0.0) or 0.0)
        entry = self._parts.workspace.llm(llm)
        setting = LLMS.entry(entry.backend).form.get("temperature")
        value = entry.settings.get("temperature", setting.default if setting else 0.0)
        return float(value) if isinstance(value, (int, float)) else None

    def foresee(self, recipe: IndexRecipe) -> tuple[str, bool]:
        """Return the name of an index with this recipe ('' if not known yet) and whether it is built."""
        return expected_name(self._parts.workspace, recipe)

    def index_costs(self, recipes: tuple[IndexRecipe, ...]) -> Operation[str]:
        costs = yield from index_costs(self._parts.workspace, recipes)
        return costs.sentence

    def release(self, names: tuple[str, ...]) -> None:
        unused = [name for name in names if name not in self._loaded_before]
        self._lease.release(unused)
        for name in unused:
            if self._parts.models.is_loaded(name):
                with suppress(RalleError):
                    self._parts.models.unload(name, record=False)

    def track_experiment(self, report: ExperimentReport, kind: str) -> str:
        """Log the runs below one parent in MLflow; return '' or one sentence explaining a failure."""
        return self._parts.tracking.track_experiment(report, kind)
