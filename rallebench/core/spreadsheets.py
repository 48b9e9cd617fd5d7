"""Texts as cells of a spreadsheet. A spreadsheet would run a text that begins like a formula."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_QUOTED = re.compile(r"'+[=+\-@\t\r\n＝＋－＠]")


def quote_cell(cell: T) -> T | str:
    """A cell that a spreadsheet shows unchanged. A text that begins like a formula gets a leading '; numbers stay.

    >>> quote_cell("=1+1"), quote_cell("-0.5"), quote_cell(-0.5), quote_cell("'=x"), quote_cell("plain")
    ("'=1+1", '-0.5', -0.5, "''=x", 'plain')
    """
    if not isinstance(cell, str) or not _FORMULA.match(cell) or _is_number(cell):
        return cell
    return f"'{cell}"


def unquote_cell(cell: str) -> str:
    """Undo ``quote_cell``; any other text stays.

    >>> unquote_cell("'=1+1"), unquote_cell("''=x"), unquote_cell("'tis")
    ('=1+1', "'=x", "'tis")
    """
    return cell[1:] if _QUOTED.match(cell) else cell


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?%?", text, re.ASCII) is not None


class CsvLines:
    """Lines with their ends for ``csv.reader``. ``begun`` is the number of the first line since it was set to 0."""

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self._lines, self._held = lines, next(lines, None)
        self.begun = 0

    def first(self) -> str:
        """The file's first line, which the iteration yields later."""
        return self._held[1] if self._held else ""

    def __iter__(self) -> CsvLines:
        return self

    def __next__(self) -> str:
        number, text = self._held or next(self._lines)
        self._held = None
        self.begun = self.begun or number
        return text + "\n"
