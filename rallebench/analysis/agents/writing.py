"""An analysis as files: JSON, CSV, LaTeX, and one HTML page that opens offline."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from rallebench.analysis.agents.report import Analysis
from rallebench.core.errors import UsageError
from rallebench.core.files import disk_error, write_text

STYLE = "body{font:15px system-ui,sans-serif;margin:2em;max-width:1200px;color:#334155}td,th{padding:.2em .7em;text-align:right}td:first-child,th:first-child{text-align:left}"


def files_of(analysis: Analysis) -> dict[str, str]:
    """Name → text of every file of an analysis."""
    document = {"aspect": analysis.aspect, **analysis.value, "notes": list(analysis.notes)}
    files = {f"{analysis.aspect}.json": json.dumps(document, ensure_ascii=False, indent=2) + "\n"}
    for number, table in enumerate(analysis.tables):
        files[f"{analysis.aspect}{f'-{number + 1}' if number else ''}.csv"] = as_csv(table)
    if analysis.tex:
        files[f"{analysis.aspect}.tex"] = analysis.tex
    files[f"{analysis.aspect}.html"] = as_html(analysis)
    return files


def write(analysis: Analysis, folder: Path) -> tuple[str, ...]:
    """Write all files into ``folder``, which is created if needed, and return their paths.

    Each file appears whole or not at all. Raises UsageError if ``folder`` is a file, BackendError if the
    disk is full.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out {folder} is a file; name a folder.")
    files = files_of(analysis)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, error) from error
    for name, text in files.items():
        write_text(folder / name, text)
    return tuple(str(folder / name) for name in files)


def as_csv(table: Mapping[str, Any]) -> str:
    """A table as CSV: numbers with all digits, shares as 0..1, None empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table["columns"])
    writer.writerows(["" if cell is None else cell for cell in row] for row in table["rows"])
    return text.getvalue()


def as_html(analysis: Analysis) -> str:
    """One page with the tables and figures; it opens offline."""
    body = [f"<h1>{escape(analysis.aspect.capitalize())}</h1>"]
    body += [_html_table(table) for table in analysis.tables]
    body += [f"<p>Note: {escape(note)}</p>" for note in analysis.notes]
    for number, figure in enumerate(analysis.figures.values()):
        body.append(
            figure.to_html(
                full_html=False, include_plotlyjs=not number, config={"displaylogo": False}
            )
        )
    return f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{escape(analysis.aspect)}</title><style>{STYLE}</style></head>\n<body>{"".join(body)}</body></html>\n'


def _html_table(table: Mapping[str, Any]) -> str:
    percent = table["percent"]
    columns = "".join(f"<th>{escape(str(name))}</th>" for name in table["columns"])
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(text_of(cell, percent))}</td>" for cell in row) + "</tr>"
        for row in table["rows"]
    )
    return f"<h2>{escape(table['title'])}</h2><table><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table><p>{escape(table['note'])}</p>"


def text_of(value: Any, percent: bool = False) -> str:
    """A cell as text.

    >>> text_of(0.1234, True), text_of(0.1234), text_of(None), text_of(12)
    ('12.3', '0.123', '–', '12')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{100 * value:.1f}" if percent else f"{value:.3f}"
    return str(value)
