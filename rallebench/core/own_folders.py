"""The entries of a workspace's folders that have valid names and can be opened. Others are left out, with one line in the
log."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from rallebench.core.errors import UsageError

log = logging.getLogger(__name__)


def list_files(folder: Path, pattern: str) -> list[Path]:
    """The visible files of a folder that match a pattern, or a name in each subfolder (``*/NAME``), sorted.

    Left out: names that are not UTF-8, broken links, pipes and other special files, and unreadable files. A folder in
    place of a file stays, because reading it gives the error.
    """
    inside = pattern.removeprefix("*/") if pattern.startswith("*/") else ""
    matches = sorted(Path(folder).glob("*" if inside else pattern))
    entries = [path for path in matches if not path.name.startswith(".")]
    files = [path / inside for path in entries if _is_there(path / inside)] if inside else entries
    return [file for file in files if _usable(file)]


def is_listed(file: Path) -> bool:
    """Return whether lists show a file; see ``list_files``."""
    return _is_there(file) and _usable(file)


def _is_there(file: Path) -> bool:
    """Return whether a folder has an entry of that name, even a broken link or an unreadable one."""
    try:
        os.lstat(file)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _usable(file: Path) -> bool:
    try:
        str(file).encode()
        if file.is_file() or file.is_dir():
            return True
        reason = "it is neither a file nor a folder"
    except UnicodeEncodeError:
        reason = "its name is not UTF-8"
    except OSError as error:
        reason = error.strerror or type(error).__name__
    _tell(ascii(str(file)), reason)
    return False


@lru_cache(maxsize=1000)
def _tell(file: str, reason: str) -> None:
    """Log it once, because lists are drawn again and again."""
    log.warning("%s is left out of the lists: %s; rename or remove it.", file, reason)


@contextlib.contextmanager
def removing_new_folders(workspace: Path) -> Iterator[None]:
    """After a refused request (UsageError) remove empty folders in ``workspace`` that did not exist before."""
    names = ("indexes", "runs", "corpora", "datasets", "cache", "")
    new = [path for name in names if not (path := Path(workspace) / name).exists()]
    try:
        yield
    except UsageError:
        for folder in new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise
