"""Tables, badges and empty content as HTML with the classes of a report's style sheet. Everything is escaped."""

from __future__ import annotations

import base64
from html import escape
from typing import Any

from rallebench.core.numbers import mean_of
from rallebench.core.table_files import csv_table
from rallebench.core.tables import Column, Table
from rallebench.render.numbers import interval, text


def table(value: Table) -> str:
    """A table in the form of papers, every mean with its interval and count below it, and a link that saves it as CSV."""
    unit = ' <small class="rb-basis">percent</small>' if value.percent else ""
    title = f'<div class="rb-section"><h3>{escape(value.title)}{unit}</h3></div>'
    title = title if value.title else ""
    if not value.rows:
        return f"{title}{empty('This table has no rows.')}"
    classes = ["num" if _is_numeric(value, i) else "" for i in range(len(value.heads))]
    heads = "".join(
        f'<th class="{kind}"{_tooltip(column.help)}>{escape(column.label)}</th>'
        for column, kind in zip(value.heads, classes)
    )
    rows = ""
    for i, row in enumerate(value.rows):
        cells = (
            f'<td class="{kind}">{_cell(content, column, (i, j) in value.best)}</td>'
            for j, (content, column, kind) in enumerate(zip(row, value.heads, classes))
        )
        rows += f"<tr>{''.join(cells)}</tr>"
    notes = [escape(value.note)] if value.note else []
    notes += [
        f"<b>{escape(column.label)}</b>: {escape(column.help)}"
        for column in value.heads
        if column.help
    ]
    below = "".join(f'<div class="rb-label"><span>{note}</span></div>' for note in notes)
    return (
        f'<div class="rb-paper">{title}<div class="rb-wide"><table class="rb-table rb-tight rb-costs"><thead><tr>{heads}'
        f"</tr></thead><tbody>{rows}</tbody></table></div>{_csv_link(value)}</div>{below}"
    )


def _tooltip(about: str) -> str:
    return f' title="{escape(about, quote=True)}"' if about else ""


def _cell(value: Any, column: Column, bold: bool) -> str:
    mean = mean_of(value)
    known = mean is not None and mean["value"] is not None
    word = escape(text(mean["value"] if mean and known else value, column.format))
    word = f"<b>{word}</b>" if bold else word
    if mean is None or not known:
        return word
    ends = ""
    if mean["low"] is not None and mean["high"] is not None:
        ends = interval(mean, column.format, fewer=1).strip("[]").replace(", ", " – ")
    basis = ", ".join(filter(None, [ends, f"n = {mean['n']:,}"]))
    return f'{word}<br><span class="rb-basis">{basis}</span>'


def _is_numeric(value: Table, column: int) -> bool:
    """Whether a column holds numbers, which are set to the right; the first column names the rows."""
    cells = [row[column] for row in value.rows if row[column] is not None]
    return column > 0 and all(mean_of(x) is not None or isinstance(x, (int, float)) for x in cells)


def _csv_link(value: Table) -> str:
    """A link that saves a table as CSV without a server."""
    content = base64.b64encode(csv_table(value).encode()).decode()
    return (
        f'<div class="rb-label"><a class="rb-link" download="{escape(file_name(value.title), quote=True)}" '
        f'href="data:text/csv;base64,{content}">Save as CSV</a></div>'
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


def badge(text: str, kind: str = "") -> str:
    """A small label; kind ``good``, ``bad`` or ''."""
    return f'<span class="rb-badge {kind}">{escape(text)}</span>'
