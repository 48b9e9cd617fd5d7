"""Suites as HTML and plots: what they would run, how far they are, their tables, two of them beside each other. Pure."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.core.errors import StoppedError
from rallebench.core.events import Finished, Progress, Warned
from rallebench.core.runs import RunResult
from rallebench.engine.driver import ExperimentResult
from rallebench.engine.experiment_store import StoredExperiment
from rallebench.experiments.papers.text import (
    bounds,
    cell,
    duration,
    figure,
    is_mean,
    parts_tables,
    plan_rows,
)
from rallebench.gui import views_runs
from rallebench.gui.views import badge, empty, error, note
from rallebench.gui.views_csv import csv_link
from rallebench.gui.wording import on_page
from rallebench.services.experiments import changed_settings

Table = Mapping[str, Any]


# what it would run and cost


def plan(value: Mapping[str, Any]) -> str:
    """The parts with their questions and calls, and what was measured of them."""
    head, *rows, total = plan_rows(value)
    notes = value["probe"]["notes"] if value.get("probe") else value["notes"]
    heads = "".join(
        f'<th class="{"num" if i else ""}">{escape(text)}</th>' for i, text in enumerate(head)
    )
    body = "".join(_plain_row(row) for row in rows) + _plain_row(
        [f"{len(rows)} part{'s' * (len(rows) != 1)} in all", *total[1:]], True
    )
    return (
        f'<div class="rb-label"><b>{escape(value["name"])}</b><span>would run:</span></div><div class="rb-wide">'
        f'<table class="rb-table rb-tight"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>{"".join(note(on_page(one)) for one in notes)}'
    )


def _plain_row(row: Sequence[str], bold: bool = False) -> str:
    shown = [f"<b>{escape(text)}</b>" if bold else escape(text) for text in row]
    return (
        "<tr>"
        + "".join(f'<td class="{"num" if i else ""}">{text}</td>' for i, text in enumerate(shown))
        + "</tr>"
    )


def probing(name: str, said: Any, stopping: bool) -> str:
    """How far a probe is."""
    where = f"{said.task}: {said.message or said.done}" if said else "beginning"
    return note(f"{'Stopping the probe' if stopping else 'Probing'} of {name}: {where} …")


def probe_failed(name: str, end: Any) -> str:
    """Why a probe gave nothing."""
    return (
        note(f"The probe of {name} was stopped.")
        if isinstance(end, StoppedError)
        else error(f"The probe of {name}: {on_page(str(end))}")
    )


def command(
    suite: str, llm: str, settings: Mapping[str, Any], limit: int | None, name: str, workspace: str
) -> str:
    """The command line that runs the same; ``settings``: those that are not the defaults."""
    words = ["python", "-m", "rallebench", "suite", suite, "--workspace", workspace, "--name", name]
    words += ["--llm", llm] * bool(llm) + (["--limit", str(limit)] if limit else [])
    for key, value in settings.items():
        words += ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]
    shown = escape(" ".join(shlex.quote(word) for word in words))
    return f'<details class="rb-label"><summary>The same on the command line</summary><div class="rb-text"><code>{shown}</code></div></details>'


# while it runs


def going_on(name: str, said: Sequence[Any], state: Mapping[str, Any], stopping: bool) -> str:
    """The parts that have ended, and the one that runs now, with its bar."""
    ended = [piece for piece in said if isinstance(piece, Finished)]
    now = next((piece for piece in reversed(said) if isinstance(piece, Progress)), None)
    lines = "".join(note(piece.message) for piece in said if isinstance(piece, Warned))
    lines += "".join(part_ended(piece) for piece in ended)
    phase = "stopping" if stopping else "running" if now and now.total else "loading"
    head = f'<div class="rb-label"><b>{escape(name)}</b> {badge(phase, "bad" if stopping else "page")}<span>part {len(ended) + 1}</span></div>'
    if now is None or (said and isinstance(said[-1], Finished)):
        return head + lines + note("The next part is being made …")
    if not now.total:
        return head + lines + note(f"{now.task}: {now.message} …")
    return (
        head
        + lines
        + views_runs.live(now.task, {"done": now.done, "total": now.total, **state}, "", "")
    )


def part_ended(piece: Finished) -> str:
    """A part that has ended, in a line: how, how many, and its means."""
    found: RunResult = piece.result
    means = "".join(
        badge(f"{metric} {figure(mean.value)} (n = {mean.n})")
        for metric, mean in list(found.means.items())[:6]
        if mean.value is not None
    )
    failed = badge(f"{found.n_errors} failed", "bad") if found.n_errors else ""
    how = badge("had ended before" if piece.reused else "done", "good")
    told = f"{found.n} question{'s' * (found.n != 1)}, {duration(found.seconds)}"
    warned = "".join(map(note, found.warnings))
    return f'<div class="rb-label"><span>{escape(found.request.label)}</span>{how}<span>{told}</span>{failed}{means}</div>{warned}'


def ended(name: str, end: Any) -> str:
    """How a suite ended, in a line."""
    if isinstance(end, ExperimentResult):
        parts = f"{len(end.runs)} part{'s' * (len(end.runs) != 1)}"
        return note(f"{name}: {parts} done. Its tables are below.", "good") + note(end.warning)
    if isinstance(end, StoppedError):
        return note(
            f"{name} was stopped; what was answered is kept. Press Run suite with the same settings and name to continue."
        )
    return error(f"{name}: {on_page(str(end))}")


# what came out


def whole(found: StoredExperiment) -> str:
    """A suite's facts, notes and tables."""
    if found.report is None:
        return head(found) + note(
            "It has not ended. Fill the form with it and press Run suite to continue; what was answered is kept."
        )
    own = [shown for table in found.report.get("tables", ()) for shown in [one_table(table)]]
    parts = [one_table(table) for table in parts_tables(found.report)]
    notes = "".join(note(on_page(one)) for one in found.report.get("notes", ()))
    return head(found) + notes + "".join(own + parts)


