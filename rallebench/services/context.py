"""The workbench as runs and experiments use it: loading, the reply cache, indexes, tracking."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.core.errors import RalleError
from rallebench.core.events import Operation
from rallebench.core.experiments import IndexResult
from rallebench.core.runs import Backends, RunRequest
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.store import RunFolder
from rallebench.services.leases import Lease
from rallebench.workspace.coverage import coverage, missing_pages
from rallebench.workspace.indexes.ensure import ensure_index, expected_name, index_costs

if TYPE_CHECKING:
    from rallebench.services.workbench import Workbench


class EngineContext:
    """The workbench as the engine sees it (``engine.ports``), for work that holds its models by ``lease``.

    ``heavy``: models that may take gigabytes are loaded, too; else they must be loaded already.
    """

    def __init__(self, workbench: Workbench, lease: Lease, *, heavy: bool = True) -> None:
        self._workbench, self._lease, self._heavy = workbench, lease, heavy
        self._loaded_before = {line.name for line in workbench.models.status()}

    @property
    def runs(self) -> Path:
        return self._workbench.workspace.runs

    def load(self, request: RunRequest) -> Operation[Backends]:
        flow = request.flow
        return (yield from self._lease.load_for(flow.llms, flow.retrievers, heavy=self._heavy))

    def load_models(self, llms: tuple[str, ...]) -> Operation[Backends]:
        return (yield from self._lease.load_for(llms, (), heavy=self._heavy))

    def reply_cache(self) -> ReplyCache | None:
        return self._workbench.asking.reply_cache

    def memory(self, names: tuple[str, ...]) -> Mapping[str, Mapping[str, int] | None]:
        return self._workbench.models.memory(names)

    def coverage(self, request: RunRequest, backends: Backends | None) -> tuple[str, ...]:
        names = request.flow.retrievers
        known = coverage(self._workbench.workspace, names, request.examples)
        if backends is None:
            return tuple(filter(None, known.values()))
        loaded = {name: backends.retrievers[name] for name in names if name not in known}
        return tuple(
            sentence
            for name, retriever in loaded.items()
            if hasattr(retriever, "page_ids")
            and (sentence := missing_pages(name, retriever.page_ids(), request.examples))
        )

    def track(self, run: RunFolder) -> str:
        """Log a run to MLflow; '' or one sentence on why that did not work."""
        return self._workbench.tracking.track_run(run)

    # of an experiment

    def ensure_index(self, recipe: Any) -> Operation[IndexResult]:
        workbench = self._workbench
        return ensure_index(workbench.workspace, recipe, workbench.models.encoders)

    def foresee(self, recipe: Any) -> tuple[str, bool]:
        """(the name of an index of this recipe, '' where it is not known yet; whether it is built)."""
        return expected_name(self._workbench.workspace, recipe)

    def index_costs(self, recipes: tuple[Any, ...]) -> Operation[str]:
        costs = yield from index_costs(self._workbench.workspace, recipes)
        return costs.sentence

    def release(self, names: tuple[str, ...]) -> None:
        unused = [name for name in names if name not in self._loaded_before]
        self._lease.release(unused)
        for name in unused:
            if self._workbench.models.is_loaded(name):
                with suppress(RalleError):
                    self._workbench.models.unload(name, record=False)

    def track_experiment(self, document: Mapping[str, Any], kind: str) -> str:
        """Put the runs below one parent in MLflow; '' or one sentence on why that did not work."""
        return self._workbench.tracking.track_experiment(document, kind)
