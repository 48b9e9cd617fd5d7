"""Jobs: work in background threads that a page can follow, leave, find again and stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Literal, TypeVar, Union

from rallebench.core.errors import BackendError, RalleError, StoppedError, UsageError
from rallebench.core.events import Event, Progress, Warned
from rallebench.core.json_values import JsonObject
from rallebench.core.stopping import Stop, obey
from rallebench.services.job_records import JobRecord, JobRecords, remove
from rallebench.services.pace import JobStanding, Pace, standing

log = logging.getLogger(__name__)

T = TypeVar("T")

JobEvent = Union[Event, str]
"""An event of a job; loads and builds tell their progress as text."""
JobWork = Generator[JobEvent, None, object]

Status = Literal["running", "stopping", "finished", "stopped", "failed"]


@dataclass(eq=False)
class Job:
    """One piece of background work. Every follower receives its events from the beginning.

    Of consecutive progress events with the same task and message, only the newest is kept.

    ``kind``: its noun in sentences ("sweep"); ``identity``: distinguishes its work from other work of the same name.
    """

    kind: str
    name: str
    identity: object = None
    failure: str = ""
    result: object = None
    error: RalleError | None = None
    started: float = field(default_factory=time.time)
    ended: float | None = None
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self.failure = self.failure or f"The {self.kind} of {self.name!r} failed"
        self._events: dict[int, JobEvent] = {}  # number (from 1) → event, in order
        self._count = 0
        self._tasks: dict[str, JobEvent] = {}
        self._paces: dict[str, Pace] = {}
        self._message = ""
        self._warnings: dict[str, None] = {}
        self._change = threading.Condition()
        self._stop, self._hang_up = threading.Event(), Stop()
        self._on_stop: Callable[[], None] | None = None

    # for the work itself

    def publish(self, event: JobEvent) -> None:
        """Add an event and wake all followers; progress replaces the previous event if task and message are the
        same.
        """
        with self._change:
            if isinstance(event, Progress):
                before = self._events.get(self._count)
                if isinstance(before, Progress) and (before.task, before.message) == (
                    event.task,
                    event.message,
                ):
                    del self._events[self._count]
                self._message = event.message or self._message
                if event.total:
                    pace = self._paces.setdefault(event.task, Pace())
                    pace.count(event.done, event.total, self.clock())
            elif isinstance(event, Warned):
                self._warnings[event.message] = None
            self._count += 1
            self._events[self._count] = event
            self._tasks[getattr(event, "task", "")] = event
            self._change.notify_all()

    def check(self) -> None:
        """Raise StoppedError if a stop was requested."""
        if self.stopping:
            raise StoppedError(
                f"The {self.kind} of {self.name!r} was stopped; start it again to continue."
            )

    def stop_by(self, ask: Callable[[], None]) -> None:
        """Make ``stop`` call ``ask`` instead of ending the job at its next event; the work must then end by itself."""
        with self._change:
            self._on_stop = ask
        if self.stopping:
            ask()

    # for callers

    @property
    def id(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def work(self) -> Stop:
        """The stop signal of the job's threads, which identifies their requests."""
        return self._hang_up

    @property
    def stopping(self) -> bool:
        """True if a stop was requested, even after the job has finished."""
        return self._stop.is_set()

    @property
    def done(self) -> bool:
        return self.ended is not None

    @property
    def status(self) -> Status:
        with self._change:
            if not self.done:
                return "stopping" if self.stopping else "running"
            if self.error is None:
                return "finished"
            return "stopped" if isinstance(self.error, StoppedError) else "failed"

    @property
    def newest(self) -> JobEvent:
        """The newest event; '' before the first."""
        with self._change:
            return self._events.get(self._count, "")

    @property
    def message(self) -> str:
        """The newest progress message; '' before the first."""
        return self._message

    @property
    def warning(self) -> str:
        """All warnings, each once; '' if there are none."""
        with self._change:
            return " ".join(self._warnings)

    @property
    def tasks(self) -> dict[str, JobEvent]:
        """Task → its newest event, in the order the tasks started."""
        with self._change:
            return dict(self._tasks)

    @property
    def standing(self) -> JobStanding | None:
        """Progress of the outermost task; None while the total is unknown."""
        with self._change:
            counts = [event for event in self._tasks.values() if isinstance(event, Progress)]
            outer = min(map(_depth, counts), default=0)
            newest = [event for event in counts if _depth(event) == outer][-1:]
            for event in newest if not self.done else ():
                if pace := self._paces.get(event.task):
                    return standing(event, pace, self.clock())
        return None

    @property
    def version(self) -> int:
        """Counter that increases with every change."""
        with self._change:
            return self._count + self.stopping + self.done

    def result_as(self, kind: type[T]) -> T | None:
        """Return the result, which is a ``kind``; None before the end and for failed work."""
        assert self.result is None or isinstance(self.result, kind)
        return self.result

    def events(self) -> list[JobEvent]:
        with self._change:
            return list(self._events.values())

    def stop(self) -> None:
        """Request a stop: the job ends at its next event and no longer waits for servers. ``stop_by`` replaces this
        behaviour.
        """
        with self._change:
            self._stop.set()
            ask = self._on_stop or self._hang_up.set
        ask()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait up to ``seconds`` for the job; return whether it has finished."""
        with self._change:
            return self._change.wait_for(lambda: self.done, seconds)

    def follow(self) -> Iterator[JobEvent]:
        """Yield the job's events; raise the RalleError that ended it."""
        seen = 0
        while True:
            with self._change:
                self._change.wait_for(lambda: self.done or self._count > seen)  # noqa: B023
                newer = takewhile(lambda number: number > seen, reversed(self._events))  # noqa: B023
                events, done = [self._events[number] for number in newer], self.done
                seen = self._count
            yield from reversed(events)
            if done:
                if self.error is not None:
                    raise self.error
                return

    # for the manager

    def run(self, operation: JobWork) -> None:
        """Do the work in the calling thread."""
        result, error = None, None
        obey(self._hang_up)
        try:
            with closing(operation):
                while True:
                    try:
                        event = next(operation)
                    except StopIteration as end:
                        result = end.value
                        break
                    self.publish(event)
                    if self._on_stop is None:
                        self.check()
        except RalleError as raised:
            error = raised
        except BaseException as raised:  # a job must end, whatever happens
            log.exception("%s", self.failure)
            error = self.bug_error(raised)
        self._end(result, error)

    def bug_error(self, error: BaseException) -> BackendError:
        """Return an error that describes a bug."""
        return BackendError(f"{self.failure}: {type(error).__name__}: {str(error)[:300]}")

    def _end(self, result: object, error: RalleError | None) -> None:
        with self._change:
            self.result, self.error, self.ended = result, error, time.time()
            self._on_stop = None  # its frames may hold all data of the work
            self._change.notify_all()


