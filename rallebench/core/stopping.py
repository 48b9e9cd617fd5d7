"""A stop ends the waiting of a thread: for a server's answer, for room, for the next attempt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rallebench.core.errors import StoppedError


class Stop:
    """A stop, set once, by any thread; it ends all waits. ``work``: the stop of the larger work around this one."""

    def __init__(self, part_of: Stop | None = None) -> None:
        self.work: Stop = self if part_of is None else part_of.work
        self._lock = threading.RLock()  # a wait may end while it is held
        self._wakes: dict[object, Callable[[], None]] = {}
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def check(self) -> None:
        """Raise StoppedError if the stop is set."""
        if self._set:
            raise StoppedError("The work was stopped.")

    def set(self) -> None:
        """Set the stop and call the ``wake`` of every wait, in this thread."""
        with self._lock:  # held during the calls: a wait that ends meanwhile must not be woken
            self._set = True
            for wake in list(self._wakes.values()):
                wake()

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """During the block, call ``wake`` when the stop is set; call it at once if the stop is set already."""
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
    stop = Stop()  # never set: a thread gets its own only by ``obey``


_of_thread = _OfThread()


def obey(stop: Stop) -> None:
    """Let ``stop`` end the waits of this thread."""
    _of_thread.stop = stop


@contextmanager
def obeying(stop: Stop) -> Iterator[None]:
    """During the block, let ``stop`` end the waits of this thread. Afterwards the thread does other work."""
    before = stop_of_thread()
    obey(stop)
    try:
        yield
    finally:
        obey(before)


def stop_of_thread() -> Stop:
    """The stop that this thread obeys."""
    return _of_thread.stop
