"""Files and folders that appear whole or not at all. An unfinished one is ``.NAME.MARK.part``; its writer holds the lock
``.NAME.MARK.lock`` beside it.

The operating system frees the lock when the process ends for any reason: a part with a free lock is abandoned. A process
id proves nothing, because ids are reused and are invisible in other containers.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from rallebench.core.errors import UsageError

MAX_NAME_BYTES = 200
"""File systems allow 255 bytes for a name; an unfinished folder adds its own marks."""

_PATIENCE = 5.0
"""Seconds to wait for a new lock, because a process that looks for abandoned parts holds it for a moment."""

_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}
"""The error numbers of file systems without locks."""

_PART = re.compile(r"\.(.+)\.[0-9a-f]{12}\.(part|lock)")
_HIDDEN = re.compile(r"([/\\])\.([^/\\]+?)\.[0-9a-f]{12}\.part\b")


def check_name(noun: str, name: str) -> str:
    """Return ``name`` if it is a valid folder name on every system. Raises UsageError about the ``noun`` name."""
    forbidden = (
        name.startswith(".") or any(c in name for c in '/\\:*?"<>|') or not name.isprintable()
    )
    if not name.strip() or forbidden or len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        raise UsageError(
            f"The {noun} name {name!r} cannot be a folder name; use letters, digits, '-' and '_'."
        )
    return name


def with_final_names(text: str) -> str:
    """Replace names of unfinished files and folders in a sentence by their final names.

    >>> with_final_names("Could not write /w/indexes/.mine.0f4b66d01c2e.part/flat.faiss.")
    'Could not write /w/indexes/mine/flat.faiss.'
    """
    return _HIDDEN.sub(r"\1\2", text)


@contextlib.contextmanager
def unfinished_file(path: Path) -> Iterator[Path]:
    """The hidden path for writing ``path``, to be moved into place. Any remains are removed at the end.

    The lock beside it is held meanwhile. On a file system without locks the part has none: other processes cannot lock it
    either, so they leave it alone. Raises OSError.
    """
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    lock = FileLock(part.with_suffix(".lock"), thread_local=False)
    try:
        lock.acquire(timeout=_PATIENCE)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    try:
        yield part
    finally:
        _remove(part)
        _remove(Path(lock.lock_file))
        lock.release()


@contextlib.contextmanager
def beside(folder: Path, name: str) -> Iterator[Path]:
    """A new hidden folder inside ``folder``, to be moved to ``folder/name``. It is removed at the end unless it was moved.

    The remains of a killed process under ``name`` are removed first. Raises OSError.
    """
    remove_abandoned(folder, name)
    with unfinished_file(folder / name) as part:
        part.mkdir()
        yield part


def move_in(part: Path, target: Path) -> bool:
    """Give a finished file or folder its name. If the name is taken, keep the existing one and return False. Raises
    OSError."""
    try:
        if part.is_dir():
            os.rename(part, target)  # fails unless the target is absent or an empty folder
        else:
            os.link(part, target)  # fails if the target exists; a rename would replace it
    except OSError:
        if target.exists():
            return False
        if part.is_dir():
            raise
        os.rename(part, target)  # a file system without links
    return True


def delete(path: Path) -> None:
    """Remove a file or folder; its name is free at once. Raises UsageError if the system refuses."""
    try:
        with beside(path.parent, path.name) as gone:
            os.rename(path, gone / path.name)
    except OSError as error:
        raise UsageError(f"{path} could not be removed: {error.strerror or error}.") from error


def remove_abandoned(folder: Path, name: str = "") -> None:
    """Remove the parts of ``name`` in ``folder`` without a living writer, files and folders; '': of every name."""
    from filelock import FileLock

    for kind in ("part", "lock"):  # a lock may remain without its part
        for path in folder.glob(f".{glob.escape(name)}.*.{kind}" if name else f".*.{kind}"):
            marks = _PART.fullmatch(path.name)
            if marks is None or (name and marks[1] != name):
                continue
            lock = FileLock(path.with_suffix(".lock"), thread_local=False)
            try:
                lock.acquire(timeout=0)
            except OSError:  # a Timeout: its writer lives; any other error proves nothing
                continue
            _remove(path.with_suffix(".part"))
            _remove(path.with_suffix(".lock"))
            lock.release()


def remove_all_abandoned(workspace: Path) -> None:
    """Call ``remove_abandoned`` for a workspace, its folders and their subfolders: the files of a run are that deep."""
    for folder in (
        workspace,
        *_inside(workspace),
        *(inner for outer in _inside(workspace) for inner in _inside(outer)),
    ):
        with contextlib.suppress(OSError):
            remove_abandoned(folder)


def _inside(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [
                Path(e.path)
                for e in entries
                if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
