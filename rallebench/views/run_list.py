"""The runs of a workspace as a list: titles that tell them apart, renaming, and a bin from which runs come back."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import Field

from rallebench.core.errors import BadFileError, RalleError, UsageError
from rallebench.core.files import write_json
from rallebench.core.folding import fold
from rallebench.core.own_files import Stored, read_stored
from rallebench.core.own_folders import listed
from rallebench.core.runs import PreparedRun
from rallebench.core.types import Chain
from rallebench.engine.headline import deciding_metric
from rallebench.engine.store import RunFolder, checked_run_name
from rallebench.engine.stored_runs import chain_of
from rallebench.metrics.recorded import IMPORTED
from rallebench.services.jobs import Job
from rallebench.services.workbench import Workbench
from rallebench.views.experiment_groups import plain_label
from rallebench.views.variants import difference_label

BIN = "bin"
TITLE, LONGEST_TITLE = "title.json", 200
HEADLINES = ("em", "all_rate", "f1", "accuracy")
"""The headline metric of a run: the first of these that it is scored by, else the one that decides between such runs."""

_AUTOMATIC = re.compile(r"^(?P<base>.+)-\d{8}-\d{6}(-\d+)?$")
"""A name that the program made: its time is at the end."""

_VARIANT = re.compile(r"^sweep-\d{8}-\d{6} (?P<label>.+)$")
"""The name of a run of a sweep that the user gave no name."""


class InBinError(UsageError):
    """The run is in the bin."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in the list. ``title``: the user's name for it, or what tells it from others; ``mean``: of ``metric``, as in
    the report, None before it is scored; ``precision``: its R-precision; ``created``: ISO time; ``state``: running, done, stopped, failed …"""

    name: str
    title: str
    dataset: str = ""
    workflow: str = ""
    created: str = ""
    state: str = ""
    done: int = 0
    total: int = 0
    errors: int = 0
    metric: str = ""
    mean: Mapping[str, Any] | None = None
    seconds: float | None = None
    usd: float | None = None
    chain: Chain | None = None
    precision: Mapping[str, Any] | None = None
    problem: str = ""


def rows(workbench: Workbench) -> list[RunRow]:
    """All runs, the newest first. A damaged one is in the list with its problem."""
    return _described(workbench)[0]


def titles(workbench: Workbench, jobs: Iterable[Job]) -> dict[str, str]:
    """Name → title of the runs of these jobs, also of a run whose folder is not there yet, or not any more."""
    here, binned, first = _described(workbench)
    known = {row.name: row.title for row in (*binned, *here)}
    for job in jobs:
        if job.name not in known and isinstance(job.identity, PreparedRun):
            request = job.identity.request
            chain = request.flow.chain
            row = RunRow(job.name, "", request.dataset.name, chain=chain)
            own = {chain.name: chain} if chain else {}
            known[job.name] = _titled(row, {**own, **first}).title
    return known


def _described(workbench: Workbench) -> tuple[list[RunRow], list[RunRow], dict[str, Chain]]:
    """The runs, those in the bin, and the first chain of each name. A run keeps its title when one before it goes into the bin."""
    runs, binned = workbench.runs.list(), _bin(workbench)
    described = {str(run.path): _row(str(run.path), _version(run)) for run in (*runs, *binned)}
    first: dict[str, Chain] = {}
    oldest_first = sorted(described.values(), key=lambda row: (row.created, row.name))
    for row in oldest_first:  # the titles of later runs say how they differ from it
        if row.chain is not None:
            first.setdefault(row.chain.name, row.chain)
    here = [_titled(_with_state(described[str(run.path)], run.state()), first) for run in runs]
    return here, [_titled(described[str(run.path)], first) for run in binned], first


def _bin(workbench: Workbench) -> list[RunFolder]:
    files = listed(workbench.workspace.path / BIN / "runs", "*/run.json")
    return [RunFolder(file.parent) for file in files]


def row_of(workbench: Workbench, name: str) -> RunRow:
    """One run of the list. Raises UsageError."""
    here, binned, _ = _described(workbench)
    for row in here:
        if row.name == name:
            return row
    if gone := next((row for row in binned if row.name == name), None):
        raise InBinError(f"The run {gone.title!r} is in the bin; bring it back to read it.")
    raise UsageError(f"There is no run {name!r}; choose one of the list.")


def _version(run: RunFolder) -> tuple[int, ...]:
    """A mark that changes with everything that the row shows."""
    files = (run.path / "run.json", run.path / "report.json", run.path / TITLE)
    return tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files)


@lru_cache(maxsize=4096)
def _row(path: str, version: tuple[int, ...]) -> RunRow:
    run = RunFolder(Path(path))
    try:
        checked_run_name(run.name)
        stored = run.spec()
        chain, report = chain_of(run, stored), run.report() or {}
    except RalleError as error:
        return RunRow(run.name, run.name, problem=str(error))
    spec = stored["spec"]
    metrics = {**report.get("metrics", {}), **report.get("suite", {})}
    scored = [name for name, mean in metrics.items() if mean.get("value") is not None]
    decided = str(report.get("headline") or "") or deciding_metric(scored)
    of_answers = (name for name in HEADLINES if name in scored)
    metric = next(of_answers, "") or decided or next(iter([*scored, *metrics]), "")
    cost = (report.get("cost") or {}).get("total") or {}
    return RunRow(
        run.name,
        _own_title(run.path),
        spec["dataset"],
        spec["workflow"],
        stored.get("created", ""),
        "",
        report.get("n_done", 0),
        report.get("n", 0),
        report.get("n_errors", 0),
        metric,
        metrics.get(metric),
        report.get("seconds_per_question"),
        cost.get("usd"),
        chain,
        metrics.get("Rprec"),
    )


def _with_state(row: RunRow, state: Mapping[str, Any]) -> RunRow:
    counts = {key: state.get(key) or getattr(row, key) for key in ("done", "total", "errors")}
    return replace(row, state=str(state.get("state", "")), **counts)


def _titled(row: RunRow, first: Mapping[str, Chain]) -> RunRow:
    """With a title: the user's, an own name as it is, else the chain's name and how it differs from the first of that name."""
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


class StoredTitle(Stored):
    """``title.json``."""

    title: str = Field(max_length=LONGEST_TITLE)


def _own_title(path: Path) -> str:
    if not (path / TITLE).exists():
        return ""
    try:
        return str(read_stored(path / TITLE, StoredTitle, "rename the run")["title"])
    except BadFileError:
        return f"{path.name} ({TITLE} was damaged by another program; rename the run)"


def rename(workbench: Workbench, name: str, title: str) -> None:
    """Give a run a title; its folder keeps its name, which experiments and MLflow know. Raises UsageError."""
    run, title = workbench.runs.open(name), " ".join(title.split())
    if len(title) > LONGEST_TITLE:
        raise UsageError(
            f"The name has more than {LONGEST_TITLE} characters; choose a shorter one."
        )
    if title:
        write_json(run.path / TITLE, {"title": title})
    else:
        (run.path / TITLE).unlink(missing_ok=True)


def delete(workbench: Workbench, name: str) -> None:
    """Move a run into the bin. Raises UsageError for one that is running."""
    run = workbench.runs.open(name)
    if run.state()["state"] in ("running", "scoring"):
        raise UsageError(f"The run {name!r} is running; stop it before you delete it.")
    folder = workbench.workspace.path / BIN / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / name).exists():
        raise UsageError(
            f"The bin holds another run {name!r}; empty the bin, or bring that run back first."
        )
    os.rename(run.path, folder / name)


def in_bin(workbench: Workbench) -> list[RunRow]:
    return _described(workbench)[1]


def restore(workbench: Workbench, name: str) -> None:
    """Bring a run back from the bin. Raises UsageError."""
    if name not in {run.name for run in _bin(workbench)}:
        raise UsageError(f"There is no run {name!r} in the bin.")
    target = workbench.workspace.runs / name
    if target.exists():
        raise UsageError(f"There is a run {name!r} already; delete or rename that one first.")
    os.rename(workbench.workspace.path / BIN / "runs" / name, target)


def empty_bin(workbench: Workbench) -> int:
    """Delete what is in the bin for good; returns how many runs."""
    binned = _bin(workbench)
    for run in binned:
        shutil.rmtree(run.path)
    return len(binned)


def is_imported(row: RunRow) -> bool:
    """Return whether the answers are another program's predictions."""
    return row.workflow == IMPORTED


def filtered(listed: Sequence[RunRow], words: str, dataset: str) -> list[RunRow]:
    """The runs of a dataset ("" all) that hold all words in their title, name, dataset or workflow."""
    terms = fold(words).split()
    return [
        row
        for row in listed
        if (not dataset or row.dataset == dataset)
        and all(w in fold(f"{row.title} {row.name} {row.dataset} {row.workflow}") for w in terms)
    ]
