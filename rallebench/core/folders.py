"""Folders that appear whole or not at all: built under a hidden name beside, then moved into place."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from rallebench.core.errors import UsageError

MAX_NAME_BYTES = 200
"""File systems allow 255 for a name; a folder during its build adds its own marks."""


def check_name(what: str, name: str) -> str:
    """``name`` if it is a valid folder name on every system; else raises UsageError about the ``what`` name."""
    forbidden = (
        name.startswith(".") or any(c in name for c in '/\\:*?"<>|') or not name.isprintable()
    )
    if not name.strip() or forbidden or len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        raise UsageError(
            f"The {what} name {name!r} cannot be a folder name; use letters, digits, '-' and '_'."
        )
    return name


_HALF = re.compile(r"\.(.+)\.(\d+)\.[^.]+\.part")
"""Name, process and mark of a folder during its build: ``.mine.71.8302.part``."""

_HIDDEN = re.compile(r"([/\\])\.([^/\\]+?)\.\d+\.\d+\.part\b")


def final_names(text: str) -> str:
    """A sentence with the final names of folders in place of their hidden names during the build.

    >>> final_names("Could not write /w/indexes/.mine.71.8302.part/flat.faiss.")
    'Could not write /w/indexes/mine/flat.faiss.'
    """
    return _HIDDEN.sub(r"\1\2", text)


@contextlib.contextmanager
def beside(folder: Path, name: str) -> Iterator[Path]:
    """A new hidden folder inside ``folder``, to be moved to ``folder/name``; removed at the end if it was not.

    The remains of a killed process under ``name`` are removed first. Raises OSError.
    """
    forget_dead(folder, name)
    half = folder / f".{name}.{os.getpid()}.{time.monotonic_ns()}.part"
    try:
        half.mkdir(parents=True)
        yield half
    finally:
        if half.exists():
            shutil.rmtree(half, ignore_errors=True)


def forget_dead(folder: Path, name: str = "") -> None:
    """Remove the half-written files and folders ``name`` that killed processes left in ``folder``; '': of every name.

    Those of a living process stay.
    """
    for path in folder.glob(f".{glob.escape(name)}.*.part" if name else ".*.part"):
        marks = _HALF.fullmatch(path.name)
        if marks is None or (name and marks[1] != name) or _makes(int(marks[2]), path):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()


def forget_all_dead(workspace: Path) -> None:
    """``forget_dead`` in a workspace and two levels of its folders, down to a run's files."""
    for folder in (
        workspace,
        *_inside(workspace),
        *(inner for outer in _inside(workspace) for inner in _inside(outer)),
    ):
        with contextlib.suppress(OSError):
            forget_dead(folder)


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


def _makes(pid: int, path: Path) -> bool:
    """Whether the process that began ``path`` may still live: its id is in use, by no younger process."""
    import psutil

    try:
        return bool(psutil.Process(pid).create_time() <= path.stat().st_mtime + 1.0)
    except (psutil.NoSuchProcess, FileNotFoundError):
        return False
    except (psutil.Error, OSError):
        return True
