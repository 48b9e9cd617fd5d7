"""Tables, badges and notes as HTML with the classes of the page's style sheet. Everything is escaped."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import Any

from rallebench.core.numbers import mean_of
from rallebench.core.table_files import csv_lines, csv_table
from rallebench.core.tables import Format, Table
from rallebench.render.numbers import interval, text


def table(value: Table) -> str:
    """A table in the form of papers, every mean with its interval and count below it, and a link that saves it as CSV."""
    if not value.rows:
        return f"{title(value)}{empty('This table has no rows.')}"
    numeric = [is_numeric(value, i) for i in range(len(value.heads))]
    heads = "".join(head(c.label, right, c.help) for c, right in zip(value.heads, numeric))
    rows = ""
    for i, row in enumerate(value.rows):
        cells = (
            cell(x, column.format, right, bold=(i, j) in value.best)
            for j, (x, column, right) in enumerate(zip(row, value.heads, numeric))
        )
        rows += f"<tr>{''.join(cells)}</tr>"
    return paper(value, heads, rows, csv_link(file_name(value.title), csv_table(value)))


def paper(value: Table, heads: str, rows: str, link: str) -> str:
    """The frame of a table: its title, headings and rows, link, note and definitions."""
    return (
        f'<div class="rb-paper">{title(value)}<div class="rb-wide"><table class="rb-table rb-tight rb-costs"><thead><tr>{heads}'
        f"</tr></thead><tbody>{rows}</tbody></table></div>{link}</div>{below(value)}"
    )


def title(value: Table) -> str:
    """The heading of a table; '' without a title."""
    if not value.title:
        return ""
    unit = ' <small class="rb-basis">percent</small>' if value.percent else ""
    return f'<div class="rb-section"><h3>{escape(value.title)}{unit}</h3></div>'


def below(value: Table) -> str:
    """The note of a table and the definitions of its columns."""
    lines = [escape(value.note)] if value.note else []
    lines += [
        f"<b>{escape(column.label)}</b>: {escape(column.help)}"
        for column in value.heads
        if column.help
    ]
    return "".join(f'<div class="rb-label"><span>{line}</span></div>' for line in lines)


def head(label: str, right: bool, help: str = "") -> str:
    """A heading; ``help`` is its tooltip."""
    tooltip = f' title="{escape(help, quote=True)}"' if help else ""
    return f'<th class="{"num" if right else ""}"{tooltip}>{escape(label)}</th>'


def cell(value: Any, format: Format, right: bool, extra: str = "", bold: bool = False) -> str:
    """A cell; ``extra``: HTML behind its number."""
    mean = mean_of(value)
    if mean is None or mean["value"] is None:
        word = escape(text(value, format))
        content = (f"<b>{word}</b>" if bold else word) + extra
    else:
        ends = (
            ""
            if mean["low"] is None or mean["high"] is None
            else interval(mean, format, fewer=1).strip("[]").replace(", ", " – ")
        )
        basis = ", ".join(filter(None, [ends, f"n = {mean['n']:,}"]))
        number = text(mean["value"], format)
        number = f"<b>{number}</b>" if bold else number
        content = f'{number}{extra}<br><span class="rb-basis">{basis}</span>'
    return f'<td class="{"num" if right else ""}">{content}</td>'


def is_numeric(value: Table, column: int) -> bool:
    """Whether a column holds numbers, which are set to the right; the first column names the rows."""
    cells = [row[column] for row in value.rows if row[column] is not None]
    return column > 0 and all(mean_of(x) is not None or isinstance(x, (int, float)) for x in cells)


def csv_link(name: str, content: str | Sequence[Sequence[Any]]) -> str:
    """A link that saves CSV text, or rows of cells, without a server."""
    text = content if isinstance(content, str) else csv_lines(content)
    return file_link(name, text.encode(), "text/csv", "Save as CSV")


def file_link(
    path: str, content: bytes, kind: str = "application/octet-stream", label: str = ""
) -> str:
    """A link that saves a file."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return (
        f'<div class="rb-label"><a class="rb-link" download="{escape(name, quote=True)}" '
        f'href="data:{kind};base64,{base64.b64encode(content).decode()}">{escape(label or f"Save {name}")}</a></div>'
    )


def file_name(title: str) -> str:
    """A table's title as the name of its CSV file.

    >>> file_name("Table 3: all/both")
    'Table-3-all-both.csv'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in title).split())[:80] + ".csv"


def empty(message: str) -> str:
    """A sentence in place of absent content."""
    return f'<div class="rb-text rb-empty">{escape(message)}</div>'


def note(message: str, kind: str = "note") -> str:
    """One sentence; kind ``note`` or ``good``."""
    return f'<div class="rb-{kind}">{escape(message)}</div>' if message else ""


def badge(text: str, kind: str = "", about: str = "") -> str:
    """A small label; kind ``good``, ``bad``, ``page`` or ''; ``about`` is its tooltip."""
    tooltip = f' title="{escape(about, quote=True)}"' if about else ""
    return f'<span class="rb-badge {kind}"{tooltip}>{escape(text)}</span>'
