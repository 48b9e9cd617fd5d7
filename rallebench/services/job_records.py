"""Records of running jobs in ``cache/jobs``, from which a later program learns of work that ended with its process.

A process holds one lock for all its records. The operating system frees it when the process ends for any reason, so a record
with a free lock belongs to a job that was interrupted.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rallebench.core.errors import RalleError
from rallebench.core.files import read_json, write_json
from rallebench.core.json_values import JsonObject
from rallebench.core.locks import held
from rallebench.core.own_files import parse
from rallebench.core.types import Json

if TYPE_CHECKING:
    from filelock import FileLock

log = logging.getLogger(__name__)

FOLDER = "jobs"
MEND = "delete it"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as recorded. ``started``: seconds since 1970; ``detail``: the request, from which it is continued; {} if its place
    knows the request.
    """

    kind: str
    name: str
    started: float
    detail: Json = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.kind} {self.name}"


class JobRecords:
    """The records of a workspace. They never fail a job: without a writable folder nothing is recorded."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / FOLDER
        self._mark = secrets.token_hex(6)
        self._numbers = itertools.count(1)
        self._held: FileLock | None = None
        self._lock = threading.Lock()

    def add(self, kind: str, name: str, detail: JsonObject) -> Path | None:
        """Record a job that begins; return its file, or None if none can be written. It replaces interrupted jobs of its name."""
        record = JobRecord(kind, name, time.time(), detail)
        self.forget(record.id)
        path = self._folder / f"{self._mark}-{next(self._numbers)}.json"
        try:
            self._hold()
            write_json(
                path, {"kind": kind, "name": name, "started": record.started, "detail": detail}
            )
        except (OSError, RalleError) as error:
            log.info("The job %s is not recorded: %s", record.id, error)
            return None
        return path

    def _hold(self) -> None:
        from filelock import FileLock

        with self._lock:
            if self._held is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._held = FileLock(str(self._lock_file(self._mark)), thread_local=False)
                self._held.acquire(timeout=0)

    def close(self) -> None:
        """Free the lock at the end of the process: the remaining records are of interrupted jobs."""
        with self._lock:
            if self._held is not None:
                self._held.release()
            if not any(self._folder.glob(f"{self._mark}-*.json")):
                remove(self._lock_file(self._mark))

    def _lock_file(self, mark: str) -> Path:
        return self._folder / f"{mark}.lock"

    def _lost_files(self) -> Iterator[tuple[Path, JobRecord]]:
        alive = {self._mark: True}
        for path in sorted(self._folder.glob("*-*.json")):
            mark = path.name.partition("-")[0]
            if mark not in alive:
                alive[mark] = held(self._lock_file(mark))
            if alive[mark]:
                continue
            with contextlib.suppress(RalleError):  # a damaged record tells nothing
                yield path, parse(read_json(path), JobRecord, path, MEND)

    def list_interrupted(self) -> tuple[JobRecord, ...]:
        """Return the jobs that ended with their process, oldest first."""
        records = (record for _, record in self._lost_files())
        return tuple(sorted(records, key=lambda record: record.started))

    def forget(self, job: str) -> None:
        """Delete the records of interrupted jobs with this id."""
        for path, record in list(self._lost_files()):
            if record.id == job:
                remove(path)
                mark = path.name.partition("-")[0]
                if not any(self._folder.glob(f"{mark}-*.json")):
                    remove(self._lock_file(mark))


def remove(path: Path) -> None:
    """Delete a record, at the end of its job, or a lock."""
    with contextlib.suppress(OSError):
        path.unlink()
