"""Traces of Develop and Chat: handed over at once, written by one thread, never in the way."""

from __future__ import annotations

import atexit
import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rallebench.core.errors import RalleError
from rallebench.core.types import Episode
from rallebench.engine.cost import Prices
from rallebench.tracking.traces import trace_episode

log = logging.getLogger(__name__)

MAX_WAITING = 200
HEAD_START = 1.0
"""Seconds that the first trace waits: it imports MLflow, which would slow down the answer being shown."""

EXIT_PATIENCE = 5.0
"""Seconds that the end of the program waits for traces that are still being written."""


@dataclass(frozen=True, slots=True)
class LiveStatus:
    """How live tracing goes; ``last_error`` is the newest trouble as one sentence, '' after a success."""

    waiting: int = 0
    logged: int = 0
    failed: int = 0
    last_error: str = ""


class _Writer:
    """One daemon thread that does jobs in order; a job that fails is counted and told, never raised."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[Callable[[], object]] = queue.Queue(MAX_WAITING)
        self._changed = threading.Condition()
        self._waiting = self._logged = self._failed = 0
        self._last_error = ""
        self._thread: threading.Thread | None = None

    def add(self, job: Callable[[], object]) -> None:
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="mlflow-traces", daemon=True
                )
                self._thread.start()
                atexit.register(self.flush, EXIT_PATIENCE)
            self._waiting += 1
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            self._done("MLflow is too slow: a trace was left out.")

    def _work(self) -> None:
        time.sleep(HEAD_START)
        while True:
            job = self._jobs.get()
            try:
                job()
                self._done("")
            except RalleError as error:
                self._done(str(error))
            except Exception as error:
                log.exception("a live trace failed")
                self._done(
                    f"A trace could not be logged: {type(error).__name__}: {str(error)[:300]}"
                )

    def _done(self, error: str) -> None:
        if error and error != self._last_error:
            log.warning("%s", error)
        with self._changed:
            self._waiting -= 1
            self._logged, self._failed = self._logged + (not error), self._failed + bool(error)
            self._last_error = error
            self._changed.notify_all()

    def status(self) -> LiveStatus:
        with self._changed:
            return LiveStatus(self._waiting, self._logged, self._failed, self._last_error)

    def flush(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        with self._changed:
            while self._waiting and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            return not self._waiting


_WRITER = _Writer()


def trace_later(
    episode: Episode,
    question: str,
    *,
    workspace: Path,
    tracking_uri: str | None = None,
    experiment: str = "rallebench",
    source: str = "",
    name: str = "",
    session: str = "",
    prices: Prices | None = None,
) -> None:
    """Log one live episode in the background: returns at once and never raises; see ``live_status``."""
    _WRITER.add(
        partial(
            trace_episode,
            episode,
            question,
            workspace=workspace,
            tracking_uri=tracking_uri,
            experiment=experiment,
            source=source,
            name=name,
            session=session,
            ended=time.time(),
            prices=prices,
        )
    )


def live_status() -> LiveStatus:
    """How many live traces wait, are logged and failed, and why."""
    return _WRITER.status()


def flush_live(seconds: float = 30.0) -> bool:
    """Wait until nothing waits; False if that took longer than ``seconds``."""
    return _WRITER.flush(seconds)
