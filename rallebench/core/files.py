"""Files that appear whole or not at all, and JSON files with line numbers in their errors."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from rallebench.core.disk import disk_error
from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.parts import part_of

MAX_LINE_BYTES = 64 * 2**20
"""A longer line is refused; no record of any known dataset comes near it."""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Write a file beside ``path`` and move it there if the block ends well; a link stays a link.

    Raises UsageError if ``path`` is a folder or a device, which the file would replace.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise UsageError(
            f"{path} is {'a folder' if path.is_dir() else 'no plain file'}; name a file to write."
        )
    try:
        with part_of(path) as part:
            with open(part, "xb") as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(part, path)
    except OSError as error:
        raise disk_error(path, error) from error


def write_text(path: Path, text: str | Iterable[str]) -> str:
    """Write UTF-8 text, or pieces of it, whole or not at all; returns its sha256 (64 hex digits).

    A lone surrogate, which some models write, becomes its escape.
    """
    total = hashlib.sha256()
    with writing(path) as handle:
        for piece in (text,) if isinstance(text, str) else text:
            data = piece.encode("utf-8", "backslashreplace")
            total.update(data)
            handle.write(data)
    return total.hexdigest()


def json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Rows as the lines of a JSON-lines file."""
    return (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_json(path: Path, value: Any, *, indent: int | None = 2, sort_keys: bool = False) -> None:
    """Write one JSON document, UTF-8, ending with a newline, whole or not at all."""
    write_text(
        path, json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=sort_keys) + "\n"
    )


def read_json(path: Path) -> Any:
    """Read one JSON document; BadFileError names the file and the line."""
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
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise BadFileError(f"{path} is not valid JSON ({line}{json_problem(error)}).") from None


def json_problem(error: Exception) -> str:
    """The reason of a JSON error in a few words."""
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    return (
        "too deeply nested" if isinstance(error, RecursionError) else "a number has too many digits"
    )


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line) of our own append-only file, if it exists; a torn last line is left out."""
    if path.exists():
        with open(path, "rb") as handle:
            yield from ((n, raw) for n, raw in enumerate(handle, 1) if raw.endswith(b"\n"))


def read_own_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of our own append-only file. Raises BadFileError for a damaged line."""
    for number, raw in whole_lines(Path(path)):
        try:
            yield json.loads(raw.decode("utf-8", "surrogatepass"))
        except ValueError:
            raise BadFileError(f"{path}, line {number} was damaged by another program.") from None


class Appender:
    """Append JSON lines to our own file; each line is flushed, a torn last line is removed first."""

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

    def write(self, value: Any) -> int:
        """Append one line and hand it to the operating system; returns its bytes."""
        line = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        try:
            self._handle.write(line)
            self._handle.flush()
        except OSError as error:
            raise disk_error(self.path, error) from error
        return len(line)

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            self._handle.close()

    def __enter__(self) -> Appender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sha256_file(path: Path) -> str:
    """64 hex digits; reads in pieces of 1 MB."""
    total = hashlib.sha256()
    with open(path, "rb") as handle:
        while piece := handle.read(2**20):
            total.update(piece)
    return total.hexdigest()
