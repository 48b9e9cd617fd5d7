"""Work on the command line: its events on stderr, stopped by Ctrl-C after the current batch."""

from __future__ import annotations

from collections.abc import Callable

from rallebench.cli.stopping import Stoppable
from rallebench.cli.verbs import Paced, say
from rallebench.core.events import Event, Failed, Finished, Operation, Progress, T, Warned, complete
from rallebench.core.runs import RunResult


def follow(operation: Operation[T], stop: Callable[[], None] | None = None) -> T:
    """Run an operation to its end and say how far it is. ``stop``: what the first Ctrl-C calls while questions are answered;
    without it Ctrl-C ends the work at once."""
    progress = Paced()
    warnings: list[str] = []
    steps: set[str] = set()

    def hear(event: Event) -> None:
        answering = isinstance(event, Progress) and event.message in ("", "running")
        stoppable.running = stop is not None and answering
        where = f"{event.task}: " if event.task else ""
        if isinstance(event, Progress):
            step = where + event.message
            if event.message and step not in steps:
                steps.add(step)
                say(where + _progress(event))
            else:
                progress.say(where + _progress(event), always=event.done == event.total)
        elif isinstance(event, Warned):
            warnings.append(event.message)
            say(f"Warning: {event.message}")
        elif isinstance(event, Failed):
            say(f"{event.task} failed: {event.error}")
        elif isinstance(event, Finished):
            if where:
                say(f"{where}{'had ended before' if event.reused else 'done'}")
            tell(event.result)

    def tell(result: object) -> None:
        """What a run's questions failed of, and its warnings that were not events."""
        if isinstance(result, RunResult):
            for message, count in result.report.get("errors", {}).items():
                say(f"{count} failed: {message}")
            for warning in result.warnings:
                if not any(message.endswith(warning) for message in warnings):
                    say(f"Warning: {warning}")

    with Stoppable(stop or (lambda: None)) as stoppable:
        value = complete(operation, hear)
    if isinstance(value, RunResult) and value.stopped:
        tell(value)
    return value


def _progress(event: Progress) -> str:
    """Where a task is: its step, its questions, how many failed, and the seconds.

    >>> _progress(Progress("", 3, 8, errors=1, seconds=4.2)), _progress(Progress("", 0, 8, "running"))
    ('3/8, 1 failed (4 s)', 'running')
    """
    count = f"{event.done:,}/{event.total:,}" if event.total and event.message != "running" else ""
    errors = f", {event.errors} failed" if event.errors else ""
    seconds = f"({event.seconds:.0f} s)" if event.seconds else ""
    return " ".join(filter(None, [event.message, count + errors, seconds]))
