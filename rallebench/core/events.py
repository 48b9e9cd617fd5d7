"""The events of progress, which every long call yields.

``task`` is a path: ``night``, ``night/noise=0.2``, ``night/noise=0.2/judge``. A long call is an :data:`Operation`: a
generator that yields events and *returns* its result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, Union

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Started:
    """A task begins; ``total``: the number of its questions or passages, None if unknown."""

    task: str
    message: str = ""
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """A task is at ``done`` of ``total``; ``message``: the present step.

    ``errors`` questions have failed; ``seconds`` are of this session; ``means``: metric → [mean so far, count].
    """

    task: str
    done: int = 0
    total: int | None = None
    message: str = ""
    errors: int = 0
    seconds: float = 0.0
    means: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning about a task, in one sentence."""

    task: str
    message: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A task is complete. ``reused``: it was complete before, and no model was asked. ``result``: its result."""

    task: str
    message: str = ""
    reused: bool = False
    result: Any = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A task failed, and the work around it continues."""

    task: str
    error: str


Event = Union[Started, Progress, Warned, Finished, Failed]
Operation = Generator[Event, None, T]


def ignore(event: Event) -> None:
    """Do nothing with an event."""


def complete(operation: Operation[T], on_event: Callable[[Event], None] = ignore) -> T:
    """Run an operation to its end and return its result.

    >>> def twice():
    ...     yield Started("work")
    ...     return 2
    >>> complete(twice())
    2
    """
    try:
        while True:
            on_event(next(operation))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        operation.close()


def under(task: str, operation: Operation[T]) -> Operation[T]:
    """The operation with ``task`` before the path of each event."""
    try:
        event = next(operation)
        while True:
            path = f"{task}/{event.task}" if event.task else task
            yield replace(event, task=path)
            event = next(operation)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        operation.close()
