"""Tables and the data of figures as lines for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from rallebench.core.tables import Table
from rallebench.core.terminal import visible_line
from rallebench.render import numbers


def table(value: Table) -> list[str]:
    """Return the lines of a table: title, headings, rows, note, and the definitions of its columns."""
    rows = [[visible_line(label) for label in value.labels]]
    rows += [
        [visible_line(numbers.text(cell, column.format)) for cell, column in zip(row, value.heads)]
        for row in value.rows
    ]
    unit = " (percent)" if value.percent and value.title else ""
    title = [f"{value.title}{unit}"] if value.title else []
    notes = [value.note] if value.note else []
    notes += [f"{column.label}: {column.help}" for column in value.heads if column.help]
    return [*title, *align(rows), *notes]


def blocks(values: Iterable[Table | str]) -> str:
    """Join sentences and tables, with blank lines around every table."""
    parts: list[str] = []
    after_table = False
    for value in values:
        if not value:
            continue
        is_table = isinstance(value, Table)
        if parts and (is_table or after_table):
            parts.append("")
        parts += table(value) if isinstance(value, Table) else [value]
        after_table = is_table
    return "\n".join(parts)


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows of cells in columns: the first column to the left, the others to the right.

    >>> align([["", "EM"], ["closed book", "1.0"]])
    ['              EM', 'closed book  1.0']
    """
    count = max((len(row) for row in rows), default=0)
    wide = [max((_width(row[i]) for row in rows if i < len(row)), default=0) for i in range(count)]
    return [
        "  ".join(_pad(cell, wide[i], i > 0) for i, cell in enumerate(row)).rstrip() for row in rows
    ]


def _width(cell: str) -> int:
    """Number of terminal columns of a cell; a Chinese character takes two."""
    return sum(
        2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1
        for c in cell
    )


def _pad(cell: str, wide: int, right: bool) -> str:
    blanks = " " * (wide - _width(cell))
    return blanks + cell if right else cell + blanks
