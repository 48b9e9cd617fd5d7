"""One at a time: whoever works under a name holds a file that the operating system frees when its process dies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from rallebench.core.errors import UsageError
from rallebench.core.files import disk_error


def held(path: Path) -> bool:
    """Whether some process holds the lock ``path`` now: the proof that it lives, which a process id used twice is not."""
    from filelock import FileLock, Timeout

    if not path.exists():
        return False
    lock = FileLock(str(path), thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:  # a folder where nobody may write: nobody works there
        return False
    lock.release()
    return False


@contextlib.contextmanager
def alone(path: Path, refused: str) -> Iterator[None]:
    """Hold the lock ``path`` meanwhile; it goes away at the end, and its folder with it if nothing else is in there.

    Raises UsageError(``refused``) at once if somebody holds it, in this process or another, and BackendError where no file
    can be written.
    """
    from filelock import FileLock, Timeout

    # A page's work may be continued in another thread than it was begun in.
    lock = FileLock(str(path), thread_local=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError(refused) from None
    except OSError as error:
        raise disk_error(path, error) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        lock.release()
        with contextlib.suppress(OSError):
            path.parent.rmdir()
