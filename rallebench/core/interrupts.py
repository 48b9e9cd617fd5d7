"""Ctrl-C while questions are answered: the first one stops the work after its current batch, the second one at once."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Generator, Iterator
from types import FrameType

STOPPING = "Stopping after the current batch; press Ctrl-C again to stop at once."


class Stoppable:
    """During the block, the first SIGINT or SIGTERM calls ``stop``, which ends the work after the current batch, and tells
    the user. The second one ends it at once, and so does the first while no question is being answered (``running`` is
    false)."""

    def __init__(self, stop: Callable[[], None] | None, tell: Callable[[str], None]) -> None:
        self._stop_work, self._tell, self.running = stop, tell, False

    def _stop(self, signum: int, frame: FrameType | None) -> None:
        if not self.running or self._stop_work is None:
            raise KeyboardInterrupt
        signal.signal(signum, signal.default_int_handler)
        self._tell(STOPPING)
        self._stop_work()

    def __enter__(self) -> Stoppable:
        self._before = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):  # not in the main thread
                self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def interruptible(progress: Iterator[object]) -> Iterator[None]:
    """During the block, a Ctrl-C while a line is printed also reaches the work, which then reports its end."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if isinstance(progress, Generator):
            progress.throw(interrupt)
        raise
