"""Caveats about comparing the times of runs, which say little if runs overlapped or reused earlier answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rallebench.core.errors import RalleError
from rallebench.core.own_folders import list_files
from rallebench.core.report import RunReport
from rallebench.engine.store import REPORT, RUN, RunFolder

REPLAYED = "The reply cache gave answers of these runs; their times are those of the first time and are not compared."
IN_PARALLEL = "Other runs went on at the same time and shared the machine with these, so times are not compared."
Window = tuple[float, float]
"""(start, end) in seconds since 1970."""


def timing_notes(runs: Sequence[RunFolder]) -> list[str]:
    """Return one sentence per reason why the times cannot be compared: answers came from the reply cache, or another
    run was active at the same time.
    """
    notes = []
    if any(report.is_replayed for run in runs if (report := run.report())):
        notes.append(REPLAYED)
    if any(_has_company(run) for run in runs):
        notes.append(IN_PARALLEL)
    return notes


def _has_company(run: RunFolder) -> bool:
    """Return whether another run of the workspace was active at the same time."""
    own = run_window(run)
    if own is None:
        return False
    for file in list_files(run.path.parent, f"*/{RUN}"):
        other = RunFolder(file.parent)
        # A run whose files were last written before this run began cannot have overlapped it.
        last = max(path.stat().st_mtime for path in (file, other.path / REPORT) if path.exists())
        if other.path == run.path or last < own[0]:
            continue
        window = run_window(other)
        if window is not None and window[0] < own[1] and own[0] < window[1]:
            return True
    return False


def run_window(run: RunFolder) -> Window | None:
    """Return the start and end of a run; None if unknown. A resumed run counts with its first session only."""
    try:
        began = datetime.fromisoformat(run.description().created).timestamp()
        seconds = (run.report() or RunReport()).seconds or 0.0
    except (RalleError, ValueError):
        return None
    return began, began + seconds