def head(found: StoredExperiment) -> str:
    """Name, suite and request of a suite that was run, as badges."""
    asked = found.request
    facts = [
        found.kind,
        str(asked.get("llm") or ""),
        f"first {asked['limit']} questions" if asked.get("limit") else "",
    ]
    facts += [f"{key} {value}" for key, value in changed_settings(found).items()]
    report = found.report or {}
    made = str(report.get("made", ""))[:16].replace("T", " ")
    badges = "".join(badge(fact) for fact in [*facts, f"made {made}" if made else ""] if fact)
    state = badge("done", "good") if found.report else badge("not ended", "bad")
    return f'<div class="rb-label"><b>{escape(found.name)}</b>{state}{badges}</div>'


def one_table(table: Table) -> str:
    """A table as papers print it: every mean with its interval and number of questions."""
    columns, told = table["columns"], table.get("definitions", {})
    numbers = [_is_number(table, i) for i in range(len(columns))]
    heads = "".join(_head(text, right, told.get(text, "")) for text, right in zip(columns, numbers))
    body = "".join(
        "<tr>"
        + "".join(_cell(one, table["percent"], right) for one, right in zip(row, numbers))
        + "</tr>"
        for row in table["rows"]
    )
    if not table["rows"]:
        return _title(table) + empty("This table has no rows.")
    return (
        f'<div class="rb-paper">{_title(table)}<div class="rb-wide"><table class="rb-table rb-tight rb-costs"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{csv_link(file_name(table['title']), csv_rows(table))}</div>{_below(table)}"
    )


def own_numbers(means: Mapping[str, Mapping[str, Any]]) -> str:
    """What a run of a suite is worth by the suite's own metrics."""
    rows = [[name, mean] for name, mean in means.items()]
    return one_table(
        {
            "title": "The suite's own numbers",
            "columns": ["metric", "mean"],
            "rows": rows,
            "percent": False,
            "note": "",
        }
    )


def _title(table: Table) -> str:
    unit = ' <small class="rb-basis">percent</small>' if table["percent"] else ""
    return f'<div class="rb-section"><h3>{escape(table["title"])}{unit}</h3></div>'


def _below(table: Table) -> str:
    told = [
        f"<b>{escape(key)}</b>: {escape(text)}"
        for key, text in table.get("definitions", {}).items()
        if text
    ]
    said = [escape(table["note"])] if table.get("note") else []
    return "".join(f'<div class="rb-label"><span>{one}</span></div>' for one in [*said, *told])


def _head(text: str, right: bool, about: str = "") -> str:
    title = f' title="{escape(about, quote=True)}"' if about else ""
    return f'<th class="{"num" if right else ""}"{title}>{escape(str(text))}</th>'


def _cell(value: Any, percent: bool, right: bool, extra: str = "") -> str:
    if is_mean(value) and value["value"] is not None:
        between = bounds(value, percent).strip(" []").replace(", ", " – ")
        basis = ", ".join(filter(None, [between, f"n = {value['n']:,}"]))
        shown = f'{figure(value["value"], percent)}{extra}<br><span class="rb-basis">{basis}</span>'
    else:
        shown = escape(cell(value, percent)) + extra
    return f'<td class="{"num" if right else ""}">{shown}</td>'


def _is_number(table: Table, column: int) -> bool:
    """Whether a column holds figures, to be set to the right; the first one names the rows."""
    cells = [row[column] for row in table["rows"] if row[column] is not None]
    return column > 0 and all(is_mean(one) or isinstance(one, (int, float)) for one in cells)


