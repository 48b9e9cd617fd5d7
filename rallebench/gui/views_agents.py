"""Analyses of agents' runs as the page shows them. Pure: everything is escaped."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.analysis.agents.errors import CLASSES
from rallebench.analysis.agents.report import Analysis
from rallebench.gui.views import badge, note
from rallebench.render import html, latex

ASPECT_NAMES: Mapping[str, str] = {
    "performance": "Scores and ranks",
    "matching": "Matching: where each model is strong",
    "errors": "Errors: how questions ended",
    "deployment": "Deployment: F1 against time and tokens",
    "normalization": "Normalised by a reference",
    "combination": "Combination: the best of all, per question",
}
"""Aspect → what the page calls it."""


def whole(found: Analysis) -> str:
    """Notes, tables, the examples of errors, and files to take away."""
    notes = "".join(note(one) for one in found.notes)
    tables = "".join(html.table(table) for table in found.tables)
    return notes + tables + examples(found.value) + files(found)


def examples(value: Mapping[str, Any]) -> str:
    """The first questions of every class, folded, by system; '' for another aspect than errors."""
    shown = [
        f"<details class='rb-label'><summary><b>{name}</b> {escape(CLASSES[name])}, {escape(one['system'])} "
        f"{badge(str(one['counts'][name]))}{_stops(one['stop_reasons'].get(name, {}))}</summary>{''.join(map(_example, rows))}</details>"
        for one in value.get("systems", ())
        if "examples" in one
        for name, rows in sorted(
            one["examples"].items(), key=lambda pair: list(CLASSES).index(pair[0])
        )
    ]
    return (
        '<div class="rb-section"><h3>Examples of every class</h3></div>' + "".join(shown)
        if shown
        else ""
    )


def _stops(found: Mapping[str, int]) -> str:
    return "".join(badge(f"{reason.replace('_', ' ')} {count}") for reason, count in found.items())


def _example(row: Mapping[str, Any]) -> str:
    golds = " / ".join(row["gold"]) or "none"
    seen = f"<br>seen: {escape(row['observed'])}" if row["observed"] else "<br>seen: nothing"
    reward = "" if row["reward"] is None else f", F1 {row['reward']:.2f}"
    return (
        f'<div class="rb-text"><b>{escape(row["question"])}</b> <span class="rb-basis">{escape(row["qid"])}</span><br>'
        f"gold: {escape(golds)}<br>answer: {escape(row['answer']) or '<i>none</i>'}{reward}{seen}</div>"
    )


def files(found: Analysis) -> str:
    """Links that save the document, and the LaTeX table where there is one."""
    document = json.dumps(found.document, ensure_ascii=False, indent=2)
    tex = (
        html.file_link(f"{found.aspect}.tex", latex.table(found.tex).encode()) if found.tex else ""
    )
    return html.file_link(f"{found.aspect}.json", document.encode()) + tex


def command(
    runs: Sequence[str],
    aspect: str,
    original: bool,
    reference: str,
    sizes: Sequence[str],
    workspace: str,
) -> str:
    """The command line that makes the same, as files."""
    words = [
        "python",
        "-m",
        "rallebench",
        "analyse",
        *runs,
        "--workspace",
        workspace,
        "--aspect",
        aspect,
        "--out",
        f"analysis-{aspect}",
    ]
    words += ["--compat", "original"] * original + (["--reference", reference] if reference else [])
    for size in sizes:
        words += ["--size", size]
    shown = escape(" ".join(map(shlex.quote, words)))
    return f'<details class="rb-label"><summary>The same as files (HTML, CSV, JSON, LaTeX) on the command line</summary><div class="rb-text"><code>{shown}</code></div></details>'
