"""Ctrl-C and SIGTERM while questions are being answered: the run that goes on stops after its batch."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from typing import Any

from rallebench.cli.verbs import say


class Stoppable:
    """The first Ctrl-C or SIGTERM calls ``stop``, which ends the work after the current batch, the second ends it at once;
    while nothing is being answered (``running`` is false) the first one ends it at once."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self.stop, self.running = stop, False

    def _stop(self, signum: int, frame: Any) -> None:
        if not self.running:
            raise KeyboardInterrupt
        signal.signal(signum, signal.default_int_handler)
        say("Stopping after the current batch; press Ctrl-C again to stop at once.")
        self.stop()

    def __enter__(self) -> Stoppable:
        self._before = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):  # not in the main thread
                self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
