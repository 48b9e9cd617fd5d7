"""The elements of one JSON list, or the members of one object, read in pieces: published sets are single lists of half a
gigabyte, often in one line.

Also the rows of a smaller file with one object: a list beside a version and similar fields, or the columns of a table.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from rallebench.core.files import json_problem
from rallebench.core.json_values import JsonValue
from rallebench.core.types import Json

PIECE = 2**20
MAX_ELEMENT_CHARACTERS = 64 * 2**20
"""Characters of the longest element."""
SEARCHED = 2**16
"""Characters within which the key of a list must occur."""
_NEAR_END, _WORD = 16, 6
"""An error within this many characters of the end of a piece may come from a cut-off value; at the end of the file, from a
cut-off word such as "false"."""
_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")
_NO_UTF8 = re.compile("[\udc80-\udcff]")


class Peekable(Protocol):
    """A file with bytes that can be read in advance."""

    def peek(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Broken:
    """An unreadable element. ``fault`` continues "FILE, record N" and ends with a full stop."""

    fault: str


DAMAGED = Broken(" is not UTF-8; save the file as UTF-8 and try again.")
CUT = Broken(" is cut off; the file is only a part of the set, so download or copy it again.")


def begins_list(handle: Peekable) -> bool:
    """Return whether a peekable file is one JSON list."""
    return bool(handle.peek(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[")


def parse_lines(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, JsonValue | Broken]]:
    """(number, value or Broken) of numbered lines, without blank ones. The fault of the last line says that the file may be cut
    off.

    >>> list(parse_lines([(1, '{"a": 1}'), (2, " "), (3, "3")]))
    [(1, {'a': 1}), (3, 3)]
    """
    broken: tuple[int, str] | None = None
    for number, line in lines:
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


def elements(handle: BinaryIO, inside: str = "") -> Iterator[JsonValue | Broken]:
    """The elements in order, with a Broken for each unreadable one. ``inside``: the list is under this key of an object.

    >>> import io
    >>> list(elements(io.BytesIO(b'[{"a": 1}, {"b"')))[0], list(elements(io.BytesIO(b'{"rows": [2]}'), "rows"))
    ({'a': 1}, [2])
    """
    text = _Text(handle)
    if not text.enter(inside):
        yield Broken(f" has no list {inside!r}; name a file that has.")
        return
    while (mark := text.mark()) != "]":
        if not mark:
            yield CUT
            return
        value = text.value()
        yield value
        if isinstance(value, Broken) and not text.goes_on:
            return
        if text.mark() == ",":
            text.at += 1
        elif text.mark() not in ("]", ""):
            yield Broken(" is not valid JSON (',' or ']' is missing before it).")
            return
    text.at += 1
    if text.spoils(inside):
        yield Broken(" is not a record: there is text behind the end of the list; remove it.")


def members(handle: BinaryIO) -> Iterator[tuple[str, JsonValue | Broken]]:
    """The members of one object in order, also those with a repeated name, and a Broken for each unreadable one.

    >>> import io
    >>> list(members(io.BytesIO(b'{"q1": "Titan", "q1": null}')))
    [('q1', 'Titan'), ('q1', None)]
    """
    text = _Text(handle)
    for name in text.names():
        if isinstance(name, Broken):
            yield "", name
            return
        value = text.value()
        yield name, value
        if not text.goes_on:
            return
    if text.mark():
        yield "", Broken(" is not a member: there is text behind the end of the object; remove it.")


def columns(handle: BinaryIO) -> Iterator[tuple[str, str, JsonValue | Broken]]:
    """The cells of an object of columns in order, as (column, key of the row, value); a Broken without a column is the last.

    >>> import io
    >>> list(columns(io.BytesIO(b'{"query": {"0": "Who?"}, "answers": {"0": ["Ada"]}}')))
    [('query', '0', 'Who?'), ('answers', '0', ['Ada'])]
    """
    text = _Text(handle)
    for column in text.names():
        for key in [column] if isinstance(column, Broken) else text.names():
            value = key if isinstance(key, Broken) else text.value()
            if isinstance(key, Broken) or not text.goes_on:
                yield "", "", value
                return
            yield str(column), key, value
    if text.mark():
        yield "", "", Broken(" has text behind the end of its object; remove it.")


class _Text:
    """The text that was read but not yet used. ``at``: the next character; ``goes_on``: True if the last bad value has an
    end."""

    def __init__(self, handle: BinaryIO) -> None:
        self._handle = handle
        self._bytes = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._held, self.at, self.goes_on = "", 0, True

    def enter(self, key: str) -> bool:
        """Skip the opening bracket. Returns False if there is none."""
        opening = re.compile(rf'"{re.escape(key)}"\s*:\s*\[' if key else r"\s*\[")
        while not (begin := opening.search(self._held)):
            if len(self._held) > SEARCHED or not self._more(SEARCHED):
                return False
        self.at = begin.end()
        return True

    def mark(self) -> str:
        """The next character that is not blank; '' at the end."""
        while True:
            blank = _BLANK.match(self._held, self.at)
            self.at = blank.end() if blank else self.at
            if self.at < len(self._held):
                return self._held[self.at]
            if not self._more(PIECE):
                return ""

    def names(self) -> Iterator[str | Broken]:
        """The names in the object at this place. The caller reads the value of a name, with ``value``, before the next one; a
        Broken is the last.
        """
        if self.mark() != "{":
            yield Broken(" is not a JSON object.") if self.mark() else CUT
            return
        self.at += 1
        while (mark := self.mark()) != "}":
            name = self.value() if mark == '"' else None
            if not isinstance(name, str) or self.mark() != ":":
                broken = Broken(" is not valid JSON (a name is missing).")
                fault = name if isinstance(name, Broken) else broken
                yield fault if self.mark() else CUT
                return
            self.at += 1
            if not self.mark():
                yield CUT
                return
            yield name
            if self.mark() == ",":
                self.at += 1
            elif self.mark() not in ("}", ""):
                yield Broken(" is not valid JSON (',' or '}' is missing).")
                return
        self.at += 1

    def spoils(self, inside: str) -> bool:
        """Return whether the file continues with more than blanks; ``inside`` an object, whether it continues with invalid
        UTF-8."""
        if not inside:
            return bool(self.mark())
        while not _NO_UTF8.search(self._held, self.at):
            self.at = len(self._held)
            if not self._more(PIECE):
                return False
        return True

    def value(self) -> JsonValue | Broken:
        """The value at this place, or Broken."""
        piece = PIECE
        while True:
            try:
                value, end = _DECODER.raw_decode(self._held, self.at)
            except json.JSONDecodeError as error:
                wrong = not error.msg.startswith("Unterminated string")
                left = len(self._held.rstrip()) - error.pos
                if wrong and left > _NEAR_END:
                    return self._end_at_fault(f" is not valid JSON ({error.msg}).")
                if len(self._held) - self.at > MAX_ELEMENT_CHARACTERS:
                    return self._end_at_fault(
                        " is longer than any record; is this a list of records?"
                    )
                if not self._more(piece):
                    cut = not wrong or left < _WORD
                    return self._end_at_fault(
                        CUT.fault if cut else f" is not valid JSON ({error.msg})."
                    )
                piece *= 2  # an element of many pieces is not decoded again for each
                continue
            except (ValueError, RecursionError) as error:
                many = isinstance(error, ValueError)
                why = "a number has too many digits" if many else "too deeply nested"
                return self._end_at_fault(f" is not valid JSON ({why}).")
            if end == len(self._held):  # a number may go on
                if self._more(piece):
                    continue
                end = len(self._held)
            raw, self.at = self._held[self.at : end], end
            self.goes_on = True
            if _NO_UTF8.search(raw):
                return DAMAGED
            element: JsonValue = value
            return element

    def _end_at_fault(self, fault: str) -> Broken:
        self.goes_on = False
        return Broken(fault)

    def _more(self, size: int) -> bool:
        raw = self._handle.read(size)
        self._held = self._held[self.at :] + self._bytes.decode(raw, final=not raw)
        self.at = 0
        return bool(raw)


def find_rows(value: Json) -> list[Json] | None:
    """The rows in an object: its only list of objects, or its columns (lists of equal length, or objects with equal keys).

    >>> find_rows({"version": 2, "data": [{"question": "Who?"}]})
    [{'question': 'Who?'}]
    >>> find_rows({"question": ["Who?", "When?"], "answer": ["Ada", "1843"]})[1]
    {'question': 'When?', 'answer': '1843'}
    >>> find_rows({"question": {"0": "Who?"}, "answer": {"0": "Ada"}}), find_rows({"question": "Who?"})
    ([{'question': 'Who?', 'answer': 'Ada'}], None)
    """
    lists = [rows for rows in value.values() if _holds_objects(rows)]
    if len(lists) == 1:
        return list(lists[0])
    columns = list(value.values())
    if len(columns) > 1 and not lists:
        if all(isinstance(column, list) for column in columns):
            same = len({len(column) for column in columns}) == 1
            return [dict(zip(value, row)) for row in zip(*columns)] if same else None
        if all(isinstance(column, dict) for column in columns):
            same = all(column.keys() == columns[0].keys() for column in columns)
            return [{n: c[key] for n, c in value.items()} for key in columns[0]] if same else None
    return None


def _holds_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(x, dict) for x in value)
