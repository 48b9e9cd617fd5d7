"""A disk without room: how much is needed, how much is free, and one sentence that says so."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from rallebench.core.errors import BackendError
from rallebench.core.memory import size
from rallebench.core.parts import with_final_names

_FULL = re.compile(
    r"No space left|Disk quota exceeded|File too large|\d+ requested and \d+ written|\d+ of \d+ bytes are there|iostream error"
)
"""What the system says of a full disk, and what numpy, the authors of hnswlib and DiskANN make of it."""


class DiskError(BackendError):
    """The disk refused what was to be written; the sentence is complete."""


def free_bytes(path: Path) -> int:
    """What the disk of ``path``, which need not exist, has left for this user."""
    path = Path(path).absolute()
    return shutil.disk_usage(next(p for p in (path, *path.parents) if p.exists())).free


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk took no more, whichever library raises it."""
    return bool(_FULL.search(f"{getattr(error, 'strerror', '') or ''} {error}"))


def unwritten(what: str, place: Path, error: BaseException, needed: int = 0) -> DiskError:
    """The sentence for something that could not be written, raised after its half is removed.

    ``what`` and ``place`` name it, as in "the index /w/indexes/mine"; ``needed``: the bytes that it takes
    at least, 0 if nobody knows. A hidden name under which it was made is never shown.
    """
    if not is_full(error):
        reason = with_final_names(
            " ".join(str(getattr(error, "strerror", "") or error).split())[-300:]
        )
        mend = "free space or choose another --workspace"
        return DiskError(
            f"Could not write {what} {place}: {reason}. Nothing was left half-written; {mend}."
        )
    return DiskError(
        f"Could not write {what} {place}: the disk is full. {room(place, needed)} Nothing was left of it; "
        "free space or choose another --workspace."
    )


def room(place: Path, needed: int = 0) -> str:
    """What is needed and what is free, as a sentence."""
    free = free_bytes(place)
    if needed > free:
        return f"It takes at least {size(needed)}, and {size(free)} are free."
    return f"It takes more than the {size(free)} that are free."
