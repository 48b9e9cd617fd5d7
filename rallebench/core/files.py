"""Atomic writes, JSON files with line numbers in their errors, and the error for a full disk."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from rallebench.core.errors import BackendError, BadFileError, Hint, UsageError
from rallebench.core.json_values import JsonObject, JsonValue
from rallebench.core.memory import size
from rallebench.core.parts import unfinished_file, with_final_names
from rallebench.core.types import Json

MAX_LINE_BYTES = 64 * 2**20
"""Bytes above which a line is refused; no record of a known dataset is nearly as long."""
READ_AHEAD = 2**18
"""Bytes per read for files with long lines: Python's 8 KB take three times as long."""

_FULL = re.compile(
    r"No space left|Disk quota exceeded|File too large|\d+ requested and \d+ written|\d+ of \d+ bytes are there|iostream error"
)
"""The messages for a full disk, from the system, numpy, hnswlib and DiskANN."""
FREE_SPACE = Hint("free-space")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Write a file beside ``path`` and move it there if the block succeeds; a link stays a link.

    Raises UsageError if ``path`` is a folder or a device, because the file would replace it.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise UsageError(
            f"{path} is {'a folder' if path.is_dir() else 'no plain file'}; name a file to write."
        )
    try:
        with unfinished_file(path) as part:
            with open(part, "xb") as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(part, path)
    except OSError as error:
        raise disk_error(path, error) from error


def write_text(path: Path, text: str | Iterable[str]) -> str:
    """Write UTF-8 text, or pieces of it, whole or not at all; returns its sha256 (64 hex digits).

    Lone surrogates, which some models write, become escapes.
    """
    total = hashlib.sha256()
    with writing(path) as handle:
        for piece in (text,) if isinstance(text, str) else text:
            data = piece.encode("utf-8", "backslashreplace")
            total.update(data)
            handle.write(data)
    return total.hexdigest()


def json_lines(rows: Iterable[JsonObject]) -> Iterator[str]:
    """Rows as the lines of a JSON-lines file."""
    return (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_json(
    path: Path, value: JsonValue, *, indent: int | None = 2, sort_keys: bool = False
) -> None:
    """Write one JSON document, UTF-8, ending with a newline, whole or not at all."""
    write_text(
        path, json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=sort_keys) + "\n"
    )


def read_json(path: Path) -> JsonValue:
    """Read one JSON document. Raises BadFileError, which names the file and the line."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise BadFileError(f"{path} does not exist.") from None
    except UnicodeDecodeError as error:
        raise BadFileError(
            f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8 and try again."
        ) from None
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not text.strip():
        raise BadFileError(f"{path} is empty; it should hold one JSON document.")
    try:
        value: JsonValue = json.loads(text)
        return value
    except (ValueError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise BadFileError(f"{path} is not valid JSON ({line}{json_problem(error)}).") from None


def read_object(path: Path) -> Json:
    """Read a JSON object. Raises BadFileError for any other document."""
    value = read_json(path)
    if not isinstance(value, Mapping):
        raise BadFileError(f"{path} should hold a JSON object.")
    return value


def read_objects(path: Path) -> list[Json]:
    """Read a JSON list of objects. Raises BadFileError for any other document."""
    value = read_json(path)
    rows = value if isinstance(value, list) else [value]
    objects = [row for row in rows if isinstance(row, Mapping)]
    if not isinstance(value, list) or len(objects) < len(rows):
        raise BadFileError(f"{path} should hold a JSON list of objects.")
    return objects


def json_problem(error: Exception) -> str:
    """The cause of a JSON error in a few words."""
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    return (
        "too deeply nested" if isinstance(error, RecursionError) else "a number has too many digits"
    )


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line) of our own append-only file, if it exists. A torn last line is left out."""
    if path.exists():
        with open(path, "rb", buffering=READ_AHEAD) as handle:
            yield from ((n, raw) for n, raw in enumerate(handle, 1) if raw.endswith(b"\n"))