def _depth(event: Progress) -> int:
    """Depth of an event's task below the whole work, whose task is ""."""
    return event.task.count("/") + 1 if event.task else 0


def start_thread(work: Callable[[], object], name: str) -> None:
    """Start a daemon thread. Raises RuntimeError if the machine has no more threads."""
    threading.Thread(target=work, name=name, daemon=True).start()


class JobManager:
    """All jobs of a workbench.

    A finished job stays until it is forgotten, or until another of its kind and name starts, so that its outcome can
    still be read.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._superseded: tuple[Job, ...] = ()
        self._closed = False
        self._lock = threading.RLock()
        self._records: JobRecords | None = None

    def record_in(self, cache: Path) -> None:
        """Record jobs from now on, so that a later program can tell which ended with this one."""
        self._records = JobRecords(cache)

    def submit(
        self,
        kind: str,
        name: str,
        identity: object,
        work: Callable[[Job], JobWork],
        *,
        failure: str = "",
        anew: bool = False,
        record: JsonObject | None = None,
    ) -> Job:
        """Start ``work(job)`` in a thread, or return the job that is already doing this work. Returns at once.

        Raises UsageError if a job of that kind and name does other work, or after ``close``. Errors raised by
        ``work(job)`` itself pass through, and no job is created. ``failure``: start of the message about an
        unexpected error. ``anew``: do not join a job that is stopping. ``record``: the request, from which a later program
        can continue the job; None if it leaves nothing to continue.
        """
        job = Job(kind, name, identity, failure)
        with self._lock:
            if self._closed:
                raise UsageError("The workbench is closed; start rallebench again for more work.")
            active = self._jobs.get(job.id)
            if active is not None and not active.done and not (active.stopping and anew):
                if active.identity == identity:
                    return active
                raise UsageError(
                    f"Another {kind} is making {name!r} now; wait for its end or choose another name."
                )
            operation = work(job)
            try:
                start_thread(partial(self._run, job, operation, record), job.id)
            except RuntimeError as error:  # the machine has no more threads
                raise job.bug_error(error) from error
            going = (*self._superseded, *([active] if active else ()))
            self._superseded = tuple(old for old in going if not old.done)
            self._jobs.pop(job.id, None)
            self._jobs[job.id] = job
        return job

    def _run(self, job: Job, operation: JobWork, record: JsonObject | None) -> None:
        """Do the work of a job. Its record stays if the program ends before the work."""
        path = None
        if self._records is not None and record is not None:
            path = self._records.add(job.kind, job.name, record)
        job.run(operation)
        if path is not None and not (self._closed and job.status == "stopped"):
            remove(path)

    def list_interrupted(self) -> tuple[JobRecord, ...]:
        """Return the recorded jobs that ended with an earlier program, and that no job has continued; oldest first."""
        if self._records is None:
            return ()
        with self._lock:
            return tuple(r for r in self._records.list_interrupted() if r.id not in self._jobs)

    def get(self, kind: str, name: str) -> Job | None:
        """Return the job of that kind and name; None if there is none."""
        return self._jobs.get(f"{kind} {name}")

    def list(self, kind: str = "", *, active: bool = False) -> tuple[Job, ...]:
        """Return all jobs, newest last. ``kind``: only this kind; ``active``: only unfinished jobs."""
        with self._lock:
            superseded = (job for job in self._superseded if not job.done)
            jobs = (*superseded, *self._jobs.values())
        return tuple(job for job in jobs if kind in ("", job.kind) and not (active and job.done))

    def stop(self, job: str) -> None:
        """Ask the job with this id to stop. Raises UsageError if there is none."""
        known = self._jobs.get(job)
        if known is None:
            raise UsageError(f"There is no job {job!r}.")
        known.stop()

    def forget(self, job: str) -> None:
        """Drop a finished or interrupted job; unknown and active jobs are left alone."""
        with self._lock:
            known = self._jobs.get(job)
            if known is not None and known.done:
                del self._jobs[job]
        if known is None and self._records is not None:
            self._records.forget(job)

    def close(self, patience: float) -> None:
        """Accept no more jobs, stop all, and wait up to ``patience`` seconds for them to end."""
        with self._lock:
            self._closed = True
        jobs = self.list(active=True)
        for job in jobs:
            job.stop()
        wait(jobs, patience)
        if self._records is not None:
            self._records.close()


def wait(jobs: Iterable[Job], seconds: float) -> None:
    """Wait up to ``seconds`` until all these jobs have finished."""
    deadline = time.monotonic() + seconds
    for job in jobs:
        job.wait(max(0.0, deadline - time.monotonic()))


def job_pieces(job: Job, kind: type[T]) -> Iterator[JobEvent | T]:
    """Yield all events of a job, then its result, a ``kind``; raise the RalleError that ended it."""
    yield from job.follow()
    result = job.result_as(kind)
    assert result is not None, "a job without an error has a result"
    yield result
