"""Errors of a full disk: one sentence with the needed and the free space."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from rallebench.core.errors import BackendError, Hint
from rallebench.core.memory import size
from rallebench.core.parts import with_final_names

_FULL = re.compile(
    r"No space left|Disk quota exceeded|File too large|\d+ requested and \d+ written|\d+ of \d+ bytes are there|iostream error"
)
"""The messages for a full disk, from the system, numpy, hnswlib and DiskANN."""
FREE_SPACE = Hint("free-space")


class DiskError(BackendError):
    """A failed write; the sentence is complete."""


def free_bytes(path: Path) -> int:
    """The free bytes for this user on the disk of ``path``, which need not exist."""
    path = Path(path).absolute()
    return shutil.disk_usage(next(p for p in (path, *path.parents) if p.exists())).free


def is_full(error: BaseException) -> bool:
    """Whether an error of any library means a full disk."""
    return bool(_FULL.search(f"{getattr(error, 'strerror', '') or ''} {error}"))


def disk_error(path: Path, error: BaseException, what: str = "", needed: int = 0) -> DiskError:
    """The error of a failed write, to be raised after the half-written file is removed.

    ``what`` and ``path`` name the file, as in "the index /w/indexes/mine"; ``needed``: its least size in bytes, 0 if
    unknown. The sentence has the final name of a hidden temporary folder.
    """
    reason = with_final_names(" ".join(str(getattr(error, "strerror", "") or error).split())[-300:])
    if is_full(error):
        reason = f"the disk is full. {room(path, needed).removesuffix('.')}"
    return DiskError(
        f"Could not write {what and f'{what} '}{path}: {reason}. Nothing was left half-written.",
        hint=FREE_SPACE,
    )


def room(place: Path, needed: int = 0) -> str:
    """The needed and the free space as a sentence."""
    free = free_bytes(place)
    if needed > free:
        return f"It takes at least {size(needed)}, and {size(free)} are free."
    return f"It takes more than the {size(free)} that are free."