def read_own_jsonl(path: Path) -> Iterator[Json]:
    """Yield the objects of our own append-only file. Raises BadFileError for a damaged line."""
    for number, raw in whole_lines(Path(path)):
        try:
            yield json.loads(raw.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            raise BadFileError(f"{path}, line {number} was damaged by another program.") from None


class Appender:
    """Appends JSON lines to our own file. Each line is flushed; a torn last line is removed first."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._cut_torn_line()
            self._handle = open(self.path, "ab")  # noqa: SIM115 - closed by its owner
        except OSError as error:
            raise disk_error(self.path, error) from error

    def _cut_torn_line(self) -> None:
        if not self.path.exists():
            return
        with open(self.path, "rb+") as handle:
            end = handle.seek(0, os.SEEK_END)
            position = end
            while position > 0:
                step = min(65536, position)
                handle.seek(position - step)
                line_end = handle.read(step).rfind(b"\n")
                if line_end >= 0:
                    position = position - step + line_end + 1
                    break
                position -= step
            if position != end:
                handle.truncate(position)

    def write(self, value: JsonValue) -> int:
        """Append one line and hand it to the operating system; returns its number of bytes."""
        line = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        try:
            self._handle.write(line)
            self._handle.flush()
        except OSError as error:
            raise disk_error(self.path, error) from error
        return len(line)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._handle.close()

    def __enter__(self) -> Appender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file, 64 hex digits; reads pieces of 1 MB."""
    total = hashlib.sha256()
    with open(path, "rb") as handle:
        while piece := handle.read(2**20):
            total.update(piece)
    return total.hexdigest()


# ── a full disk ──────────────────────────────────────────────────────────────


class DiskError(BackendError):
    """A failed write, with a complete sentence."""


def free_bytes(path: Path) -> int:
    """The free bytes for this user on the disk of ``path``, which need not exist."""
    return shutil.disk_usage(_existing(path)).free


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    path = Path(path).absolute()
    return next(p for p in (path, *path.parents) if p.exists())


def is_full(error: BaseException) -> bool:
    """Return whether an error, from any library, means a full disk."""
    return bool(_FULL.search(f"{getattr(error, 'strerror', '') or ''} {error}"))


def disk_error(path: Path, error: BaseException, what: str = "", needed: int = 0) -> DiskError:
    """The error for a failed write, to be raised after the unfinished file is removed.

    ``what`` and ``path`` name the file, as in "the index /w/indexes/mine"; ``needed``: its least size in bytes, 0 if
    unknown. The sentence has the final name of a hidden temporary folder.
    """
    reason = with_final_names(" ".join(str(getattr(error, "strerror", "") or error).split())[-300:])
    if is_full(error):
        reason = no_room(path, error, needed)
    # Free space does not allow a larger file.
    hint = None if reason.startswith(_TOO_LARGE) else FREE_SPACE
    return DiskError(
        f"Could not write {what and f'{what} '}{path}: {reason}. Nothing was left half-written.",
        hint=hint,
    )


def no_room(place: Path, error: BaseException, needed: int = 0) -> str:
    """The reason why a write failed, as a clause: the disk, a quota, or the largest allowed file.

    ``needed``: the least size of the file in bytes, 0 if unknown. Some libraries only report a short write.
    """
    code, words = getattr(error, "errno", None), f"{getattr(error, 'strerror', '')} {error}"
    free, limit = free_bytes(place), _largest_file()
    if code == errno.EDQUOT or "quota exceeded" in words:
        return f"your quota on this disk is used up, whatever is free on it ({size(free)})"
    full = code == errno.ENOSPC or "No space left" in words
    if limit is not None and not full:
        return f"{_TOO_LARGE} {limit:,} bytes in this session (ulimit -f); raise that limit"
    if code == errno.EFBIG or "File too large" in words:
        return f"{_TOO_LARGE} a size that its file system sets; use a folder on another disk"
    if needed > free:
        return f"the disk is full. It takes at least {size(needed)}, and {size(free)} are free"
    if full and not _free_names(place):
        return "the disk holds as many files as it can (its inodes are used up)"
    return f"the disk is full. It takes more than the {size(free)} that are free"


_TOO_LARGE = "no file may grow beyond"


def _largest_file() -> int | None:
    """The largest file in bytes that this process may write, None without a limit."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _free_names(place: Path) -> bool:
    """Return whether the disk of ``place`` can hold another file. Some file systems do not count files."""
    try:
        disk = os.statvfs(_existing(place))
    except (AttributeError, OSError):
        return True
    return disk.f_files == 0 or disk.f_favail > 0
