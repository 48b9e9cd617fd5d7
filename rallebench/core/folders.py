"""Folders that appear whole or not at all: built under a hidden name beside, then moved into place."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from rallebench.core.errors import UsageError
from rallebench.core.parts import part_of, remove_abandoned

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


@contextlib.contextmanager
def beside(folder: Path, name: str) -> Iterator[Path]:
    """A new hidden folder inside ``folder``, to be moved to ``folder/name``; removed at the end if it was not.

    The remains of a killed process under ``name`` are removed first. Raises OSError.
    """
    remove_abandoned(folder, name)
    with part_of(folder / name) as part:
        part.mkdir()
        yield part


def move_in(part: Path, target: Path) -> bool:
    """Give a finished file or folder its name; False if the name is taken: what has it stays. Raises OSError."""
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
