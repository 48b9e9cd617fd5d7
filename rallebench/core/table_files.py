"""Tables as files for other programs. CSV has all digits, shares as 0..1 and None as empty cells. The other format is
LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from rallebench.core.numbers import as_estimate, spread
from rallebench.core.report import Estimate
from rallebench.core.spreadsheets import quote_cell
from rallebench.core.tables import Cell, Column, Table
from rallebench.core.terminal import visible, visible_line

PARTS = ("value", "low", "high", "n")


def csv_table(value: Table) -> str:
    """A table as CSV with headings; a column with means becomes four columns.

    >>> csv_table(Table("", ("run", "EM"), (("a", Estimate(0.5, None, None, 3)),)))
    'run,EM,EM low,EM high,EM n\\na,0.5,,,3\\n'
    """
    means = [
        any(as_estimate(row[i]) is not None for row in value.rows) for i in range(len(value.heads))
    ]
    heads: list[str] = []
    for label, wide in zip(value.labels, means):
        heads += [label, *(f"{label} {part}" for part in PARTS[1:])] if wide else [label]
    rows: list[list[Any]] = [heads]
    for row in value.rows:
        line: list[Any] = []
        for cell, wide in zip(row, means):
            mean = as_estimate(cell)
            parts = (
                [getattr(mean, part) for part in PARTS] if mean is not None else [cell, *[None] * 3]
            )
            line += parts if wide else parts[:1]
        rows.append(line)
    return csv_lines(
        [visible(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Rows of cells as CSV. A list is joined by `` | ``, and texts like formulas are quoted (see ``spreadsheets``)."""
    end, text = "\r\n", io.StringIO()
    writer = csv.writer(
        text, lineterminator=end
    )  # with another line end, a cell with \r is not quoted
    lines = []
    for row in rows:
        writer.writerow([_csv_cell(cell) for cell in row])
        lines.append(text.getvalue().removesuffix(end) + "\n")
        text.seek(0)
        text.truncate()
    return "".join(lines)


def _csv_cell(cell: Any) -> Any:
    if cell is None:
        return ""
    return quote_cell(" | ".join(map(str, cell)) if isinstance(cell, list) else cell)


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "·": r"$\cdot$",
}


def latex(value: Table) -> str:
    """A ``tabular``: percentages with one digit, the largest of each such column in bold."""
    best = [_largest(row[i] for row in value.rows) for i in range(len(value.heads))]
    header = " & ".join(map(escape_latex, value.labels))
    rows = [
        " & ".join(
            _latex_cell(cell, column, top) for cell, column, top in zip(row, value.heads, best)
        )
        for row in value.rows
    ]
    begin = r"\begin{tabular}{l" + "r" * (len(value.heads) - 1) + "}"
    body = [rf"{row} \\" for row in rows]
    lines = [begin, r"\hline", rf"{header} \\", r"\hline", *body, r"\hline", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def _largest(cells: Iterable[Cell]) -> float | None:
    values = [mean.value if (mean := as_estimate(cell)) else cell for cell in cells]
    return max((value for value in values if isinstance(value, float)), default=None)


def _latex_cell(cell: Any, column: Column, best: float | None) -> str:
    if cell is None:
        return "--"
    if (mean := as_estimate(cell)) is not None:
        return _latex_mean(mean, column, best)
    if not isinstance(cell, (int, float)):
        return escape_latex(str(cell))
    if column.format != "percent":
        return f"{cell:g}"
    return rf"\textbf{{{100 * cell:.1f}}}" if cell == best else f"{100 * cell:.1f}"


def _latex_mean(mean: Estimate, column: Column, best: float | None) -> str:
    """A mean with its interval: ``51.8 $\\pm$ 6.3``, or ``0.0 (0.0--2.2)``."""
    if mean.value is None:
        return "--"
    percent = column.format == "percent"

    def write(part: float) -> str:
        return f"{100 * part:.1f}" if percent else f"{part:.4g}"

    beside = spread(mean, write, (0.0, 1.0) if percent else (None, None))
    beside = beside.replace("±", r"$\pm$").replace("–", "--").replace("−", "$-$")
    value = write(mean.value)
    value = rf"\textbf{{{value}}}" if percent and mean.value == best else value
    return f"{value} {beside}".rstrip()


def escape_latex(text: str) -> str:
    """Text with LaTeX's special characters escaped, in one line, its control characters shown.

    >>> escape_latex("low_freq_ent")
    'low\\\\_freq\\\\_ent'
    """
    return "".join(_SPECIAL.get(character, character) for character in visible_line(text))
