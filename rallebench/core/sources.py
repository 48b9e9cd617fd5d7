"""A user's file or folder, read line by line; bad rows are counted or refused.

The reader of a format takes lines, objects or table rows from its ``Source``, and passes each bad row to ``Source.bad``.
Only one row at a time is in memory.
"""

from __future__ import annotations

import csv
import io
import json
import os
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

from rallebench.core.columnar import SUFFIXES, columnar_kind, columnar_rows
from rallebench.core.columns import ColumnMap
from rallebench.core.encodings import UTF8, label
from rallebench.core.errors import BadFileError, Hint
from rallebench.core.files import MAX_LINE_BYTES
from rallebench.core.json_lists import DAMAGED, Broken, begins_list, elements, members, parse_lines
from rallebench.core.json_values import JsonValue
from rallebench.core.numbers import plural
from rallebench.core.spreadsheets import CsvLines, unquote_cell
from rallebench.core.streams import TextStream, open_text, plain_name
from rallebench.core.types import Json

MAX_KEPT_PROBLEMS = 20
"""The most bad rows with a sentence; further ones are only counted."""

MAX_OBJECT_BYTES = 2**26
"""Bytes of the largest object that is read at once."""
MAX_NAMED = 8
"""The most files that a sentence names."""

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
    sentences about the file as a whole, such as an unread rest. ``guessed``: encoding → the files that were read in it though
    none declares it.
    """

    skip: bool = False
    refuse_empty: bool = False
    offered: bool = False
    count: int = 0
    first: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    guessed: dict[str, list[str]] = field(default_factory=dict)

    def add_guess(self, encoding: str, name: str) -> None:
        """Report a guessed encoding; all files with the same one share a sentence."""
        files = self.guessed.setdefault(encoding, [])
        if name in files:
            return
        before = _guess_sentence(encoding, files)
        files.append(name)
        at = self.warnings.index(before) if before in self.warnings else len(self.warnings)
        self.warnings[at : at + 1] = [_guess_sentence(encoding, files)]

    def add(self, line: int, message: str) -> None:
        """Count a bad row, or raise."""
        if not self.skip:
            raise BadFileError(message, hint=Hint("skip-bad") if self.offered else None)
        self.count += 1
        self.first = sorted([*self.first, Problem(line, message)])[:MAX_KEPT_PROBLEMS]


def _guess_sentence(encoding: str, files: Sequence[str]) -> str:
    names = ", ".join([*files[:MAX_NAMED], "…"] if len(files) > MAX_NAMED else files)
    these = "it is" if len(files) == 1 else "they are"
    return (
        f"{plural(len(files), 'file')} read as {label(encoding)}, since {these} not UTF-8: {names}. If letters look wrong, import "
        "again and name the encoding."
    )


def _damage(encoding: str) -> str:
    """The fault of a row with bytes that are not of its file's encoding; '' for UTF-8."""
    if encoding in ("", UTF8):
        return ""
    return f" holds bytes that are not {label(encoding)}; name the right encoding."


