"""Folders that appear whole or not at all: built beside under a hidden name, then moved into place."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from rallebench.core.errors import UsageError
from rallebench.core.parts import part_of, remove_abandoned

MAX_NAME_BYTES = 200
"""File systems take 255 for a folder's name; one that is being built adds its own marks."""


def check_name(what: str, name: str) -> str:
    """``name`` if a folder can have it on every system; UsageError otherwise, naming ``what`` it should name."""
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
    """A new hidden folder inside ``folder``, to be moved to ``folder/name``; gone at the end if it was not.

    What a killed process left of ``name`` is removed first. Raises OSError.
    """
    remove_abandoned(folder, name)
    with part_of(folder / name) as part:
        part.mkdir()
        yield part
