"""Print progress on stderr, because stdout carries the result; handle Ctrl-C while questions are answered."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from rallebench.core.events import Event, Failed, Finished, Operation, Progress, T, Warned, complete
from rallebench.core.experiment_reports import StageCounts
from rallebench.core.experiments import ExperimentResult, FilledRows
from rallebench.core.interrupts import Stoppable, interruptible
from rallebench.core.runs import RunOptions, RunResult
from rallebench.core.terminal import visible
from rallebench.services.experiments import Experiments, WorkspaceRequest

PACE = 2.0
"""Seconds between two progress lines."""


def say(message: str) -> None:
    """Print a line on stderr."""
    print(visible(message), file=sys.stderr, flush=True)


class Paced:
    """Progress lines, at most one every ``PACE`` seconds. The first appears at once unless ``later``."""

    def __init__(self, *, later: bool = False) -> None:
        self._last = time.monotonic() if later else 0.0

    def say(self, message: str, *, always: bool = False) -> None:
        """Print the line if enough time has passed, or if ``always``."""
        if always or time.monotonic() - self._last > PACE:
            self._last = time.monotonic()
            say(message)


def drain(progress: Iterator[Any], paced: Paced | None = None) -> Any:
    """Run a generator to its end and print the sentences it yields. Return its last value unless that is a sentence."""
    last = None
    with interruptible(progress):
        for last in progress:
            if isinstance(last, str):
                paced.say(last, always=last.startswith("Warning")) if paced else say(last)
    return last


def follow(operation: Operation[T], stop: Callable[[], None] | None = None) -> T:
    """Print the events of an operation and return its result. ``stop``: called on the first Ctrl-C while questions
    are answered; without it, Ctrl-C ends the work at once.
    """
    with Stoppable(stop, say) as stoppable:
        listener = _Listener(stoppable)
        result = complete(operation, listener.hear)
    if isinstance(result, RunResult) and result.stopped:
        listener.tell(result)
    return result


def follow_experiment(
    experiments: Experiments, request: WorkspaceRequest, options: RunOptions
) -> ExperimentResult:
    """Run an experiment. The first Ctrl-C ends it after the current batch."""
    result = follow(
        experiments.run(request, options),
        lambda: experiments.stop(request.name),
    )
    if result.warning:
        say(f"Warning: {result.warning}")
    return result


class _Listener:
    def __init__(self, stoppable: Stoppable) -> None:
        self._stoppable, self._paced = stoppable, Paced()
        self._warnings: list[str] = []
        self._steps: set[str] = set()

    def hear(self, event: Event) -> None:
        answering = isinstance(event, Progress) and event.message in ("", "running")
        self._stoppable.running = answering
        where = f"{event.task}: " if event.task else ""
        if isinstance(event, Progress):
            step, line = where + event.message, where + progress_text(event)
            if event.message and step not in self._steps:
                self._steps.add(step)
                say(line)  # bypasses the pacing, so the first count appears at once
            else:
                self._paced.say(line, always=event.done == event.total)
        elif isinstance(event, Warned):
            self._warnings.append(event.message)
            say(f"Warning: {event.message}")
        elif isinstance(event, Failed):
            say(f"{event.task} failed: {event.error}")
        elif isinstance(event, Finished):
            if isinstance(event.result, FilledRows):
                say(f"{where}{stage_text(event.result.counts)}")
            elif where:
                say(f"{where}{'had ended before' if event.reused else 'done'}")
            self.tell(event.result)

    def tell(self, result: object) -> None:
        """Print why questions of a run failed, and any warnings that no event has shown."""
        if isinstance(result, RunResult):
            for message, count in (result.report.errors if result.report else {}).items():
                say(f"{count} failed: {message}")
            for warning in result.warnings:
                if not any(message.endswith(warning) for message in self._warnings):
                    say(f"Warning: {warning}")


def progress_text(event: Progress) -> str:
    """Describe the progress of a task: step, questions, failures and seconds.

    >>> progress_text(Progress("", 3, 8, errors=1, seconds=4.2)), progress_text(Progress("", 0, 8, "running"))
    ('3/8, 1 failed (4 s)', 'running')
    """
    count = f"{event.done:,}/{event.total:,}" if event.total and event.message != "running" else ""
    errors = f", {event.errors} failed" if event.errors else ""
    seconds = f"({event.seconds:.0f} s)" if event.seconds else ""
    return " ".join(filter(None, [event.message, count + errors, seconds]))


def stage_text(counts: StageCounts) -> str:
    """Describe the counts of one stage of a dataset builder in one line."""
    parts = [f"{counts.used} of {counts.rows} kept"]
    parts += [f"{count} {reason}" for reason, count in (counts.left_out or {}).items()]
    words = (
        ("unread verdicts", counts.unknown),
        ("failed", counts.failed),
        ("by hand", counts.edited),
    )
    parts += [f"{count} {name}" for name, count in words if count]
    if counts.calls:
        tokens = f"{counts.prompt_tokens} + {counts.completion_tokens} tokens"
        parts.append(f"{counts.calls} requests, {tokens}")
    return "; ".join(parts)
