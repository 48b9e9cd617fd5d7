"""A dataset as the lines of its file: one question a line. A change replaces only its own lines, so that it can be reversed to
the same bytes.
"""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from rallebench.core.dataset_edits import LineChange
from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.files import json_problem, sha256_file, writing
from rallebench.core.types import Example, Json, Question
from rallebench.datasets.kilt import read_gold, record_id, record_input

DIGITS = 16
"""Hex digits of the digest of a file."""


class LineGoneError(UsageError):
    """A line to be changed is not in the file any more."""


@dataclass(frozen=True)
class QuestionLines:
    """The lines of a file of questions. ``lines``: without their ends; the last one is empty if the file ends with a line end.
    ``mark``: a byte order mark at its beginning.
    """

    path: Path
    lines: tuple[str, ...] = ("",)
    mark: bool = False

    @cached_property
    def places(self) -> dict[str, int]:
        """Question id → its line. Raises BadFileError for a bad line and a doubled id."""
        places: dict[str, int] = {}
        for number, line in enumerate(self.lines):
            if line.strip():
                qid = record_id(self._parse(number), self._where(number))
                if qid in places:
                    raise BadFileError(
                        f"{self._where(number)} repeats the id {qid!r} of line {places[qid] + 1}; every question needs its own."
                    )
                places[qid] = number
        return places

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """The questions with their gold. Raises BadFileError."""
        return tuple(self._example(qid, number) for qid, number in self.places.items())

    @property
    def end(self) -> int:
        """The position of a further question."""
        return len(self.lines) - (not self.lines[-1])

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        text = "\n".join(self.lines).encode("utf-8", "backslashreplace")
        return (codecs.BOM_UTF8 if self.mark else b"") + text

    @property
    def digest(self) -> str:
        """The digest of the file, see ``file_digest``."""
        return hashlib.sha256(self.content).hexdigest()[:DIGITS]

    def record(self, qid: str) -> Json | None:
        """Return the record of a question; None if it is not in the file."""
        place = self.places.get(qid)
        return None if place is None else self._parse(place)

    def change(self, qid: str, record: Json | None) -> LineChange:
        """Return the change that gives a question another record, or without a record deletes it."""
        place = self.places[qid]
        before = self.lines[place]
        return LineChange(place, qid, before, None if record is None else _as_line(record, before))

    def addition(self, qid: str, record: Json, number: int = 0) -> LineChange:
        """Return the change that adds a question at the end, after ``number`` other additions."""
        return LineChange(self.end + number, qid, None, _as_line(record))

    def apply(self, changes: Iterable[LineChange]) -> QuestionLines:
        """Return the lines after some changes, each of which counts from the result of those before it.

        Raises LineGoneError if a line to be changed is not there as it was.
        """
        lines = list(self.lines)
        for change in changes:
            if change.before is None:
                lines.insert(min(change.position, len(lines)), change.after or "")
                continue
            place = _find(lines, change)
            lines[place : place + 1] = [] if change.after is None else [change.after]
        return replace(self, lines=tuple(lines) or ("",))

    def write(self) -> None:
        """Write the file, whole or not at all."""
        with writing(self.path) as handle:
            handle.write(self.content)

    def _where(self, number: int) -> str:
        return f"{self.path}, line {number + 1}"

    def _parse(self, number: int) -> Json:
        try:
            record: object = json.loads(self.lines[number])
        except (ValueError, RecursionError) as error:
            problem = json_problem(error)
            raise BadFileError(
                f"{self._where(number)} is not valid JSON ({problem}); mend it, or edit a copy of the dataset."
            ) from None
        if not isinstance(record, dict):
            raise BadFileError(
                f"{self._where(number)} is not a JSON object; edit a copy of the dataset."
            )
        return record

    def _example(self, qid: str, number: int) -> Example:
        record, where = self._parse(number), self._where(number)
        return Example(Question(qid, record_input(record, where)), read_gold(record, where), record)


def read_lines(path: Path) -> QuestionLines:
    """Read the lines of a file of questions; a missing one has none. Raises BadFileError."""
    try:
        data = path.read_bytes()
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except FileNotFoundError:
        return QuestionLines(path)
    except UnicodeDecodeError as error:
        raise BadFileError(
            f"{path} is not UTF-8 text (byte {error.start}); edit a copy of the dataset."
        ) from None
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror or error}.") from None
    return QuestionLines(path, tuple(text.split("\n")), data.startswith(codecs.BOM_UTF8))


def file_digest(path: Path) -> str:
    """Hex digits over the bytes of a file; of no bytes if it is missing."""
    return (sha256_file(path) if path.is_file() else hashlib.sha256().hexdigest())[:DIGITS]


def reverse(changes: Sequence[LineChange]) -> Iterator[LineChange]:
    """Yield the changes that take back ``changes``."""
    return (change.inverse for change in reversed(changes))


def _as_line(record: Json, before: str | None = None) -> str:
    """Return a record as a line, with the carriage return of the line that it replaces."""
    line = json.dumps(dict(record), ensure_ascii=False)
    line = line.encode("utf-8", "backslashreplace").decode("utf-8")
    return line + "\r" if before is not None and before.endswith("\r") else line


def _find(lines: Sequence[str], change: LineChange) -> int:
    """Return the line to be changed, where it was or elsewhere."""
    if change.position < len(lines) and lines[change.position] == change.before:
        return change.position
    places = [place for place, line in enumerate(lines) if line == change.before]
    if not places:
        raise LineGoneError(
            f"The question {change.qid!r} was changed again since; undo the later edit first."
        )
    return places[0]
