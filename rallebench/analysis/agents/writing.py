"""An analysis as files: JSON, CSV, LaTeX, and one HTML page that opens offline."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from rallebench.analysis.agents.report import Analysed
from rallebench.core.errors import UsageError
from rallebench.core.files import disk_error, write_text

STYLE = "body{font:15px system-ui,sans-serif;margin:2em;max-width:1200px;color:#334155}td,th{padding:.2em .7em;text-align:right}td:first-child,th:first-child{text-align:left}"


def files_of(found: Analysed) -> dict[str, str]:
    """Name → text of every file that an analysis is written as."""
    document = {"aspect": found.aspect, **found.value, "notes": list(found.notes)}
    files = {f"{found.aspect}.json": json.dumps(document, ensure_ascii=False, indent=2) + "\n"}
    for number, table in enumerate(found.tables):
        files[f"{found.aspect}{f'-{number + 1}' if number else ''}.csv"] = as_csv(table)
    if found.tex:
        files[f"{found.aspect}.tex"] = found.tex
    files[f"{found.aspect}.html"] = as_html(found)
    return files


def write(found: Analysed, folder: Path) -> tuple[str, ...]:
    """Write all files into ``folder``, which is made if it is not there; each whole or not at all.

    Raises UsageError if it is a file, BackendError if the disk is full.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out {folder} is a file; name a folder.")
    files = files_of(found)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, error) from error
    for name, text in files.items():
        write_text(folder / name, text)
    return tuple(str(folder / name) for name in files)


def as_csv(table: Mapping[str, Any]) -> str:
    """A table as CSV; numbers with all their digits, shares as they are (0..1), what is not known empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table["columns"])
    writer.writerows(["" if cell is None else cell for cell in row] for row in table["rows"])
    return text.getvalue()


def as_html(found: Analysed) -> str:
    """One page with the tables and figures; it needs no network."""
    body = [f"<h1>{escape(found.aspect.capitalize())}</h1>"]
    body += [_html_table(table) for table in found.tables]
    body += [f"<p>Note: {escape(note)}</p>" for note in found.notes]
    for number, figure in enumerate(found.figures.values()):
        body.append(
            figure.to_html(
                full_html=False, include_plotlyjs=not number, config={"displaylogo": False}
            )
        )
    return f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{escape(found.aspect)}</title><style>{STYLE}</style></head>\n<body>{"".join(body)}</body></html>\n'


def _html_table(table: Mapping[str, Any]) -> str:
    percent = table["percent"]
    heads = "".join(f"<th>{escape(str(head))}</th>" for head in table["columns"])
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(shown(cell, percent))}</td>" for cell in row) + "</tr>"
        for row in table["rows"]
    )
    return f"<h2>{escape(table['title'])}</h2><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table><p>{escape(table['note'])}</p>"


def shown(value: Any, percent: bool = False) -> str:
    """A cell in words.

    >>> shown(0.1234, True), shown(0.1234), shown(None), shown(12)
    ('12.3', '0.123', '–', '12')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{100 * value:.1f}" if percent else f"{value:.3f}"
    return str(value)
