"""The queue of loads. Each load reports its progress, can be cancelled, and waits for its turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from rallebench.core.entries import Combination, LLMEntry
from rallebench.core.errors import NotFoundError, RalleError, StoppedError
from rallebench.core.events import Operation
from rallebench.core.memory import Memory
from rallebench.services.jobs import Job, JobManager
from rallebench.services.side_by_side import SideBySide

LOOK = 0.05
"""Seconds between checks while waiting for a turn."""
PAGE_CANCEL_SECONDS, COMMAND_CANCEL_SECONDS = 2.0, 10.0
"""Seconds that a page, or the command line, waits for a cancelled load before continuing without it."""


@dataclass(eq=False)
class LoadJob:
    """One load, from request to end, shared by everyone who requests it.

    ``parts``: (name, kind) of its components. ``requested``: True if a user asked for it, not only a larger load.
    ``waiting``: True before its turn; ``before``: the memory of this process when its turn came. ``beside``: shared
    by loads that may run at the same time; None if it runs alone.
    """

    name: str
    kind: str
    entry: LLMEntry | Combination | None
    parts: list[tuple[str, str]]
    beside: SideBySide | None = None
    job: Job = field(init=False)
    requested: bool = False
    waiting: bool = True
    before: Memory = field(default_factory=Memory)

    @property
    def cancelled(self) -> bool:
        """True if a cancel was requested."""
        return self.job.stopping

    def cancel(self, message: str) -> None:
        """Request an end at the next safe point; ``message`` goes to all followers."""
        self.job.stop()
        self.job.publish(message)

    def check(self) -> None:
        """Raise StoppedError, which ends the load, if it was cancelled."""
        if self.cancelled:
            raise StoppedError(f"Loading {self.name} was cancelled.")

    def tell(self, message: str) -> None:
        """Report a message ('' for none); raises StoppedError, which ends the load, if it was cancelled."""
        self.check()
        if message and self.beside is not None and not self.waiting:
            self.beside.tell(self, message)
        elif message:
            self.publish(message)

    def publish(self, message: str) -> None:
        """Send a message to all followers."""
        self.job.publish(message)

    @property
    def message(self) -> str:
        return str(self.job.newest)

    def cancellation(self) -> str:
        """The sentence that announces the cancelled load's end."""
        if self.waiting:
            return f"Loading {self.name} was cancelled before its turn came; nothing was loaded."
        return (
            f"Loading {self.name} was cancelled and its memory given back: this process holds "
            f"{Memory.now()}, before the load {self.before}."
        )


class LoadQueue:
    """The loads of a workbench: jobs that run one at a time in order of request, or concurrently.

    ``lock``: the lock of the table of loaded items. ``outcomes``: name → how its last load or unload ended, newest
    last.
    """

    def __init__(self, jobs: JobManager, lock: threading.RLock) -> None:
        self.outcomes: dict[str, str | RalleError] = {}
        self._jobs, self._lock = jobs, lock
        self._loading: dict[str, LoadJob] = {}
        self._waiting: list[LoadJob] = []
        self._running: list[LoadJob] = []

    def loads(self) -> dict[str, LoadJob]:
        """Return all running and waiting loads, in order of request."""
        with self._lock:
            return dict(self._loading)

    def get(self, name: str) -> LoadJob | None:
        """Return the running or waiting load of that name, unless it was cancelled."""
        load = self._loading.get(name)
        return None if load is None or load.cancelled else load

    def begin(self, load: LoadJob, work: Callable[[LoadJob], Operation[None]]) -> None:
        """Start ``work(load)`` as a job. Raises RalleError."""

        def begin(job: Job) -> Operation[None]:
            load.job = job
            return work(load)

        with self._lock:
            if not load.parts:  # a combination joins the queue after its parts are loaded
                self._waiting.append(load)
            failure = f"{load.name} could not be loaded"
            try:
                self._jobs.submit("load", load.name, load.kind, begin, failure=failure, anew=True)
            except BaseException:
                self._leave(load)
                raise
            self._loading.pop(load.name, None)
            self._loading[load.name] = load
            self.outcomes.pop(load.name, None)

    def end(self, load: LoadJob, error: BaseException | None) -> bool:
        """Remove a load from the queue; return False if a newer load of its name has replaced it.

        A load that ended before its turn no longer delays those behind it.
        """
        with self._lock:
            self._leave(load)
            if self._loading.get(load.name) is not load:
                return False
            del self._loading[load.name]
            if isinstance(error, RalleError):
                self.outcomes[load.name] = error
            elif isinstance(error, Exception):
                self.outcomes[load.name] = load.job.bug_error(error)
            return True

    @contextmanager
    def wait_turn(self, load: LoadJob) -> Iterator[None]:
        """Wait for all earlier loads except those it may run beside. A cancelled load leaves the queue
        (StoppedError).
        """
        if load not in self._waiting:
            self._waiting.append(load)
        try:
            while not self._begins(load):
                load.check()
                time.sleep(LOOK)
            load.check()
            load.waiting = False
            yield
        finally:
            self._leave(load)

    def _begins(self, load: LoadJob) -> bool:
        """Return whether it is a load's turn."""
        with self._lock:
            first = self._waiting[0] is load and not self._running
            joins = load.beside is not None and {other.beside for other in self._running} == {
                load.beside
            }
            if first or joins:
                self._waiting.remove(load)
                self._running.append(load)
            return first or joins

    def _leave(self, load: LoadJob) -> None:
        with self._lock:
            for loads in (self._waiting, self._running):
                if load in loads:
                    loads.remove(load)

    def cancel(self, name: str = "") -> str:
        """Cancel a running or waiting load for all followers, or all loads if no name is given. Return a sentence.

        The load ends at the next safe point: between two tensors, pieces of a download, or stages. Raises
        NotFoundError if there is none.
        """
        with self._lock:
            loads = [
                load
                for load in self._loading.values()
                if name in ("", load.name) and not load.cancelled
            ]
            if not loads:
                raise NotFoundError(
                    f"{name!r} is not being loaded." if name else "Nothing is being loaded."
                )
            for load in loads:
                load.cancel("cancelled; ending at the next safe point")
                for part in (self._loading.get(part) for part, _ in load.parts):
                    if part is not None and not part.requested:
                        part.cancel(f"cancelled together with {load.name}")
        return f"Cancelling {', '.join(load.name for load in loads)} …"

    def follow(self, load: LoadJob) -> Iterator[str]:
        """Yield the messages of a load; raise the RalleError that ended it. Ctrl-C cancels it."""
        try:
            for message in map(str, load.job.follow()):  # a load tells its progress as text
                if load.cancelled and not load.job.wait(PAGE_CANCEL_SECONDS):
                    raise StoppedError(
                        f"Loading {load.name} was cancelled; a step of a library that cannot be interrupted is "
                        "still running, and what it loads is dropped when it ends."
                    )
                yield message
        except KeyboardInterrupt:
            with suppress(NotFoundError):
                self.cancel(load.name)
            has_ended = load.job.wait(COMMAND_CANCEL_SECONDS)
            raise StoppedError(
                load.cancellation() if has_ended else f"Loading {load.name} was cancelled."
            ) from None

    def stop(self, seconds: float) -> None:
        """Cancel every load and wait for each, up to ``seconds``."""
        with self._lock:
            loads = list(self._loading.values())
        for load in loads:
            load.job.stop()
        for load in loads:
            load.job.wait(seconds)
