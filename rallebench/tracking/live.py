"""Traces of Build and Chat. They are queued and written by one thread, so no answer waits for MLflow."""

from __future__ import annotations

import atexit
import logging
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.core.types import Episode
from rallebench.tracking.trace_store import trace_episode

log = logging.getLogger(__name__)

MAX_WAITING = 200
HEAD_START = 1.0
"""Seconds that the first trace waits, because it imports MLflow, which would slow the answer on the page."""

EXIT_PATIENCE = 5.0
"""Seconds that the program waits at exit for the last traces."""


class TraceWriter:
    """A daemon thread that runs jobs in order. A failed job is logged as a warning and never raised.

    ``last_error``: the error of the newest job, '' if it succeeded. Repeated errors are logged once.
    """

    def __init__(self) -> None:
        self._jobs: queue.Queue[Callable[[], object]] = queue.Queue(MAX_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.last_error = ""

    def add(self, job: Callable[[], object]) -> None:
        """Queue a job, or drop it if too many are waiting."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="mlflow-traces", daemon=True
                )
                self._thread.start()
                atexit.register(self.flush, EXIT_PATIENCE)
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            self._end("MLflow is too slow: a trace was left out.")

    def flush(self, seconds: float = 30.0) -> bool:
        """Wait up to ``seconds`` for all jobs; return whether they have finished."""
        with self._jobs.all_tasks_done:
            return self._jobs.all_tasks_done.wait_for(
                lambda: not self._jobs.unfinished_tasks, seconds
            )

    def _work(self) -> None:
        time.sleep(HEAD_START)
        while True:
            job, error = self._jobs.get(), ""
            try:
                job()
            except RalleError as failure:
                error = str(failure)
            except Exception as failure:
                log.exception("a live trace failed")
                error = f"A trace could not be logged: {type(failure).__name__}: {failure}"[:400]
            self._end(error)
            self._jobs.task_done()

    def _end(self, error: str) -> None:
        with self._lock:
            if error and error != self.last_error:
                log.warning("%s", error)
            self.last_error = error


WRITER = TraceWriter()


def trace_later(episode: Episode, question: str, **where: Any) -> None:
    """Log one episode in the background; returns at once and never raises. ``where``: as for ``trace_episode``."""
    WRITER.add(partial(trace_episode, episode, question, ended=time.time(), **where))
