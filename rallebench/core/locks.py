"""Locks: a worker holds a lock on a file, which the operating system frees when the process ends."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from rallebench.core.errors import UsageError
from rallebench.core.files import disk_error

P = TypeVar("P")

WAIT_SECONDS = 0.5
"""Seconds between two checks of a lock that another process holds."""


def held(path: Path) -> bool:
    """Return whether any process holds the lock ``path`` now. A process id would prove less, because the system reuses
    ids."""
    from filelock import FileLock, Timeout

    if not path.exists():
        return False
    lock = FileLock(str(path), thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:  # a folder without write access: no process works there
        return False
    lock.release()
    return False


@contextlib.contextmanager
def alone(path: Path, refused: str, *, patience: float = 0, stays: bool = False) -> Iterator[None]:
    """Hold the lock ``path`` during the block. At the end remove it, unless it ``stays``, and its folder if new and empty.

    Raises UsageError(``refused``) if this or another process holds it for ``patience`` seconds, and BackendError if no
    file can be written.
    """
    from filelock import FileLock, Timeout

    # The page may continue its work in another thread.
    lock, is_new = FileLock(str(path), thread_local=False), not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=patience)
    except Timeout:
        raise UsageError(refused) from None
    except OSError as error:
        raise disk_error(path, error) from error
    try:
        yield
    finally:
        if not stays:
            with contextlib.suppress(OSError):
                path.unlink()
        lock.release()
        if is_new:
            with contextlib.suppress(OSError):
                path.parent.rmdir()


@contextlib.contextmanager
def turn(path: Path, progress: Callable[[float], P]) -> Iterator[Iterator[P]]:
    """Wait for the lock ``path``, yielding ``progress(seconds so far)``. It is held at the end of the iterator."""
    from filelock import FileLock, Timeout

    lock = FileLock(path, thread_local=False)
    started = time.perf_counter()

    def waiting() -> Iterator[P]:
        while True:
            try:
                lock.acquire(timeout=0)
                return
            except Timeout:
                yield progress(time.perf_counter() - started)
                time.sleep(WAIT_SECONDS)

    try:
        yield waiting()
    finally:
        lock.release()
