"""Tables as files that a link saves. Pure."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Sequence
from html import escape
from typing import Any


def csv_link(name: str, rows: Sequence[Sequence[Any]]) -> str:
    """A link that saves rows as a CSV file; the page needs no server for it."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [["" if cell is None else cell for cell in row] for row in rows]
    )
    data = base64.b64encode(text.getvalue().encode()).decode()
    return (
        f'<div class="rb-label"><a class="rb-link" download="{escape(name, quote=True)}" '
        f'href="data:text/csv;base64,{data}">Save as CSV</a></div>'
    )
