"""Progress on stderr, as stdout belongs to the result; and Ctrl-C while questions are answered."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from rallebench.core.events import (
    Event,
    Failed,
    Finished,
    Operation,
    Progress,
    T,
    Warned,
    complete,
)
from rallebench.core.runs import RunResult
from rallebench.services.workbench import Workbench

PACE = 2.0
"""Seconds between two lines of progress."""


def say(message: str) -> None:
    """Print a sentence on stderr."""
    print(message, file=sys.stderr, flush=True)


class Paced:
    """Lines of progress, one every ``PACE`` seconds at most; the first at once unless ``later``."""

    def __init__(self, *, later: bool = False) -> None:
        self._last = time.monotonic() if later else 0.0

    def say(self, message: str, *, always: bool = False) -> None:
        """Print the line if it is time for one, or ``always``."""
        if always or time.monotonic() - self._last > PACE:
            self._last = time.monotonic()
            say(message)


def drain(progress: Iterator[Any], paced: Paced | None = None) -> Any:
    """Print the sentences of work until its end; return its last value, if that is no sentence."""
    last = None
    with interruptible(progress):
        for last in progress:
            if isinstance(last, str):
                paced.say(last, always=last.startswith("Warning")) if paced else say(last)
    return last


@contextlib.contextmanager
def interruptible(progress: Iterator[Any]) -> Iterator[None]:
    """A Ctrl-C that comes while a line is printed reaches the work, too, which says how it ended."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if isinstance(progress, Generator):
            progress.throw(interrupt)
        raise


def follow(
    workbench: Workbench, operation: Operation[T], run_of: Callable[[str], str] = lambda task: task
) -> T:
    """Print the events of an operation and return its result. ``run_of``: task → the run that Ctrl-C stops."""
    with Stoppable(workbench) as stoppable:
        listener = _Listener(stoppable, run_of)
        result = complete(operation, listener.hear)
        if isinstance(result, RunResult):
            listener.warn(result.warnings)
        return result


class _Listener:
    def __init__(self, stoppable: Stoppable, run_of: Callable[[str], str]) -> None:
        self._stoppable, self._run_of = stoppable, run_of
        self._paced = Paced()
        self._warnings: list[str] = []

    def hear(self, event: Event) -> None:
        """Print an event."""
        if isinstance(event, Progress):
            self._progress(event)
        elif isinstance(event, Warned):
            self.warn([event.message])
        elif isinstance(event, Failed):
            say(f"{event.task} failed: {event.error}")
        elif isinstance(event, Finished):
            self._stoppable.running = False
            say(f"{event.task}: {'had ended before' if event.reused else 'done'}")
            if isinstance(event.result, RunResult):
                self.warn(event.result.warnings)

    def _progress(self, event: Progress) -> None:
        self._stoppable.name = self._run_of(event.task)
        if event.message or event.done:
            self._stoppable.running = bool(event.done) or event.message == "running"
        count = f"{event.done:,}/{event.total:,}" if event.total else ""
        errors = f", {event.errors} failed" if event.errors else ""
        seconds = f" ({event.seconds:.0f} s)" if event.seconds else ""
        text = " ".join(filter(None, [event.message, count])) + errors + seconds
        always = bool(event.message and not event.done) or event.done == event.total
        self._paced.say(f"{event.task}: {text}" if event.task else text, always=always)

    def warn(self, warnings: Iterable[str]) -> None:
        """Print the warnings that were not printed before."""
        for warning in warnings:
            if not any(earlier.endswith(warning) for earlier in self._warnings):
                self._warnings.append(warning)
                say(f"Warning: {warning}")


class Stoppable:
    """The first Ctrl-C or SIGTERM stops the run ``name`` after the current batch, the second at once; while no question
    is answered (``running`` is false) the first one stops at once."""

    def __init__(self, workbench: Workbench) -> None:
        self.workbench, self.name, self.running = workbench, "", False

    def _stop(self, signum: int, frame: Any) -> None:
        if not self.running:
            raise KeyboardInterrupt
        signal.signal(signum, signal.default_int_handler)
        say("Stopping after the current batch; press Ctrl-C again to stop at once.")
        self.workbench.stop_run(self.name)

    def __enter__(self) -> Stoppable:
        self._before = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):  # not in the main thread
                self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
