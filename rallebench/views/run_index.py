"""Summaries of all runs of a folder, read again only where files have changed.

A list of 10,000 runs must not open 30,000 files each time. Every file of a summary is replaced as a whole, which changes
the time of its folder, so one scan of the folders finds the changed ones. Another program may write into a file in place;
therefore the files of some more runs are compared on each reading, in turn. The summaries of ended runs are also stored in
``cache/runs.sqlite``, which can be deleted at any time.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rallebench.core.errors import BadFileError, RalleError
from rallebench.core.memory import pause_collector
from rallebench.core.own_folders import is_listed
from rallebench.core.report import RunReport
from rallebench.core.run_results import RunSummary
from rallebench.engine.headline import deciding_metric
from rallebench.engine.run_marks import MARKS, RunMarks, read_marks
from rallebench.engine.store import REPORT, RUN, STATE, TITLE, RunFolder, checked_run_name
from rallebench.views.run_cache import CachedSummary, RunCache

FILES = (RUN, REPORT, TITLE, STATE, MARKS)
"""The files of a summary."""
CHECKED_AGAIN = 300
"""Runs whose files are compared on each reading although their folders have not changed."""
SETTLED_NS = 2_000_000_000
"""A folder that changed more recently may change again within the resolution of its time."""
HEADLINES = ("em", "all_rate", "f1", "accuracy")
"""Headline metrics, in order of preference; a run without any of them uses the metric that ranks such runs."""
_ENDED = ("done", "stopped", "failed")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A folder of ``runs/``. ``changed``: the time of the folder, 0 if it must be read again; ``files``: the times of
    its files; ``row``: None if it holds no run; ``title``: the user's title.
    """

    changed: int
    files: tuple[int, ...]
    row: RunSummary | None


class RunIndex:
    """The summaries of the runs below one folder. Threads may share it."""

    def __init__(self, folder: Path, cache: RunCache | None = None) -> None:
        self._folder, self._cache = folder, cache
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.Lock()
        self._turn, self._is_first = 0, True
        self._rows: tuple[RunSummary, ...] = ()

    def rows(self) -> tuple[RunSummary, ...]:
        """Return all runs, the newest first; the same tuple as before if nothing has changed. A title is "" unless the
        user chose one.
        """
        with self._lock, pause_collector():
            is_first, self._is_first = self._is_first, False
            if is_first and self._cache is not None:
                self._take_stored(self._cache)
            if self._read_changes() or is_first:
                rows = [(e.files[0], e.row) for e in self._entries.values() if e.row]
                rows.sort(key=lambda pair: (-pair[0], pair[1].name))
                self._rows = tuple(row for _, row in rows)
            return self._rows

    def _take_stored(self, cache: RunCache) -> None:
        for stored in cache.read():
            entry = _Entry(stored.changed, stored.files, stored.row)
            self._entries[stored.row.name] = entry

    def _read_changes(self) -> bool:
        """Read what has changed; return whether anything has."""
        now, before = time.time_ns(), self._entries
        here = folder_times(self._folder)
        again = set(self._next_in_turn(list(here)))
        entries: dict[str, _Entry] = {}
        written: list[_Entry] = []
        for name, changed in here.items():
            entry = before.get(name)
            stale = entry is None or entry.changed != changed
            if entry is not None and (stale or name in again):
                times = _file_times(self._folder / name)
                stale = times != entry.files or _is_active(entry)
                if not stale:
                    entry = replace(entry, changed=_trusted_time(changed, now))
            if entry is None or stale:
                entry = self._read(name, _trusted_time(changed, now))
                if before.get(name) is None or entry != before[name]:
                    written.append(entry)
            entries[name] = entry
        gone = before.keys() - entries.keys()
        self._entries = entries
        if self._cache is not None and (written or gone):
            self._cache.write([_cache_record(e) for e in written if _is_ended(e)], gone)
        return bool(written or gone)

    def _next_in_turn(self, names: Sequence[str]) -> Sequence[str]:
        if len(names) <= CHECKED_AGAIN:
            return names
        start = self._turn % len(names)
        self._turn = start + CHECKED_AGAIN
        return names[start : start + CHECKED_AGAIN]

    def _read(self, name: str, changed: int) -> _Entry:
        path = self._folder / name
        times = _file_times(path)
        if not is_listed(path / RUN):
            return _Entry(changed, times, None)
        row = read_summary(RunFolder(path))
        entry = _Entry(changed, times, row)
        return replace(entry, changed=0) if _is_active(entry) else entry


def folder_times(folder: Path) -> dict[str, int]:
    """Return name → time of the visible folders in a folder."""
    times: dict[str, int] = {}
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if not entry.name.startswith("."):
                    times[entry.name] = entry.stat().st_mtime_ns
    return times


def _file_times(folder: Path) -> tuple[int, ...]:
    return tuple(_time(f"{folder}/{name}") for name in FILES)


def _time(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _trusted_time(changed: int, now: int) -> int:
    return changed if now - changed > SETTLED_NS else 0


def _is_active(entry: _Entry) -> bool:
    return entry.row is not None and entry.row.state in ("running", "scoring")


def _is_ended(entry: _Entry) -> bool:
    row = entry.row
    return row is not None and row.state in _ENDED and not row.problem and not row.damage


def _cache_record(entry: _Entry) -> CachedSummary:
    assert entry.row is not None
    return CachedSummary(entry.changed, entry.files, entry.row)


def read_summary(run: RunFolder) -> RunSummary:
    """Return a run as a row, with its ``problem`` if it is damaged."""
    try:
        checked_run_name(run.name)
        stored = run.description()
        chain, report = stored.chain, run.report() or RunReport()
    except RalleError as error:
        return RunSummary(run.name, run.name, problem=str(error))
    metrics, now = report.estimates, run.state()
    title, marks, damage = _own_words(run)
    metric = _headline(report)
    return RunSummary(
        run.name,
        title,
        stored.dataset,
        stored.spec.workflow,
        stored.created,
        now.state,
        now.done or report.n_done,
        now.total or report.n,
        now.errors or report.n_errors,
        metric,
        metrics.get(metric),
        report.seconds_per_question,
        report.cost.total.usd if report.cost else None,
        chain,
        metrics=metrics,
        total_seconds=report.seconds,
        prompt_tokens=report.prompt_tokens,
        completion_tokens=report.completion_tokens,
        tags=marks.tags,
        note=marks.note,
        damage=damage,
        decided=str(report.decided or ""),
    )


def _headline(report: RunReport) -> str:
    metrics = report.estimates
    scored = [name for name, mean in metrics.items() if mean.value is not None]
    decided = report.headline or deciding_metric(scored)
    of_answers = (name for name in HEADLINES if name in scored)
    return next(of_answers, "") or decided or next(iter([*scored, *metrics]), "")


def _own_words(run: RunFolder) -> tuple[str, RunMarks, str]:
    """Return the user's title, tags and note, and a sentence about a damaged file of them."""
    title, marks, damage = "", RunMarks(), ""
    try:
        title = run.title()
    except BadFileError:
        damage = f"{TITLE} was damaged by another program; rename the run"
    try:
        marks = read_marks(run)
    except BadFileError:
        damage = damage or f"{MARKS} was damaged by another program; tag the run again"
    return title, marks, damage
