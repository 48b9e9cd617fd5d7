"""The wish to stop, which reaches what a thread waits for: the answer of a server, room, the next try."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rallebench.core.errors import StoppedError


class Stop:
    """A wish to stop that comes once, from any thread, and wakes what waits."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a wait may end while it is held
        self._wakes: dict[object, Callable[[], None]] = {}
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def check(self) -> None:
        """Raise StoppedError once it has come."""
        if self._set:
            raise StoppedError("The work was stopped.")

    def set(self) -> None:
        with self._lock:  # held while they are called: what has ended meanwhile must not be woken
            self._set = True
            for wake in list(self._wakes.values()):
                wake()

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Call ``wake`` when it comes, now if it has come; not after the end of the block."""
        key = object()
        with self._lock:
            self._wakes[key] = wake
            if self._set:
                wake()
        try:
            yield
        finally:
            with self._lock:
                del self._wakes[key]


class _OfThread(threading.local):
    stop = Stop()  # never set: of a thread that nobody stops


_of_thread = _OfThread()


def obey(stop: Stop) -> None:
    """End what this thread waits for when ``stop`` comes."""
    _of_thread.stop = stop


def stop_of_thread() -> Stop:
    """What ends the waits of this thread."""
    return _of_thread.stop
