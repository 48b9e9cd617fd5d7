"""Experiments and benchmarks for tests: the events of the work, the result last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rallebench.core.events import Operation, complete
from rallebench.core.experiments import ExperimentRequest, ExperimentResult
from rallebench.core.forecast import Forecast
from rallebench.core.runs import PreparedRun, RunOptions
from rallebench.core.types import Chain
from rallebench.experiments.prepared_run import prepare_run
from rallebench.experiments.sweeps.running import sweep_settings
from rallebench.services.builders import builder_request
from rallebench.services.workbench import Workbench
from rallebench.workspace.flows import chain_flow
from rallebench.workspace.paths import WorkspaceFolder


def streamed(operation: Operation[Any]) -> Iterator[Any]:
    """The events of an operation, then its result."""
    yield (yield from operation)


def prepared(
    workspace: WorkspaceFolder, chain: Chain, dataset: str, **settings: Any
) -> PreparedRun:
    """A benchmark of a chain, checked. ``settings``: of the request, or options of the run."""
    own = {key: settings.pop(key) for key in RunOptions.__slots__ if key in settings}
    return prepare_run(workspace, chain_flow(chain), dataset, options=RunOptions(**own), **settings)


def run_suite(
    bench: Workbench, suite: str, request: ExperimentRequest, name: str, **options: Any
) -> Iterator[Any]:
    """Perform a suite."""
    return streamed(
        bench.experiments.run(replace(request, kind=suite, name=name), RunOptions(**options))
    )


def build(
    workspace: WorkspaceFolder,
    maker: str,
    name: str,
    settings: Mapping[str, Any],
    articles: str = "",
    llm: str = "",
    limit: int | None = None,
) -> ExperimentResult:
    """Build a dataset."""
    request = builder_request(workspace, maker, name, settings, articles, llm, limit)
    bench = Workbench(workspace.path)
    try:
        return complete(bench.experiments.run(request, RunOptions(track=False)))
    finally:
        bench.close()


def plan(suite: str, request: ExperimentRequest, name: str) -> Forecast:
    """The plan of a suite."""
    bench = Workbench(request.workspace.path)
    try:
        return bench.experiments.plan(replace(request, kind=suite, name=name))
    finally:
        bench.close()


def probe(
    bench: Workbench, planned: Forecast, request: ExperimentRequest, **options: Any
) -> Iterator[Any]:
    """Perform the pilot of a planned suite."""
    request = replace(request, kind=planned.kind, name=planned.name)
    return streamed(bench.experiments.pilot(planned, request, **options))


def sweep(
    bench: Workbench,
    name: str,
    chain: Chain,
    vary: Sequence[str],
    dataset: str,
    *,
    limit: int | None = None,
    **options: Any,
) -> Iterator[Any]:
    """Perform a sweep."""
    settings = sweep_settings(chain, list(vary), dataset)
    request = ExperimentRequest(bench.workspace, "", settings, limit, kind="sweep", name=name)
    return streamed(bench.experiments.run(request, RunOptions(**options)))


__all__ = ["build", "plan", "prepared", "probe", "run_suite", "streamed", "sweep"]
