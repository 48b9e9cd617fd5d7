"""Files and folders that appear whole or not at all: the unfinished ones are ``.NAME.MARK.part``, written beside the lock ``.NAME.MARK.lock`` that its writer holds.

The operating system frees the lock when its process ends, however it ends: a part whose lock is free is abandoned. A
process id proves nothing, because it is used again, and another container does not see it.
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
"""File systems allow 255 for a name; a folder during its build adds its own marks."""

_PATIENCE = 5.0
"""Seconds: another process that looks for abandoned parts holds a new lock for a moment."""

_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}
"""The error numbers of a file system without locks."""

_PART = re.compile(r"\.(.+)\.[0-9a-f]{12}\.(part|lock)")
_HIDDEN = re.compile(r"([/\\])\.([^/\\]+?)\.[0-9a-f]{12}\.part\b")


def check_name(noun: str, name: str) -> str:
    """``name`` if it is a valid folder name on every system; else raises UsageError about the ``noun`` name."""
    forbidden = (
        name.startswith(".") or any(c in name for c in '/\\:*?"<>|') or not name.isprintable()
    )
    if not name.strip() or forbidden or len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        raise UsageError(
            f"The {noun} name {name!r} cannot be a folder name; use letters, digits, '-' and '_'."
        )
    return name


def with_final_names(text: str) -> str:
    """A sentence that names paths: an unfinished file or folder has the name that it will have.

    >>> with_final_names("Could not write /w/indexes/.mine.0f4b66d01c2e.part/flat.faiss.")
    'Could not write /w/indexes/mine/flat.faiss.'
    """
    return _HIDDEN.sub(r"\1\2", text)


@contextlib.contextmanager
def unfinished_file(path: Path) -> Iterator[Path]:
    """The hidden path under which to write ``path``, to be moved into place; any rest of it is removed at the end.

    The lock beside it is held meanwhile. A file system without locks gets the part alone: other processes cannot lock
    it either, so they leave it. Raises OSError.
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
    """A new hidden folder inside ``folder``, to be moved to ``folder/name``; removed at the end if it was not.

    The remains of a killed process under ``name`` are removed first. Raises OSError.
    """
    remove_abandoned(folder, name)
    with unfinished_file(folder / name) as part:
        part.mkdir()
        yield part


def move_in(part: Path, target: Path) -> bool:
    """Give a finished file or folder its name; False if the name is taken; the file that has it stays. Raises OSError."""
    try:
        if part.is_dir():
            os.rename(part, target)  # refused unless the target is absent or an empty folder
        else:
            os.link(part, target)  # refused where a rename would replace the target
    except OSError:
        if target.exists():
            return False
        if part.is_dir():
            raise
        os.rename(part, target)  # a file system without links
    return True


def delete(path: Path) -> None:
    """Remove a file or folder, whose name is free at once. Raises UsageError if the system refuses."""
    try:
        with beside(path.parent, path.name) as gone:
            os.rename(path, gone / path.name)
    except OSError as error:
        raise UsageError(f"{path} could not be removed: {error.strerror or error}.") from error


def remove_abandoned(folder: Path, name: str = "") -> None:
    """Remove the parts of ``name`` in ``folder`` whose writers are gone, files and folders; '' of every name."""
    from filelock import FileLock

    for kind in ("part", "lock"):  # a lock may be left without its part
        for path in folder.glob(f".{glob.escape(name)}.*.{kind}" if name else f".*.{kind}"):
            marks = _PART.fullmatch(path.name)
            if marks is None or (name and marks[1] != name):
                continue
            lock = FileLock(path.with_suffix(".lock"), thread_local=False)
            try:
                lock.acquire(timeout=0)
            except OSError:  # a Timeout: its writer lives; any other: nothing can be proved
                continue
            _remove(path.with_suffix(".part"))
            _remove(path.with_suffix(".lock"))
            lock.release()


def remove_all_abandoned(workspace: Path) -> None:
    """``remove_abandoned`` in a workspace, in its folders, and in theirs: a run's files lie that deep."""
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
