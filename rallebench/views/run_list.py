"""The runs of a workspace as a list, with distinctive titles, renaming, and a bin from which runs can be restored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from rallebench.core.errors import BadFileError, RalleError, UsageError
from rallebench.core.folding import fold
from rallebench.core.own_folders import list_files
from rallebench.core.report import RunReport
from rallebench.core.run_results import RunSummary
from rallebench.core.runs import PreparedRun
from rallebench.core.types import Chain
from rallebench.engine.headline import deciding_metric
from rallebench.engine.run_files import RunState
from rallebench.engine.store import TITLE, RunFolder, checked_run_name, list_runs
from rallebench.metrics.recorded import IMPORTED
from rallebench.views.experiment_groups import plain_label
from rallebench.views.variants import difference_label
from rallebench.workspace.paths import WorkspaceFolder

HEADLINES = ("em", "all_rate", "f1", "accuracy")
"""Headline metrics, in order of preference; a run without any of them uses the metric that ranks such runs."""

_AUTOMATIC = re.compile(r"^(?P<base>.+)-\d{8}-\d{6}(-\d+)?$")
"""Pattern of a generated name, which ends with a time."""

_VARIANT = re.compile(r"^sweep-\d{8}-\d{6} (?P<label>.+)$")
"""Pattern of the name of a run in an unnamed sweep."""


class InBinError(UsageError):
    """The run is in the bin."""


def rows(workspace: WorkspaceFolder) -> list[RunSummary]:
    """Return all runs, newest first. A damaged one is listed with its problem."""
    return _describe_runs(workspace)[0]


def titles(workspace: WorkspaceFolder, works: Iterable[tuple[str, object]]) -> dict[str, str]:
    """Name → title of the runs of jobs, given by name and request. This includes runs whose folder does not exist
    yet or any more.
    """
    here, binned, first = _describe_runs(workspace)
    known = {row.name: row.title for row in (*binned, *here)}
    for name, work in works:
        if name not in known and isinstance(work, PreparedRun):
            request = work.request
            chain = request.flow.chain
            row = RunSummary(name, "", request.dataset.name, chain=chain)
            own = {chain.name: chain} if chain else {}
            known[name] = _add_title(row, {**own, **first}).title
    return known


def _describe_runs(
    workspace: WorkspaceFolder,
) -> tuple[list[RunSummary], list[RunSummary], dict[str, Chain]]:
    """Return the runs, the runs in the bin, and the first chain of each name. A run keeps its title when an earlier
    one goes into the bin.
    """
    runs, binned = list_runs(workspace.runs), _bin(workspace)
    described = {str(run.path): _row(str(run.path), _version(run)) for run in (*runs, *binned)}
    first: dict[str, Chain] = {}
    oldest_first = sorted(described.values(), key=lambda row: (row.created, row.name))
    for row in oldest_first:  # titles of later runs say how they differ from the first
        if row.chain is not None:
            first.setdefault(row.chain.name, row.chain)
    here = [_add_title(_with_state(described[str(run.path)], run.state()), first) for run in runs]
    return here, [_add_title(described[str(run.path)], first) for run in binned], first


def _bin(workspace: WorkspaceFolder) -> list[RunFolder]:
    files = list_files(workspace.run_bin, "*/run.json")
    return [RunFolder(file.parent) for file in files]


def run_row(workspace: WorkspaceFolder, name: str) -> RunSummary:
    """Return one row of the list. Raises UsageError."""
    here, binned, _ = _describe_runs(workspace)
    for row in here:
        if row.name == name:
            return row
    if gone := next((row for row in binned if row.name == name), None):
        raise InBinError(f"The run {gone.title!r} is in the bin; bring it back to read it.")
    raise UsageError(f"There is no run {name!r}; choose one of the list.")


def _version(run: RunFolder) -> tuple[int, ...]:
    """Key that changes with everything shown in the row."""
    files = (run.path / "run.json", run.path / "report.json", run.path / TITLE)
    return tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files)


@lru_cache(maxsize=4096)
def _row(path: str, version: tuple[int, ...]) -> RunSummary:
    run = RunFolder(Path(path))
    try:
        checked_run_name(run.name)
        stored = run.description()
        chain, report = stored.chain, run.report() or RunReport()
    except RalleError as error:
        return RunSummary(run.name, run.name, problem=str(error))
    metrics = report.estimates
    scored = [name for name, mean in metrics.items() if mean.value is not None]
    decided = report.headline or deciding_metric(scored)
    of_answers = (name for name in HEADLINES if name in scored)
    metric = next(of_answers, "") or decided or next(iter([*scored, *metrics]), "")
    return RunSummary(
        run.name,
        _own_title(run),
        stored.dataset,
        stored.spec.workflow,
        stored.created,
        "",
        report.n_done,
        report.n,
        report.n_errors,
        metric,
        metrics.get(metric),
        report.seconds_per_question,
        report.cost.total.usd if report.cost else None,
        chain,
        metrics.get("Rprec"),
    )


def _with_state(row: RunSummary, now: RunState) -> RunSummary:
    return replace(
        row,
        state=now.state,
        done=now.done or row.done,
        total=now.total or row.total,
        errors=now.errors or row.errors,
    )


def _add_title(row: RunSummary, first: Mapping[str, Chain]) -> RunSummary:
    """Add a title: the user's, or the run's own name, or the chain's name with the differences from its first run."""
    if row.title:
        return row
    if row.chain is not None and (variant := _VARIANT.match(row.name)):
        return replace(row, title=f"{row.chain.name} · {plain_label(variant['label'])}")
    automatic = _AUTOMATIC.match(row.name)
    if automatic is None:
        return replace(row, title=row.name)
    if row.chain is None:
        return replace(row, title=automatic["base"].removesuffix(f"-{row.dataset}"))
    different = difference_label(first[row.chain.name], row.chain)
    title = row.chain.name if different == "the same" else f"{row.chain.name} · {different}"
    return replace(row, title=title)


def _own_title(run: RunFolder) -> str:
    try:
        return run.title()
    except BadFileError:
        return f"{run.name} ({TITLE} was damaged by another program; rename the run)"


def in_bin(workspace: WorkspaceFolder) -> list[RunSummary]:
    return _describe_runs(workspace)[1]


def is_imported(row: RunSummary) -> bool:
    """Return whether another program predicted the answers."""
    return row.workflow == IMPORTED


def filter_rows(listed: Sequence[RunSummary], words: str, dataset: str) -> list[RunSummary]:
    """Return the runs of a dataset ("" for all) that have all words in their title, name, dataset or workflow."""
    terms = fold(words).split()
    return [
        row
        for row in listed
        if (not dataset or row.dataset == dataset)
        and all(w in fold(f"{row.title} {row.name} {row.dataset} {row.workflow}") for w in terms)
    ]
