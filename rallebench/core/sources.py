"""A user's file or folder, read line by line; bad rows are counted or refused.

The reader of a format takes lines, objects or table rows from its ``Source``, and passes each bad row to ``Source.bad``.
Only one row at a time is in memory.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, overload

from rallebench.core.archives import unpacking
from rallebench.core.errors import BadFileError, Hint
from rallebench.core.files import MAX_LINE_BYTES, json_problem
from rallebench.core.json_lists import Broken, begins_list, elements
from rallebench.core.json_values import JsonValue
from rallebench.core.spreadsheets import unquote_cell
from rallebench.core.types import Json

MAX_KEPT_PROBLEMS = 20
"""The most bad rows with a sentence; further ones are only counted."""

GZIP = b"\x1f\x8b"
MAX_RATIO, MAX_UNPACKED = 200, 2**30
"""A gzip file is refused if it unpacks to more than this multiple of its size and also to more than this number of bytes.
Text packs to a third, very repetitive text to a fiftieth."""

DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, order=True, slots=True)
class Problem:
    """A bad row: its line (from 1; 0 without lines) and one sentence."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid"}

    line: int
    message: str


@dataclass
class Problems:
    """The treatment of bad rows, their number and the first of them.

    Without ``skip`` the first bad row raises BadFileError, with a hint to leave bad rows out if that is ``offered``. With
    ``skip`` bad rows are left out and counted. ``refuse_empty``: a passage without text is a bad row. ``warnings``:
    sentences about the file as a whole, such as an unread rest.
    """

    skip: bool = False
    refuse_empty: bool = False
    offered: bool = False
    count: int = 0
    first: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, line: int, message: str) -> None:
        """Count a bad row, or raise."""
        if not self.skip:
            raise BadFileError(message, hint=Hint("skip-bad") if self.offered else None)
        self.count += 1
        self.first = sorted([*self.first, Problem(line, message)])[:MAX_KEPT_PROBLEMS]


