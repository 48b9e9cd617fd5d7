"""Tables as CSV: numbers with all their digits, shares as 0..1, None empty."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from rallebench.core.tables import Table
from rallebench.render.numbers import mean_of

PARTS = ("value", "low", "high", "n")


def table(value: Table) -> str:
    """A table as CSV, the headings first; a column with means becomes four columns.

    >>> table(Table("", ("run", "EM"), (("a", {"value": 0.5, "low": None, "high": None, "n": 3}),)))
    'run,EM,EM low,EM high,EM n\\na,0.5,,,3\\n'
    """
    means = [
        any(mean_of(row[i]) is not None for row in value.rows) for i in range(len(value.heads))
    ]
    heads: list[str] = []
    for label, wide in zip(value.labels, means):
        heads += [label, *(f"{label} {part}" for part in PARTS[1:])] if wide else [label]
    rows: list[list[Any]] = [heads]
    for row in value.rows:
        line: list[Any] = []
        for cell, wide in zip(row, means):
            mean = mean_of(cell)
            parts = [mean[part] for part in PARTS] if mean is not None else [cell, *[None] * 3]
            line += parts if wide else parts[:1]
        rows.append(line)
    return lines(rows)


def lines(rows: Iterable[Sequence[Any]]) -> str:
    """Rows of cells as CSV; a list is joined by `` | ``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_cell(cell) for cell in row] for row in rows)
    return text.getvalue()


def _cell(cell: Any) -> Any:
    if cell is None:
        return ""
    return " | ".join(cell) if isinstance(cell, list) else cell
