"""Progress events, which every long call yields.

``task`` is a path: ``night``, ``night/noise=0.2``, ``night/noise=0.2/judge``. A long call is an :data:`Operation`: a
generator that yields events and *returns* its result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, Union

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """A task has completed ``done`` of ``total``; ``message``: the present step.

    ``errors`` questions have failed; ``seconds`` are of this session; ``means``: metric → [mean so far, count]; ``rate``:
    questions per second in this session, 0 if unknown. For an experiment: ``runs`` and ``indexes``, the numbers of its
    runs and of the indexes that it builds; ``built``: indexes built so far, the current one in part.
    """

    task: str
    done: int = 0
    total: int | None = None
    message: str = ""
    errors: int = 0
    seconds: float = 0.0
    means: Mapping[str, Any] = field(default_factory=dict)
    rate: float = 0.0
    runs: int = 0
    indexes: int = 0
    built: float = 0.0

    @property
    def seconds_left(self) -> float | None:
        """The seconds left at this rate; None if unknown."""
        return (self.total - self.done) / self.rate if self.rate > 0 and self.total else None


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning about a task, in one sentence."""

    task: str
    message: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A task is complete. ``reused``: it was complete before, and no model was called. ``result``: its result."""

    task: str
    message: str = ""
    reused: bool = False
    result: Any = None


@dataclass(frozen=True, slots=True)
class IndexReady:
    """The index for a task is ready. ``built``: it is new."""

    task: str
    name: str
    built: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """A task failed, and the work around it continues."""

    task: str
    error: str


Event = Union[Progress, Warned, Finished, IndexReady, Failed]
Operation = Generator[Event, None, T]


class Pacer:
    """``due`` is true once in this many seconds, for steps too many to report each."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._reported = seconds, time.monotonic()

    def due(self) -> bool:
        """Return whether the time has passed since it last did."""
        now = time.monotonic()
        if now - self._reported < self._seconds:
            return False
        self._reported = now
        return True


def warning_events(task: str, sentences: Iterable[str]) -> Iterator[Event]:
    """The warnings of a task as events."""
    return (Warned(task, sentence) for sentence in sentences)


def ignore(event: object) -> None:
    """Ignore an event."""


def complete(operation: Generator[A, None, T], on_event: Callable[[A], None] = ignore) -> T:
    """Run an operation, or any other generator, to its end and return its result.

    >>> def twice():
    ...     yield Progress("work")
    ...     return 2
    >>> complete(twice())
    2
    """
    with closing(operation):
        while True:
            try:
                step = next(operation)
            except StopIteration as end:
                result: T = end.value
                return result
            on_event(step)


def map_events(
    steps: Generator[A, None, T], event_of: Callable[[A], B | None]
) -> Generator[B, None, T]:
    """Yield ``event_of(step)`` of each step, without None; closing it closes ``steps``."""
    with closing(steps):
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            if (event := event_of(step)) is not None:
                yield event


def under(task: str, operation: Operation[T]) -> Operation[T]:
    """The operation with ``task`` before the path of each event."""
    return map_events(
        operation,
        lambda event: replace(event, task=f"{task}/{event.task}" if event.task else task),
    )
