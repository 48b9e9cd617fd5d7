"""The runs of a workspace as a list, with distinctive titles, renaming, and a bin from which runs can be restored."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.experiment_reports import IMPROVE
from rallebench.core.experiments import FOLDER
from rallebench.core.run_results import RunSummary
from rallebench.core.run_titles import first_chains, run_title
from rallebench.core.runs import PreparedRun
from rallebench.core.types import Chain
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.metrics.recorded import IMPORTED
from rallebench.views.run_cache import RunCache
from rallebench.views.run_index import RunIndex, folder_times
from rallebench.workspace.paths import WorkspaceFolder
from rallebench.workspace.references import REFERENCES, read_references

CACHE = "runs.sqlite"
"""The file of stored summaries in the workspace's cache."""


class InBinError(UsageError):
    """The run is in the bin."""


def rows(workspace: WorkspaceFolder) -> Sequence[RunSummary]:
    """Return all runs, newest first. A damaged one is listed with its problem."""
    return _describe_runs(workspace).here


def titles(workspace: WorkspaceFolder, works: Iterable[tuple[str, object]]) -> dict[str, str]:
    """Name → title of the runs of jobs, given by name and request. This includes runs whose folder does not exist
    yet or any more.
    """
    described = _describe_runs(workspace)
    known, first = dict(described.titles), described.first
    for name, work in works:
        if name not in known and isinstance(work, PreparedRun):
            request = work.request
            chain = request.flow.chain
            row = RunSummary(name, "", request.dataset.name, chain=chain)
            own = {chain.name: chain} if chain else {}
            known[name] = _add_title(row, {**own, **first}).title
    return known


@dataclass(frozen=True, slots=True)
class _Described:
    """The runs, the runs in the bin, the first chain of each name, and name → title of all runs."""

    here: tuple[RunSummary, ...]
    binned: tuple[RunSummary, ...]
    first: Mapping[str, Chain]
    titles: Mapping[str, str]


@dataclass(slots=True)
class _Lists:
    """The indexes of a workspace, and the last description with everything on which it depends."""

    runs: RunIndex
    binned: RunIndex
    depends: tuple[object, ...] = ()
    described: _Described | None = None


_LISTS: weakref.WeakKeyDictionary[WorkspaceFolder, _Lists] = weakref.WeakKeyDictionary()


def _lists(workspace: WorkspaceFolder) -> _Lists:
    if workspace not in _LISTS:
        cache = RunCache(workspace.cache / CACHE, writes=not workspace.read_only)
        _LISTS[workspace] = _Lists(RunIndex(workspace.runs, cache), RunIndex(workspace.run_bin))
    return _LISTS[workspace]


@contextmanager
def reading_once() -> Iterator[None]:
    """A block that changes no run: within it the folders are scanned once, however often the runs are listed."""
    if _SCANNED.get() is not None:  # a block inside another
        yield
        return
    token = _SCANNED.set({})
    try:
        yield
    finally:
        _SCANNED.reset(token)


_SCANNED: ContextVar[dict[WorkspaceFolder, _Described] | None] = ContextVar("scanned", default=None)


def _describe_runs(workspace: WorkspaceFolder) -> _Described:
    """Return the runs of a workspace; see ``reading_once``."""
    scanned = _SCANNED.get()
    if scanned is None:
        return _scan(workspace)
    if workspace not in scanned:
        scanned[workspace] = _scan(workspace)
    return scanned[workspace]


def _scan(workspace: WorkspaceFolder) -> _Described:
    """Return the runs with titles that tell them apart, the same value as before if nothing has changed. A run keeps its
    title when an earlier one goes into the bin.
    """
    lists = _lists(workspace)
    here, binned = lists.runs.rows(), lists.binned.rows()
    starred, experiments = _references(workspace), _experiments(workspace)
    described, depends = lists.described, (here, binned, starred, experiments)
    if described is not None and all(a is b for a, b in zip(lists.depends, depends)):
        return described
    first = first_chains((row.created, row.name, row.chain) for row in (*here, *binned))
    references, of_runs = set(starred.items()), experiments
    store = ExperimentStore(workspace.path)
    improvements = {name for name in {*of_runs.values()} if store.find_kind(name) == IMPROVE}
    listed = tuple(
        replace(
            _add_title(row, first),
            experiment=of_runs.get(row.name, ""),
            is_contender=of_runs.get(row.name, "") in improvements,
            is_reference=(row.dataset, row.name) in references,
        )
        for row in here
    )
    gone = tuple(_add_title(row, first) for row in binned)
    titles = {row.name: row.title for row in (*gone, *listed)}
    lists.described = _Described(listed, gone, first, titles)
    lists.depends = depends
    return lists.described


def _references(workspace: WorkspaceFolder) -> Mapping[str, str]:
    """Return dataset → reference run; none if the file is damaged, which ``references_problem`` reports."""
    file = workspace.path / REFERENCES
    return _read_references(str(workspace.path), file.stat().st_mtime_ns if file.exists() else 0)


@lru_cache(maxsize=16)
def _read_references(workspace: str, version: int) -> Mapping[str, str]:
    try:
        return read_references(Path(workspace))
    except BadFileError:
        return {}


def references_problem(workspace: WorkspaceFolder) -> str:
    """Return why the starred runs cannot be read; "" if they can."""
    try:
        read_references(workspace.path)
    except BadFileError as error:
        return str(error)
    return ""


def _experiments(workspace: WorkspaceFolder) -> Mapping[str, str]:
    """Return run → its experiment."""
    return _runs_of_experiments(
        str(workspace.path), tuple(sorted(folder_times(workspace.path / FOLDER).items()))
    )


@lru_cache(maxsize=16)
def _runs_of_experiments(workspace: str, times: tuple[tuple[str, int], ...]) -> Mapping[str, str]:
    return {run: name for name, time in times for run in _runs_of_experiment(workspace, name, time)}


@lru_cache(maxsize=4096)
def _runs_of_experiment(workspace: str, name: str, time: int) -> tuple[str, ...]:
    return tuple(ExperimentStore(Path(workspace)).run_names(name).values())


def run_row(workspace: WorkspaceFolder, name: str) -> RunSummary:
    """Return one row of the list. Raises UsageError."""
    described = _describe_runs(workspace)
    for row in described.here:
        if row.name == name:
            return row
    if gone := next((row for row in described.binned if row.name == name), None):
        raise InBinError(f"The run {gone.title!r} is in the bin; bring it back to read it.")
    raise UsageError(f"There is no run {name!r}; choose one of the list.")


def _add_title(row: RunSummary, first: Mapping[str, Chain]) -> RunSummary:
    before = first.get(row.chain.name) if row.chain else None
    own = f"{row.name} ({row.damage})" if row.damage else row.title
    return replace(row, title=run_title(row.name, row.dataset, row.chain, before, own))


def in_bin(workspace: WorkspaceFolder) -> Sequence[RunSummary]:
    return _describe_runs(workspace).binned


def reference(workspace: WorkspaceFolder, dataset: str) -> RunSummary | None:
    """Return the starred run of a dataset; None if there is none."""
    starred = _references(workspace).get(dataset)
    return next(
        (row for row in rows(workspace) if row.name == starred and row.dataset == dataset), None
    )


def is_imported(row: RunSummary) -> bool:
    """Return whether another program predicted the answers."""
    return row.workflow == IMPORTED