@dataclass
class Source:
    """A file of rows, or a folder of such files, whose rows are numbered from one file to the next.

    ``done`` of ``total`` bytes are read; the reader updates ``done``. ``unit`` is the name of a row in sentences.
    ``peeking``: only the first rows are read, so an overlong line ends them. ``encoding``: of the text, '' to detect it.
    ``columns``: the roles of the columns of ``objects`` and ``named_rows``.
    """

    path: Path
    problems: Problems = field(default_factory=Problems)
    done: int = 0
    total: int = 0
    unit: str = "line"
    peeking: bool = False
    encoding: str = ""
    columns: ColumnMap | None = None

    def __post_init__(self) -> None:
        self.path = Path(self.path)
        if not self.total:
            self.total = sum(os.path.getsize(file) for file in files_in(self.path))
        self._begun: list[tuple[int, Path]] = []
        self._file, self._last, self._before = self.path, 0, 0

    def where(self, line: int) -> str:
        """The beginning of a sentence about a row."""
        at = bisect_left(self._begun, line, key=itemgetter(0)) - 1
        first, path = self._begun[at] if at >= 0 else (0, self.path)
        return f"{path}, {self.unit} {line - first}"

    def _parts(self) -> Iterator[Path]:
        """Yield the files of the source in order; the numbers of a file's rows follow ``_last``, the last one before."""
        self._begun, self._last, self._before = [], 0, 0
        for file in table_files(self.path) or [self.path]:
            self._file = file
            self._begun.append((self._last, file))
            yield file
            if self.path != self._file:
                self._before += os.path.getsize(self._file)

    def bad(self, line: int, fault: str) -> None:
        """Report a bad row: ``fault`` continues "FILE, line N" and ends with a full stop."""
        self.problems.add(line, self.where(line) + fault)

    def lines(self) -> Iterator[tuple[int, str]]:
        """(line number from 1, text without its end) of a text file, plain or packed, in any encoding.

        A line that is too long, binary or damaged is a bad row. Raises BadFileError if the file cannot be read.
        """
        for file in self._parts():
            with open_text(file, self.encoding) as (handle, stream):
                yield from self._lines(handle, stream)

    def _lines(
        self, handle: io.BufferedReader[TextStream], stream: TextStream
    ) -> Iterator[tuple[int, str]]:
        before = number = self._last
        while line := handle.readline(MAX_LINE_BYTES + 1):
            self._last = number = number + 1
            self._count(stream, len(line))
            if len(line) > MAX_LINE_BYTES:
                self.bad(
                    number,
                    f" is longer than {MAX_LINE_BYTES // 2**20} MB; is this really a file with one record per line?",
                )
                if self.peeking:
                    return
                while not line.endswith(b"\n") and (line := handle.readline(2**20)):
                    self._count(stream, len(line))
                continue
            if b"\0" in line:
                self.bad(number, " holds binary data; a text file is needed.")
                continue
            if number == before + 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                fault = f" is not UTF-8 (byte {error.start} of the line); save the file as UTF-8, or name its encoding."
                self.bad(number, _damage(stream.encoding) or fault)
                continue
            yield number, text.rstrip("\r\n")

    def _count(self, stream: TextStream, size: int) -> None:
        """Update the bytes read after ``size`` bytes of UTF-8, and report a guessed encoding."""
        if stream.packed or stream.encoding not in ("", UTF8) or not size:
            self.done = self._before + stream.taken
        else:
            self.done += size
        if stream.guessed:
            self.problems.add_guess(stream.encoding, self._file.name)
            stream.guessed = False

    def document(self) -> Json | None:
        """The one JSON object of a ``.json`` file; None for any other file, and for one above MAX_OBJECT_BYTES."""
        if not has_suffix(".json")(self.path) or not self.path.is_file():
            return None
        if os.path.getsize(self.path) > MAX_OBJECT_BYTES:
            return None
        try:
            with open_text(self.path, self.encoding) as (handle, _):
                if handle.peek(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{":
                    return None
                content = handle.read(MAX_OBJECT_BYTES + 1)
                value = json.loads(content) if len(content) <= MAX_OBJECT_BYTES else None
        except (ValueError, RecursionError, BadFileError):
            return None
        if not isinstance(value, dict):
            return None
        self.done = self.total
        return value

    def objects(
        self, inside: str = "", names: Collection[str] | None = None
    ) -> Iterator[tuple[int, Json]]:
        """(number, object) of JSON lines, without blank lines; of one JSON list, when ``unit`` is "record"; or of a Parquet or
        Arrow file, when it is "row".

        ``inside``: the file is an object, and the list is under this key. ``names``: the only columns of a Parquet or Arrow
        file to read, besides those with a role.
        """
        if names is not None and self.columns:
            names = {*names, *self.columns.sources}
        for file in self._parts():
            rows = self._json(inside) if not columnar_kind(file) else self._columnar(file, names)
            for number, value in rows:
                if isinstance(value, Broken):
                    self.bad(number, value.fault)
                elif isinstance(value, dict):
                    yield number, self.map_row(value)
                else:
                    self.bad(number, f" is not a JSON object but {type(value).__name__}.")

    def map_row(self, row: Json) -> Json:
        """Return a row with its columns in their roles."""
        return self.columns.apply(row) if self.columns else row

    def members(self) -> Iterator[tuple[int, str, JsonValue]]:
        """(number from 1, name, value) of the file's one JSON object, also of repeated names; ``unit`` becomes "entry"."""
        self.unit = "entry"
        with open_text(self.path, self.encoding) as (handle, stream):
            for number, (name, value) in enumerate(members(handle), 1):
                self._count(stream, 0)
                if isinstance(value, Broken):
                    self.bad(number, value.fault)
                else:
                    yield number, name, value

    def _json(self, inside: str) -> Iterator[tuple[int, Any]]:
        """(number, value or Broken) of the present file."""
        with open_text(self._file, self.encoding) as (handle, stream):  # once, as it may be a pipe
            if not inside and not begins_list(handle):
                yield from parse_lines(self._lines(handle, stream))
                return
            self.unit = "record"
            for number, value in enumerate(elements(handle, inside), self._last + 1):
                self._count(stream, 0)
                self._last = number
                fault = _damage(stream.encoding) if value is DAMAGED else ""
                yield number, Broken(fault) if fault else value

    def _columnar(
        self, file: Path, names: Collection[str] | None
    ) -> Iterator[tuple[int, Json | Broken]]:
        """(number, row or Broken) of a Parquet or Arrow file."""
        self.unit, size = "row", os.path.getsize(file)
        rows = enumerate(columnar_rows(file, names), self._last + 1)
        for number, (row, share) in rows:
            self.done, self._last = self._before + int(share * size), number
            yield number, row
        self.done = self._before + size

    def table(self) -> Iterator[tuple[int, list[str]]]:
        """(first line, fields) of each CSV row, the header first; fields may hold line ends.

        The delimiter is a tab if the first line has one, else the more frequent of ``,`` and ``;``. Quotes for
        spreadsheets are removed.
        """
        for file in self._parts():
            with open_text(file, self.encoding) as (handle, stream):
                yield from self._table(self._lines(handle, stream))

    def _table(self, text: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
        csv.field_size_limit(MAX_LINE_BYTES)  # the default is too small for long texts
        lines = CsvLines(text)
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
                    f"the first row of a CSV {noun} names its columns, for example {example}.",
                    hint=Hint("columns", names[0]),
                )

        return check

    def named_rows(
        self, check: Callable[[int, list[str]], None]
    ) -> Iterator[tuple[int, int, dict[str, str]]]:
        """(first line, number from 1, column → stripped field) of each row of a table after the header.

        Columns are in small letters; ``check(line, columns)`` raises for an invalid header. A row with another number of
        fields is a bad row.
        """
        number, file = 0, None
        names: list[str] = []
        for line, fields in self.table():
            if file != self._file:  # the first row of each file
                file, names = self._file, [name.strip().lower() for name in fields]
                check(line, self.columns.rename(names) if self.columns else names)
                continue
            number += 1
            if len(fields) != len(names):
                self.bad(line, f" has {len(fields)} fields where the header names {len(names)}.")
            else:  # the first of two columns with one name counts
                row: dict[str, str] = {}
                for name, cell in zip(names, fields):
                    row.setdefault(name, cell.strip())
                yield line, number, {name: cell or "" for name, cell in self.map_row(row).items()}


def has_suffix(*suffixes: str) -> Callable[[Path], bool]:
    """A test for a file's name: it must end with one of these, in small or capital letters, possibly packed."""
    return lambda path: plain_name(path.name.lower()).endswith(suffixes)


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


TABLES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".tab", *SUFFIXES)
"""Ends of the names of files with rows."""


def table_files(path: Path) -> list[Path]:
    """The files of a folder, sorted, if together they are one table: all have the same ending, but for descriptive files.
    Otherwise [], as for a file."""
    files = [file for file in files_in(path) if not file.name.lower().startswith(BESIDE)]
    if not os.path.isdir(path):
        return []
    endings = {plain_name(file.name.lower()).rpartition(".")[2] for file in files}
    return files if len(endings) == 1 and f".{endings.pop()}" in TABLES else []


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