def csv_rows(table: Table) -> list[list[Any]]:
    """The same for a CSV file: a mean becomes four columns, numbers keep all their digits."""
    wide = [any(is_mean(row[i]) for row in table["rows"]) for i in range(len(table["columns"]))]
    found: list[list[Any]] = [[]]
    for text, means in zip(table["columns"], wide):
        found[0] += [text, f"{text} low", f"{text} high", f"{text} n"] if means else [text]
    for row in table["rows"]:
        line: list[Any] = []
        for value, means in zip(row, wide):
            parts = (
                [value[key] for key in ("value", "low", "high", "n")]
                if is_mean(value)
                else [value, *[None] * 3]
            )
            line += parts if means else parts[:1]
        found.append(line)
    return found


def file_name(title: str) -> str:
    """A table's title as the name of its CSV file.

    >>> file_name("Table 3: all/both")
    'Table-3-all-both.csv'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in title).split())[:80] + ".csv"


def file_link(path: str, data: bytes) -> str:
    """A link that saves a file."""
    name = escape(path.replace("\\", "/").rpartition("/")[2], quote=True)
    content = base64.b64encode(data).decode()
    return f'<div class="rb-label"><a class="rb-link" download="{name}" href="data:application/octet-stream;base64,{content}">Save {name}</a></div>'


# two beside each other


def beside(first: StoredExperiment, other: StoredExperiment, differences: Table) -> str:
    """Two suites' tables, row by row; a table that only one of them has stands alone. ``differences``: that of both."""
    tables, others = (
        [*(one.report or {}).get("tables", ()), *parts_tables(one.report or {"parts": ()})]
        for one in (first, other)
    )
    missing = [one.name for one in (first, other) if one.report is None]
    shown = (
        head(first)
        + head(other)
        + "".join(note(f"{name} has not ended, so it has no tables yet.") for name in missing)
    )
    left = list(others)
    for table in tables:
        pair = next(
            (
                one
                for one in left
                if one["title"] == table["title"] and set(one["columns"]) & {*table["columns"][1:]}
            ),
            None,
        )
        if pair is not None:
            left.remove(pair)
            shown += _pair(table, pair, first.name, other.name)
        else:
            shown += note(f"Only {first.name} has this table:") + one_table(table)
    shown += "".join(note(f"Only {other.name} has this table:") + one_table(one) for one in left)
    return shown + (one_table(differences) if differences["rows"] else "")


def _pair(a: Table, b: Table, first: str, other: str) -> str:
    """Two tables as one: under each row the same row of the other, with the difference of what are numbers in both."""
    names = list(dict.fromkeys([*a["columns"][1:], *b["columns"][1:]]))
    right_of = {
        t["columns"][i]: _is_number(t, i) for t in (b, a) for i in range(1, len(t["columns"]))
    }
    left, right = _rows(a), _rows(b)
    body, lines = "", []
    for key in dict.fromkeys([*left, *right]):
        sides = [
            (who, rows[key], table["percent"])
            for who, rows, table in ((first, left, a), (other, right, b))
            if key in rows
        ]
        if len(sides) == 2 and all(
            left[key].get(name) == right[key].get(name)
            for name in left[key].keys() & right[key].keys()
        ):
            sides = [
                ("both", {**right[key], **left[key]}, a["percent"])
            ]  # a line of the paper, for instance
        for number, (who, row, percent) in enumerate(sides):
            before = sides[0][1] if number and a["percent"] == b["percent"] else {}
            cells = "".join(
                _cell(
                    row.get(name),
                    percent,
                    right_of[name],
                    _gap(before.get(name), row.get(name), percent),
                )
                for name in names
            )
            begins = (
                f'<td rowspan="{len(sides)}"><b>{escape(cell(key[0]))}</b></td>'
                if not number
                else ""
            )
            body += f'<tr>{begins}<td class="name">{escape(who)}</td>{cells}</tr>'
            lines.append([key[0], who, *(row.get(name) for name in names)])
    heads = (
        "".join(_head(text, i > 0) for i, text in enumerate([a["columns"][0]]))
        + "<th>run</th>"
        + "".join(_head(text, right_of[text]) for text in names)
    )
    merged = {"columns": [a["columns"][0], "run", *names], "rows": lines}
    return (
        f'<div class="rb-paper">{_title(a)}<div class="rb-wide"><table class="rb-table rb-tight rb-costs"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{csv_link(file_name(a['title'] + ' beside'), csv_rows(merged))}</div>{_below(a)}"
    )


def _rows(table: Table) -> dict[tuple[Any, int], dict[str, Any]]:
    """(first cell, how often it came before) → column → cell."""
    found: dict[tuple[Any, int], dict[str, Any]] = {}
    for row in table["rows"]:
        name = cell(row[0])
        key = (name, sum(known == name for known, _ in found))
        found[key] = dict(zip(table["columns"][1:], row[1:]))
    return found


def _gap(a: Any, b: Any, percent: bool) -> str:
    values = [one["value"] if is_mean(one) else one for one in (a, b)]
    if not all(isinstance(value, float) for value in values):
        return ""
    gap = values[1] - values[0]
    return f' <span class="rb-basis">({"+" if gap >= 0 else "−"}{figure(abs(gap), percent)})</span>'
