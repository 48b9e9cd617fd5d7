"""Columns of lists as values: filter, sort and average rows by them. Pure.

A front end declares the columns of its rows once; the same columns filter and sort on the page, the command line and in
Python.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, Union

from rallebench.core.errors import UsageError
from rallebench.core.folding import fold
from rallebench.core.list_filter import FilterError, ListFilter, Term

Row = TypeVar("Row")
Kind = Literal["text", "tags", "date", "share", "number", "count", "seconds", "usd", "bytes"]
"""The kind of a column's cells. A share from 0 to 1 is shown, and filtered, in percent; a date is an ISO time."""
Cell = Union[str, float, None, tuple[str, ...]]
Fits = Callable[[Row], bool]

TEXTUAL = ("text", "tags")
_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    ":": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_UNITS: Mapping[str, Mapping[str, float]] = {
    "share": {"": 0.01, "%": 0.01},
    "seconds": {"": 1.0, "s": 1.0, "ms": 0.001, "min": 60.0, "h": 3600.0},
    "count": {"": 1.0, "k": 1e3, "m": 1e6},
    "bytes": {"": 1e6, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9},
    "usd": {"": 1.0, "$": 1.0},
    "number": {"": 1.0},
}
"""Kind → unit → its factor; "" is the unit of a bare number."""
_NUMBER = re.compile(r"\$?\s*([-−+]?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?)\s*([a-z%$]*)", re.I)
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d)?)?)?)?)?")
_EXAMPLES = {
    "share": "50",
    "seconds": "1.5 or 200ms",
    "count": "100",
    "bytes": "20MB",
    "usd": "0.5",
    "number": "2.5",
}


@dataclass(frozen=True, slots=True)
class ListColumn(Generic[Row]):
    """A column of a list. ``value``: the cell of a row, None if unknown; ``aliases``: further names in filters;
    ``searched``: True if bare words are searched in it; ``averaged``: True if the mean of its cells makes sense.
    """

    name: str
    label: str
    kind: Kind
    value: Callable[[Row], Cell]
    about: str = ""
    aliases: tuple[str, ...] = ()
    searched: bool = False
    averaged: bool = False

    @property
    def is_number(self) -> bool:
        return self.kind not in (*TEXTUAL, "date")


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The filter and order of a list, as written. ``sort``: the name of a column, with "-" before it for the largest
    first; "" keeps the list's own order.
    """

    where: str = ""
    sort: str = ""

    def apply(self, rows: Sequence[Row], columns: Sequence[ListColumn[Row]]) -> list[Row]:
        """Return the rows that fit, in order. Raises FilterError, or UsageError for an unknown column to sort by."""
        return sort_rows(filter_rows(rows, columns, self.where), columns, self.sort)


def find_column(columns: Sequence[ListColumn[Row]], name: str) -> ListColumn[Row] | None:
    """Return the column of a name or alias, in any case; None if there is none."""
    key = fold(name)
    for column in columns:
        if key == fold(column.name) or key in map(fold, column.aliases):
            return column
    return None


def filter_rows(rows: Sequence[Row], columns: Sequence[ListColumn[Row]], where: str) -> list[Row]:
    """Return the rows that fit a filter. Raises FilterError."""
    tests = [_test(term, columns) for term in ListFilter.parse(where).terms]
    return [row for row in rows if all(test(row) for test in tests)]


def sort_rows(rows: Sequence[Row], columns: Sequence[ListColumn[Row]], sort: str) -> list[Row]:
    """Return the rows in order; rows without a value come last. Raises UsageError for an unknown column."""
    if not sort:
        return list(rows)
    column = find_column(columns, sort.removeprefix("-"))
    if column is None:
        sentence = f"There is no column {sort.removeprefix('-')!r} to sort by{_near(sort, columns)}"
        raise UsageError(sentence, "sort")
    keys = [(_sort_key(column, row), row) for row in rows]
    known = [pair for pair in keys if pair[0] is not None]
    known.sort(key=lambda pair: pair[0] or (), reverse=sort.startswith("-"))
    return [row for _, row in known] + [row for key, row in keys if key is None]


def column_mean(rows: Sequence[Row], column: ListColumn[Row]) -> float | None:
    """Return the mean of a column's known numbers; None if there are none."""
    cells = [column.value(row) for row in rows]
    numbers = [cell for cell in cells if isinstance(cell, (int, float))]
    return sum(numbers) / len(numbers) if numbers else None