@dataclass
class Source:
    """A file of rows. ``done`` of ``total`` bytes are read; the reader updates ``done``.

    ``unit`` is the name of a row in sentences. ``peeking``: only the first rows are read, so an overlong line ends them.
    """

    path: Path
    problems: Problems = field(default_factory=Problems)
    done: int = 0
    total: int = 0
    unit: str = "line"
    peeking: bool = False

    def __post_init__(self) -> None:
        self.path = Path(self.path)
        if not self.total:
            self.total = sum(os.path.getsize(file) for file in files_in(self.path))

    def where(self, line: int) -> str:
        """The beginning of a sentence about a row."""
        return f"{self.path}, {self.unit} {line}"

    def bad(self, line: int, fault: str) -> None:
        """Report a bad row: ``fault`` continues "FILE, line N" and ends with a full stop."""
        self.problems.add(line, self.where(line) + fault)

    def lines(self) -> Iterator[tuple[int, str]]:
        """(line number from 1, text without its end) of a UTF-8 file, plain or gzipped.

        A line that is too long, binary or not UTF-8 is a bad row. Raises BadFileError if the file cannot be read.
        """
        with self._open_stream() as (handle, raw):
            yield from self._lines(handle, raw)

    @contextmanager
    def _open_stream(self) -> Iterator[tuple[Any, BinaryIO]]:
        """(the file's bytes, unpacked; the raw file). Raises BadFileError if it cannot be read."""
        try:
            with open(self.path, "rb") as raw:
                if raw.peek(2)[:2] == GZIP:
                    packed: Any = _Packed(self.path, gzip.GzipFile(fileobj=raw))
                    yield packed, raw
                else:
                    yield raw, raw
        except FileNotFoundError:
            raise BadFileError(f"{self.path} does not exist.") from None
        except OSError as error:
            raise BadFileError(f"{self.path} cannot be read: {error.strerror or error}.") from None

    def _lines(self, handle: BinaryIO, raw: BinaryIO) -> Iterator[tuple[int, str]]:
        number, plain = 0, handle is raw
        while line := handle.readline(MAX_LINE_BYTES + 1):
            number += 1
            self._check_unpacked(handle, raw)
            if plain:
                self.done += len(line)
            elif number % 1000 == 0:
                self.done = raw.tell()
            if len(line) > MAX_LINE_BYTES:
                self.bad(
                    number,
                    f" is longer than {MAX_LINE_BYTES // 2**20} MB; is this really a file with one record per line?",
                )
                if self.peeking:
                    return
                while not line.endswith(b"\n") and (line := handle.readline(2**20)):
                    self._check_unpacked(handle, raw)
                    self.done += len(line) if plain else 0
                continue
            if b"\0" in line:
                self.bad(number, " holds binary data; a UTF-8 text file is needed.")
                continue
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                self.bad(
                    number,
                    f" is not UTF-8 (byte {error.start} of the line); save the file as UTF-8 and try again.",
                )
                continue
            yield number, text.rstrip("\r\n")

    def _check_unpacked(self, handle: BinaryIO, raw: BinaryIO) -> None:
        """Raise BadFileError for a gzip file that unpacks to far more than text would."""
        if handle is not raw and handle.tell() > max(MAX_UNPACKED, MAX_RATIO * raw.tell()):
            raise BadFileError(
                f"{self.path} is a gzip file that unpacks to more than {MAX_RATIO} times its size and to more than "
                f"{MAX_UNPACKED // 2**20:,} MB; unpack it yourself if it is what you want."
            )

    def objects(self, inside: str = "") -> Iterator[tuple[int, Json]]:
        """(number, object) of JSON lines, without blank lines, or of one JSON list; then ``unit`` is "record".

        ``inside``: the file is an object, and the list is under this key.
        """
        with self._open_stream() as (handle, raw):  # only once, because it may be a pipe
            if not inside and not begins_list(handle):
                rows = self._json_lines(handle, raw)
            else:
                self.unit = "record"
                rows = enumerate(elements(handle, inside), 1)
            for number, value in rows:
                self._check_unpacked(handle, raw)
                self.done = raw.tell() if self.unit == "record" and raw.seekable() else self.done
                if isinstance(value, Broken):
                    self.bad(number, value.fault)
                elif isinstance(value, dict):
                    yield number, value
                else:
                    self.bad(number, f" is not a JSON object but {type(value).__name__}.")

    def _json_lines(self, handle: BinaryIO, raw: BinaryIO) -> Iterator[tuple[int, Any]]:
        """(line number, value or Broken); for the last line, the fault that the file may be cut off."""
        broken: tuple[int, str] | None = None
        for number, line in self._lines(handle, raw):
            if not line.strip():
                continue
            if broken:
                yield broken[0], Broken(f"{broken[1]}.")
                broken = None
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                broken = number, f" is not valid JSON ({json_problem(error)})"
        if broken:
            mend = "it is the last line, so if the file is cut off, download or copy it again"
            yield broken[0], Broken(f"{broken[1]}; {mend}.")

    def table(self) -> Iterator[tuple[int, list[str]]]:
        """(first line, fields) of each CSV row, the header first; fields may hold line ends.

        The delimiter is a tab if the first line has one, else the more frequent of ``,`` and ``;``. Quotes for
        spreadsheets are removed.
        """
        csv.field_size_limit(MAX_LINE_BYTES)  # the default is too small for long texts
        lines = _CsvLines(self.lines())
        first = lines.first().strip()
        delimiter = "\t" if "\t" in first else max(DELIMITERS, key=first.count)
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            lines.begun = 0
            try:
                fields = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                self.bad(
                    lines.begun, f" is not a CSV row ({error}); a quoted field must be closed."
                )
                continue
            if any(value.strip() for value in fields):
                yield lines.begun, list(map(unquote_cell, fields))

    def needs_column(
        self, names: Sequence[str], noun: str, example: str
    ) -> Callable[[int, list[str]], None]:
        """The check of ``named_rows`` for a CSV ``noun`` that needs a column with one of these names; ``example``: a valid
        header."""

        def check(line: int, columns: list[str]) -> None:
            if not set(columns) & set(names):
                raise BadFileError(
                    f"{self.where(line)} names the columns {', '.join(columns)[:200]}, and none is {names[0]!r}; "
                    f"the first row of a CSV {noun} names its columns, for example {example}."
                )

        return check

    def named_rows(
        self, check: Callable[[int, list[str]], None]
    ) -> Iterator[tuple[int, int, dict[str, str]]]:
        """(first line, number from 1, column → stripped field) of each row of a table after the header.

        Columns are in small letters; ``check(line, columns)`` raises for an invalid header. A row with another number of
        fields is a bad row.
        """
        rows = self.table()
        for line, header in itertools.islice(rows, 1):
            names = [name.strip().lower() for name in header]
            check(line, names)
        for number, (line, fields) in enumerate(rows, 1):
            if len(fields) != len(names):
                self.bad(line, f" has {len(fields)} fields where the header names {len(names)}.")
            else:  # the first of two columns with one name counts
                yield line, number, dict(zip(reversed(names), map(str.strip, reversed(fields))))


