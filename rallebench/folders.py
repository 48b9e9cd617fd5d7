"""Folders that appear whole or not at all: built beside under a hidden name, then moved into place."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from rallebench.errors import UsageError

MAX_NAME_BYTES = 200
"""File systems take 255 for a folder's name; one that is being built adds its own marks."""


def check_name(what: str, name: str) -> str:
    """``name`` if a folder can have it on every system; UsageError otherwise, naming ``what`` it should name."""
    forbidden = name.startswith(".") or any(c in name for c in '/\\:*?"<>|') or not name.isprintable()
    if not name.strip() or forbidden or len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        raise UsageError(f"The {what} name {name!r} cannot be a folder name; use letters, digits, '-' and '_'.")
    return name


_HIDDEN = re.compile(r"([/\\])\.([^/\\]+?)\.\d+\.\d+\.part\b")


def shown(text: str) -> str:
    """A sentence that names places for people: a folder that is being made has the name that it will have.

    >>> shown("Could not write /w/indexes/.mine.71.8302.part/flat.faiss.")
    'Could not write /w/indexes/mine/flat.faiss.'
    """
    return _HIDDEN.sub(r"\1\2", text)


@contextlib.contextmanager
def beside(folder: Path, name: str) -> Iterator[Path]:
    """A new hidden folder inside ``folder``, to be moved to ``folder/name``; gone at the end if it was not.

    What a killed process left of ``name`` is removed first. Raises OSError.
    """
    forget_dead(folder, name)
    half = folder / f".{name}.{os.getpid()}.{time.monotonic_ns()}.part"
    try:
        half.mkdir(parents=True)
        yield half
    finally:
        if half.exists():
            shutil.rmtree(half, ignore_errors=True)


def forget_dead(folder: Path, name: str) -> None:
    """Remove what was left of ``name`` by a process that was killed while it made it."""
    import psutil

    for path in folder.glob(f".{glob.escape(name)}.*.part"):
        pid = path.name[len(name) + 2 :].split(".")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(path, ignore_errors=True)
