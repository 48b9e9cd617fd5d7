"""The stored summaries of ended runs: one SQLite file, read at once when a list is opened for the first time."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.chains.saved import chain_from_json, chain_to_json
from rallebench.core.errors import RalleError
from rallebench.core.own_files import DAMAGE
from rallebench.core.report import Estimate
from rallebench.core.run_results import RunSummary
from rallebench.core.types import Chain, digest

log = logging.getLogger(__name__)

VERSION = 1
"""Changes with the form of a stored summary; a file of another version is replaced."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS runs (name TEXT PRIMARY KEY, summary TEXT, chain TEXT)",
    "CREATE TABLE IF NOT EXISTS chains (key TEXT PRIMARY KEY, chain TEXT)",
)
"""Many runs have the same chain, which is stored once."""
_PLAIN = (
    "dataset", "workflow", "created", "state", "done", "total", "errors", "metric", "seconds", "usd",
    "total_seconds", "prompt_tokens", "completion_tokens", "note",
)  # fmt: skip
"""Fields of a summary that JSON stores as they are."""


@dataclass(frozen=True, slots=True)
class CachedSummary:
    """A summary with the times of the run's folder and files when it was read."""

    changed: int
    files: tuple[int, ...]
    row: RunSummary


class RunCache:
    """The file of summaries. A file that cannot be read or written costs time, nothing else. ``writes``: False to leave
    the file as it is.
    """

    def __init__(self, path: Path, *, writes: bool = True) -> None:
        self._path, self._writes = path, writes

    def read(self) -> Iterator[CachedSummary]:
        """Yield the stored summaries."""
        if not self._path.is_file():
            return
        rows: Sequence[Sequence[str]] = ()
        chains: Mapping[str, str] = {}
        with suppress(sqlite3.Error), closing(self._connect()) as db:
            if db.execute("PRAGMA user_version").fetchone() == (VERSION,):
                rows = db.execute("SELECT name, summary, chain FROM runs").fetchall()
                chains = dict(db.execute("SELECT key, chain FROM chains").fetchall())
        with suppress(RalleError, *DAMAGE):
            read = {key: chain_from_json(json.loads(text)) for key, text in chains.items() if text}
            for name, summary, chain in rows:
                yield _summary(name, json.loads(summary), read[chain] if chain else None)

    def write(self, changed: Sequence[CachedSummary], gone: Collection[str]) -> None:
        """Store summaries, and remove those of runs that are gone."""
        if not self._writes or not (changed or self._path.is_file()):
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._connect()) as db, db:
                if db.execute("PRAGMA user_version").fetchone() != (VERSION,):
                    db.execute("DROP TABLE IF EXISTS runs")
                    db.execute("DROP TABLE IF EXISTS chains")
                    db.execute(f"PRAGMA user_version = {VERSION}")
                for table in _TABLES:
                    db.execute(table)
                removed = [(name,) for name in gone if _is_storable(name)]
                db.executemany("DELETE FROM runs WHERE name = ?", removed)
                for stored in changed:
                    if not _is_storable(stored.row.name):
                        continue
                    text = json.dumps(chain_to_json(stored.row.chain)) if stored.row.chain else ""
                    key = text and digest(text)[:24]
                    db.execute("INSERT OR IGNORE INTO chains VALUES (?, ?)", (key, text))
                    record = (stored.row.name, _summary_text(stored), key)
                    db.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", record)
        except (sqlite3.DatabaseError, OSError) as error:
            log.debug("%s was not written", self._path, exc_info=error)
            if type(error) is sqlite3.DatabaseError:  # no SQLite file
                with suppress(OSError):
                    self._path.unlink()

    def _connect(self) -> sqlite3.Connection:
        if self._writes:
            return sqlite3.connect(self._path, timeout=1.0)
        return sqlite3.connect(f"{self._path.as_uri()}?mode=ro&immutable=1", uri=True)


def _is_storable(name: str) -> bool:
    """Return whether SQLite can store the name of a folder, which may have bytes that are not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _summary_text(stored: CachedSummary) -> str:
    row = stored.row
    means = [[name, m.value, m.low, m.high, m.n] for name, m in row.metrics.items()]
    value = [
        stored.changed,
        stored.files,
        row.title,
        list(row.tags),
        [getattr(row, name) for name in _PLAIN],
        means,
    ]
    return json.dumps(value)


def _summary(name: str, value: Any, chain: Chain | None) -> CachedSummary:
    changed, files, title, tags, plain, means = value
    metrics = {mean[0]: Estimate(*mean[1:]) for mean in means}
    fields = dict(zip(_PLAIN, plain))
    row = RunSummary(
        name,
        title,
        mean=metrics.get(fields["metric"]),
        chain=chain,
        metrics=metrics,
        tags=tuple(tags),
        **fields,
    )
    return CachedSummary(changed, tuple(files), row)
