"""Tables as LaTeX."""

from __future__ import annotations

from typing import Any

from rallebench.core.tables import Column, Table

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


def table(value: Table) -> str:
    """A ``tabular``: percentages with one digit, the largest of each such column in bold."""
    best = [
        max((row[i] for row in value.rows if isinstance(row[i], float)), default=None)
        for i in range(len(value.heads))
    ]
    header = " & ".join(map(escaped, value.labels))
    rows = [
        " & ".join(_cell(cell, column, top) for cell, column, top in zip(row, value.heads, best))
        for row in value.rows
    ]
    begin = r"\begin{tabular}{l" + "r" * (len(value.heads) - 1) + "}"
    body = [rf"{row} \\" for row in rows]
    lines = [begin, r"\hline", rf"{header} \\", r"\hline", *body, r"\hline", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def _cell(cell: Any, column: Column, best: float | None) -> str:
    if cell is None:
        return "--"
    if not isinstance(cell, (int, float)):
        return escaped(str(cell))
    if column.format != "percent":
        return f"{cell:g}"
    return rf"\textbf{{{100 * cell:.1f}}}" if cell == best else f"{100 * cell:.1f}"


def escaped(text: str) -> str:
    """Text with LaTeX's special characters escaped.

    >>> escaped("low_freq_ent")
    'low\\\\_freq\\\\_ent'
    """
    return "".join(_SPECIAL.get(character, character) for character in text)