class _Packed:
    """A gzip file, for reading its rows. Raises BadFileError if it is damaged."""

    def __init__(self, path: Path, handle: gzip.GzipFile) -> None:
        self._path, self._handle = path, handle

    def readline(self, size: int = -1) -> bytes:
        with unpacking(self._path, "gzip file"):
            return self._handle.readline(size)

    def read(self, size: int = -1) -> bytes:
        with unpacking(self._path, "gzip file"):
            return self._handle.read(size)

    def peek(self, size: int) -> bytes:
        with unpacking(self._path, "gzip file"):
            return self._handle.peek(size)

    def tell(self) -> int:
        return self._handle.tell()


@overload
def first_value(row: Mapping[str, str], names: Iterable[str], default: str = "") -> str: ...
@overload
def first_value(row: Json, names: Iterable[str], default: JsonValue = "") -> JsonValue: ...
def first_value(row: Json, names: Iterable[str], default: JsonValue = "") -> JsonValue:
    """The first of these fields with a value other than null and NaN. A whole number in pandas' form, 7.0, becomes 7."""
    values = (row[name] for name in names if row.get(name) is not None)
    value = next((value for value in values if value == value), default)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def has_suffix(*suffixes: str) -> Callable[[Path], bool]:
    """A test for a file's name: it must end with one of these, in small or capital letters, possibly gzipped."""
    return lambda path: path.name.lower().removesuffix(".gz").endswith(suffixes)


class _CsvLines:
    """Lines with their ends for ``csv.reader``. ``begun`` is the number of the first line since it was set to 0."""

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self._lines, self._held = lines, next(lines, None)
        self.begun = 0

    def first(self) -> str:
        """The file's first line, which the iteration yields later."""
        return self._held[1] if self._held else ""

    def __iter__(self) -> _CsvLines:
        return self

    def __next__(self) -> str:
        number, text = self._held or next(self._lines)
        self._held = None
        self.begun = self.begun or number
        return text + "\n"


BESIDE = ("readme", "license", "licence", "notice", "citation", "changelog")
"""Beginnings of the names of files that describe a collection."""


def innermost(folder: Path) -> Path:
    """The folder with the files, where archives nest it in others; descriptive files may lie beside it."""
    while folder.is_dir():
        inside = [path for path in folder.iterdir() if not path.name.startswith(".")]
        folders = [path for path in inside if path.is_dir() and path.name != "qrels"]
        if len(folders) != 1 or not all(
            path in folders or path.name.lower().startswith(BESIDE) for path in inside
        ):
            return folder
        folder = folders[0]
    return folder


def stamps(path: Path) -> list[tuple[str, int, int]]:
    """(path, bytes, time of change) of each file of ``files_in``."""
    stats = ((file, file.stat()) for file in files_in(path))
    return [(str(file.absolute()), stat.st_size, stat.st_mtime_ns) for file, stat in stats]


def files_in(path: Path) -> list[Path]:
    """``path`` itself if it is a file; all files below a folder, sorted, hidden files excluded."""
    if not os.path.isdir(path):
        return [path] if os.path.isfile(path) else []
    files = [p for p in path.rglob("*") if p.is_file()]
    return sorted(
        p for p in files if not any(part.startswith(".") for part in p.relative_to(path).parts)
    )
