"""The jobs of one kind, as the panels of this page read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rallebench.core.events import Operation
from rallebench.services.jobs import JobManager, pieces_of, wait
from rallebench.services.workbench import Workbench


class Works:
    """``kind``: the noun for one of them in sentences."""

    def __init__(self, jobs: JobManager, kind: str) -> None:
        self._jobs, self._kind = jobs, kind

    def follow(self, name: str, what: Any, make: Callable[[], Operation[Any]]) -> Iterator[Any]:
        """Begin ``make()``, or follow it; yields its events, its result last."""
        yield from pieces_of(self._jobs.submit(self._kind, name, what, lambda job: make()))

    def stop(self, name: str = "") -> None:
        """Stop one, all of them without a name."""
        for job in self._jobs.list(self._kind, active=True):
            if name in ("", job.name):
                job.stop()

    def going_on(self) -> dict[str, Any]:
        """Name → newest event, of those that have not ended."""
        return {job.name: job.newest for job in self._jobs.list(self._kind, active=True)}

    def said(self, name: str) -> list[Any]:
        """All events of one that has not ended."""
        job = self._jobs.get(self._kind, name)
        return job.events() if job is not None and not job.done else []

    def stopping(self) -> frozenset[str]:
        """Those that were asked to stop and have not ended."""
        jobs = self._jobs.list(self._kind, active=True)
        return frozenset(job.name for job in jobs if job.stopping)

    def ended(self) -> dict[str, Any]:
        """Name → result, or the error that ended it; the newest last."""
        jobs = [job for job in self._jobs.list(self._kind) if job.done]
        jobs.sort(key=lambda job: job.ended or 0.0)
        return {job.name: job.error or job.result for job in jobs}

    def forget(self, name: str) -> None:
        """Drop one that has ended."""
        self._jobs.forget(f"{self._kind} {name}")

    def wait(self, seconds: float) -> None:
        """Wait for the end of all, at most so long."""
        wait(self._jobs.list(self._kind, active=True), seconds)


def builds_of(workbench: Workbench) -> Works:
    """Builds of indexes."""
    return Works(workbench.jobs, "build")


def imports_of(workbench: Workbench) -> Works:
    """Imports of corpora."""
    return Works(workbench.jobs, "import")


def checks_of(workbench: Workbench) -> Works:
    """Checks of indexes."""
    return Works(workbench.jobs, "check")


def tradeoffs_of(workbench: Workbench) -> Works:
    """Trade-offs of indexes."""
    return Works(workbench.jobs, "trade-off")


def baselines_of(workbench: Workbench) -> Works:
    """Baselines of runs."""
    return Works(workbench.jobs, "baselines")
