"""Who uses the kept passages and texts of a workspace: while anybody does, in any process, nothing of them is deleted."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

_numbers = itertools.count()
_GATE, _MARK = ".prepared.lock", ".prepared.{}.use"


@contextlib.contextmanager
def using(cache: Path) -> Iterator[None]:
    """Say that they are in use; any number of others may use them as well."""
    from filelock import FileLock

    cache.mkdir(parents=True, exist_ok=True)
    path = cache / _MARK.format(f"{os.getpid()}-{next(_numbers)}")
    mark = FileLock(path, thread_local=False)  # freed by the system when its process dies
    with FileLock(cache / _GATE, thread_local=False):
        mark.acquire()
    try:
        yield
    finally:
        mark.release()
        with contextlib.suppress(OSError):
            path.unlink()


@contextlib.contextmanager
def alone(cache: Path) -> Iterator[bool]:
    """Whether nobody uses them; then nobody begins to before the end of this."""
    from filelock import FileLock, Timeout

    with FileLock(cache / _GATE, thread_local=False):
        free = True
        for path in cache.glob(_MARK.format("*")):
            try:
                with FileLock(path, timeout=0, thread_local=False):
                    pass
                with contextlib.suppress(OSError):  # left by a process that died
                    path.unlink()
            except Timeout:
                free = False
        yield free