def _sort_key(column: ListColumn[Row], row: Row) -> tuple[object, ...] | None:
    cell = column.value(row)
    if cell is None or cell == "" or cell == ():
        return None
    if isinstance(cell, tuple):
        return tuple(map(fold, cell))
    if isinstance(cell, str):
        parts = re.split(r"(\d+)", fold(cell))  # k 2 before k 10
        return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)
    return (cell,)


def _test(term: Term, columns: Sequence[ListColumn[Row]]) -> Fits[Row]:
    test = _word_test(term, columns) if not term.name else _column_test(term, columns)
    return (lambda row: not test(row)) if term.negated else test


def _word_test(term: Term, columns: Sequence[ListColumn[Row]]) -> Fits[Row]:
    word, searched = fold(term.value), [column for column in columns if column.searched]

    def test(row: Row) -> bool:
        return any(word in fold(text) for column in searched for text in _texts(column, row))

    return test


def _column_test(term: Term, columns: Sequence[ListColumn[Row]]) -> Fits[Row]:
    column = find_column(columns, term.name)
    if column is None:
        sentence = (
            f"There is no column {term.name!r} (character {term.at + 1}){_near(term.name, columns)}"
        )
        raise FilterError(sentence, term.at)
    if column.kind in TEXTUAL:
        return _text_test(term, column)
    return _date_test(term, column) if column.kind == "date" else _number_test(term, column)


def _near(name: str, columns: Sequence[ListColumn[Row]]) -> str:
    names = {fold(column.name): column.name for column in columns}
    near = difflib.get_close_matches(fold(name.removeprefix("-")), list(names), n=2, cutoff=0.5)
    if near:
        return f". Did you mean {' or '.join(names[word] for word in near)}?"
    return f". The columns are {', '.join([column.name for column in columns][:12])}."


def _texts(column: ListColumn[Row], row: Row) -> tuple[str, ...]:
    cell = column.value(row)
    return cell if isinstance(cell, tuple) else (str(cell),) if cell is not None else ()


def _text_test(term: Term, column: ListColumn[Row]) -> Fits[Row]:
    if term.operator not in (":", "=", "!="):
        raise FilterError(
            f"{term.name!r} (character {term.at + 1}) is a text; write {column.name}:{term.value} in place of "
            f"'{term.operator}'.",
            term.at,
        )
    word = fold(term.value)
    if term.operator == ":":
        return lambda row: any(word in fold(text) for text in _texts(column, row))
    equal = term.operator == "="
    return lambda row: equal == (word in [fold(text) for text in _texts(column, row) or ("",)])


def _date_test(term: Term, column: ListColumn[Row]) -> Fits[Row]:
    if not _DATE.fullmatch(term.value):
        raise FilterError(
            f"'{term.name}{term.operator}' at character {term.at + 1} needs a date, such as 2026-11-01.",
            term.at,
        )
    value, compare = term.value.replace(" ", "T"), _COMPARE[term.operator]

    def test(row: Row) -> bool:
        cell = column.value(row)
        return bool(cell) and compare(str(cell)[: len(value)].replace(" ", "T"), value)

    return test


def _number_test(term: Term, column: ListColumn[Row]) -> Fits[Row]:
    match, units = _NUMBER.fullmatch(term.value.strip()), _UNITS[column.kind]
    factor = units.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise FilterError(
            f"'{term.name}{term.operator}' at character {term.at + 1} needs a number, such as {_EXAMPLES[column.kind]}.",
            term.at,
        )
    written = match[1].replace(",", "").replace("−", "-")
    value = float(written)
    compare = _COMPARE[term.operator]
    digits = len(written.partition("e")[0].partition(".")[2])
    exact = term.operator in ("<", ">", "<=", ">=")

    def test(row: Row) -> bool:
        cell = column.value(row)
        if not isinstance(cell, (int, float)):
            return False
        number = round(cell / factor, 9)
        return bool(compare(number if exact else round(number, digits), value))

    return test
