"""The memory of indexes and their milliseconds a query, as runs and trade-offs measured them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from rallebench.core.errors import RalleError
from rallebench.core.experiment_reports import TradeoffReport
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.engine.store import list_runs
from rallebench.workspace.paths import WorkspaceFolder

MOST_READ = 30
"""Runs, newest first, that are searched for measurements."""


@dataclass(frozen=True, slots=True)
class IndexUse:
    """``memory``: bytes; ``ms``: median milliseconds of a query, encoding included. None: not measured. ``source``: where
    the time was measured."""

    memory: int | None = None
    ms: float | None = None
    source: str = ""
    memory_source: str = ""


def index_use(workspace: WorkspaceFolder, loaded: Mapping[str, int]) -> dict[str, IndexUse]:
    """Retriever → its memory and time. ``loaded``: the bytes of those that are loaded now; these come first, then the
    trade-offs, then the newest runs."""
    known = {name: IndexUse(ram, memory_source="loaded now") for name, ram in loaded.items()}
    for name, use in (*_of_tradeoffs(workspace), *_of_runs(workspace)):
        old = known.get(name, IndexUse())
        if old.memory is None:
            old = replace(old, memory=use.memory, memory_source=use.source)
        if old.ms is None:
            old = replace(old, ms=use.ms, source=use.source)
        known[name] = old
    return known


def _of_tradeoffs(workspace: WorkspaceFolder) -> Iterator[tuple[str, IndexUse]]:
    store = ExperimentStore(workspace.path)
    for name in store.names(("tradeoff",)):
        with suppress(RalleError):
            report = store.open(name).report
            points = report.points if isinstance(report, TradeoffReport) else ()
            for point in points:
                if not point.error and not point.knobs:
                    taken = [ms for ms in (point.single_ms, point.encode_ms) if ms is not None]
                    ms = sum(taken) if point.single_ms is not None else None
                    yield point.index, IndexUse(point.ram, ms, f"the trade-off {name}")


def _of_runs(workspace: WorkspaceFolder) -> Iterator[tuple[str, IndexUse]]:
    for run in list_runs(workspace.runs)[:MOST_READ]:
        with suppress(RalleError, OSError):
            report = run.report()
            held = run.description().memory or {}
            actions = report.cost.per_action if report and report.cost else ()
            for action in actions:
                if action.kind == "retrieve" and action.target:
                    memory = held.get(action.target)
                    median = action.seconds.median
                    ms = None if median is None else 1000 * median
                    size = memory.ram if memory else None
                    yield action.target, IndexUse(size, ms, f"the run {run.name}")
