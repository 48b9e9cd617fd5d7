"""An experiment on the command line: its events on stderr, stopped by Ctrl-C after the current batch."""

from __future__ import annotations

from rallebench.cli.stopping import Stoppable
from rallebench.cli.verbs import Paced, say
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


def follow(workbench: Workbench, operation: Operation[T], experiment: str = "") -> T:
    """Run an operation to its end and say how far it is. ``experiment``: the one whose current run Ctrl-C stops."""
    progress = Paced()
    warnings: list[str] = []

    def hear(event: Event) -> None:
        stoppable.running = isinstance(event, Progress) and (
            bool(event.done) or event.message == "running"
        )
        if isinstance(event, Progress):
            count = f"{event.done:,}/{event.total:,}" if event.total else ""
            text = " ".join(filter(None, [event.message, count]))
            progress.say(f"{event.task}: {text}" if event.task else text)
        elif isinstance(event, Warned):
            warnings.append(event.message)
            say(f"Warning: {event.message}")
        elif isinstance(event, Failed):
            say(f"{event.task} failed: {event.error}")
        elif isinstance(event, Finished):
            say(f"{event.task}: {'had ended before' if event.reused else 'done'}")
            if isinstance(event.result, RunResult):
                for message, count in event.result.report.get("errors", {}).items():
                    say(f"{count} failed: {message}")
                for warning in event.result.warnings:
                    if not any(message.endswith(warning) for message in warnings):
                        say(f"Warning: {warning}")

    with Stoppable(lambda: workbench.experiments.stop(experiment)) as stoppable:
        return complete(operation, hear)
