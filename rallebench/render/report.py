"""Sections as one HTML file that opens anywhere, runs no scripts of its own and needs no network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from rallebench import __version__
from rallebench.core.costs import Cost
from rallebench.core.numbers import plural
from rallebench.core.table_files import csv_table, latex
from rallebench.core.tables import Code, Figure, Fold, Section, Table
from rallebench.core.terminal import CONTROLS
from rallebench.render import costs, html, svg

MAX_TEXT_CHARACTERS = 1500
"""Maximum characters of a prompt or response in a report."""

STYLE = Markup("""
:root { --line: #dbe1e8; --soft: #f7f9fb; --accent: #0d9488; color-scheme: light; }
body { font-family: system-ui, sans-serif; max-width: 72rem; margin: 1.5rem auto; padding: 0 1rem; line-height: 1.45; color: #1f2937; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
details { border-bottom: 1px solid var(--line); padding: .3rem 0; } summary { cursor: pointer; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .84rem; background: var(--soft); padding: .5rem; border-radius: 6px; }
table { border-collapse: collapse; font-size: .9rem; } th, td { padding: .25rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th.num, td.num { text-align: right; font-variant-numeric: tabular-nums; }
.rb-wide { overflow-x: auto; } .rb-label, .rb-basis, .rb-empty { color: #64748b; font-size: .84rem; } .rb-link { color: var(--accent); }
.rb-badge { display: inline-block; padding: 0 .4rem; margin-left: .4rem; border-radius: 6px; background: #eef2f7; font-size: .8rem; }
.rb-badge.good { background: #ccfbf1; } .rb-badge.bad { background: #fee2e2; }
""")


def page(title: str, sections: Iterable[Section], written_at: str = "") -> Iterator[str]:
    """Yield the file in pieces, with control characters as escapes. ``written_at``: the time shown on the last line."""
    return (piece.translate(CONTROLS) for piece in _pieces(title, sections, written_at))


def _pieces(title: str, sections: Iterable[Section], written_at: str) -> Iterator[Markup]:
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {svg.ALLOWED}"
    )
    yield Markup(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{}</title>'
        '<meta http-equiv="Content-Security-Policy" content="{}">'
        "<style>{}</style></head><body><h1>{}</h1>"
    ).format(title, policy, STYLE, title)
    for section in sections:
        if section.title:
            yield Markup("<h2>{}</h2>").format(section.title)
        yield from map(block, section.blocks)
    written = f"Written by rallebench {__version__}{f' on {written_at}' if written_at else ''}."
    yield Markup('<p class="rb-label">{}</p></body></html>\n').format(written)


def files(
    name: str,
    document: Mapping[str, Any],
    tables: Sequence[Table],
    figures: Mapping[str, Figure],
    notes: Sequence[str],
    tex: Table | None = None,
) -> dict[str, str]:
    """File name → text: an analysis as JSON, CSV, HTML, and LaTeX if it has such a table."""
    content = {f"{name}.json": json.dumps(document, ensure_ascii=False, indent=2) + "\n"}
    for number, table in enumerate(tables):
        content[f"{name}{f'-{number + 1}' if number else ''}.csv"] = csv_table(table)
    if tex:
        content[f"{name}.tex"] = latex(tex)
    sections = [Section("", (*tables, *(f"Note: {note}" for note in notes)))]
    sections += [Section(title, (figure,)) for title, figure in figures.items()]
    content[f"{name}.html"] = "".join(page(name.capitalize(), sections))
    return content


def block(value: Any) -> Markup:
    """Render a sentence, Table, Figure, Code, Cost or Fold as HTML."""
    if isinstance(value, Table):
        return html.table(value)
    if isinstance(value, Figure):
        name = "-".join(filter(None, [value.kind, *value.x.split()[:1]]))
        return svg.saveable(value, name) or (html.empty(value.empty) if value.empty else Markup())
    if isinstance(value, Cost):
        return Markup().join(map(block, costs.blocks(value)))
    if isinstance(value, Code):
        return Markup("<pre>{}</pre>").format(short(value.text))
    if isinstance(value, Fold):
        mark = Markup(" {}").format(html.badge(value.mark, value.tone)) if value.mark else ""
        inside = Markup().join(map(block, value.blocks))
        return Markup("<details><summary>{}{}</summary>{}</details>").format(
            value.title, mark, inside
        )
    return Markup("<p>{}</p>").format(value)


def short(text: str) -> str:
    """Shorten a text to MAX_TEXT_CHARACTERS; the run's folder has all of it."""
    return (
        text
        if len(text) <= MAX_TEXT_CHARACTERS
        else f"{text[:MAX_TEXT_CHARACTERS]} … ({plural(len(text), 'character')})"
    )
