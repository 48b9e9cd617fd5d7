"""Tables, badges and empty states as HTML with the classes of a report's style sheet. Values are escaped by type."""

from __future__ import annotations

import base64
from typing import Any

from markupsafe import Markup, escape

from rallebench.core.numbers import as_estimate
from rallebench.core.table_files import csv_table
from rallebench.core.tables import Column, Table
from rallebench.render.numbers import interval, text


def table(value: Table) -> Markup:
    """Render a table as in papers, with the interval and count below each mean, and a link that saves it as CSV."""
    unit = Markup(' <small class="rb-basis">percent</small>') if value.percent else Markup()
    title = Markup('<div class="rb-section"><h3>{}{}</h3></div>').format(value.title, unit)
    title = title if value.title else Markup()
    if not value.rows:
        return Markup("{}{}").format(title, empty("This table has no rows."))
    classes = ["num" if _is_numeric(value, i) else "" for i in range(len(value.heads))]
    heads = Markup().join(
        Markup('<th class="{}"{}>{}</th>').format(kind, _tooltip(column.help), column.label)
        for column, kind in zip(value.heads, classes)
    )
    rows = Markup()
    for i, row in enumerate(value.rows):
        cells = (
            Markup('<td class="{}">{}</td>').format(
                kind, _cell(content, column, (i, j) in value.best)
            )
            for j, (content, column, kind) in enumerate(zip(row, value.heads, classes))
        )
        rows += Markup("<tr>{}</tr>").format(Markup().join(cells))
    notes = [escape(value.note)] if value.note else []
    notes += [
        Markup("<b>{}</b>: {}").format(column.label, column.help)
        for column in value.heads
        if column.help
    ]
    below = Markup().join(
        Markup('<div class="rb-label"><span>{}</span></div>').format(note) for note in notes
    )
    return Markup(
        '<div class="rb-paper">{}<div class="rb-wide"><table class="rb-table rb-tight rb-costs"><thead>'
        "<tr>{}</tr></thead><tbody>{}</tbody></table></div>{}</div>{}"
    ).format(title, heads, rows, _csv_link(value), below)


def _tooltip(about: str) -> Markup:
    return Markup(' title="{}"').format(about) if about else Markup()


def _cell(value: Any, column: Column, bold: bool) -> Markup:
    mean = as_estimate(value)
    known = mean is not None and mean.value is not None
    word = escape(text(mean.value if mean and known else value, column.format))
    word = Markup("<b>{}</b>").format(word) if bold else word
    if mean is None or not known:
        return word
    ends = ""
    if mean.low is not None and mean.high is not None:
        ends = interval(mean, column.format, fewer=1).strip("[]").replace(", ", " – ")
    basis = ", ".join(filter(None, [ends, f"n = {mean.n:,}"]))
    return Markup('{}<br><span class="rb-basis">{}</span>').format(word, basis)


def _is_numeric(value: Table, column: int) -> bool:
    """Return whether a column holds numbers and is right-aligned; the first column names the rows."""
    cells = [row[column] for row in value.rows if row[column] is not None]
    return column > 0 and all(
        as_estimate(x) is not None or isinstance(x, (int, float)) for x in cells
    )


def _csv_link(value: Table) -> Markup:
    """Return a link that saves a table as CSV without a server."""
    content = base64.b64encode(csv_table(value).encode()).decode()
    return Markup(
        '<div class="rb-label"><a class="rb-link" download="{}" href="data:text/csv;base64,{}">Save as CSV</a></div>'
    ).format(file_name(value.title), content)


def file_name(title: str) -> str:
    """Turn a table's title into the name of its CSV file.

    >>> file_name("Table 3: all/both")
    'Table-3-all-both.csv'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in title).split())[:80] + ".csv"


def empty(message: str) -> Markup:
    """Render a sentence in place of missing content."""
    return Markup('<div class="rb-text rb-empty">{}</div>').format(message)


def badge(text: str, kind: str = "") -> Markup:
    """Render a small label; ``kind``: ``good``, ``bad`` or ''."""
    return Markup('<span class="rb-badge {}">{}</span>').format(kind, text)
