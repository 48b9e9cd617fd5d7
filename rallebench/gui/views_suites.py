"""Suites as HTML and plots: what they would run, how far they are, their tables, two of them beside each other. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.core.errors import StoppedError
from rallebench.core.events import Finished, Progress, Warned
from rallebench.core.runs import RunResult
from rallebench.core.tables import Format, Table
from rallebench.engine.driver import ExperimentResult
from rallebench.engine.experiment_store import StoredExperiment
from rallebench.gui import views_runs
from rallebench.gui.views import badge, error, note
from rallebench.gui.wording import on_page
from rallebench.render import csv, experiments, html
from rallebench.render.numbers import mean_of, text
from rallebench.services.experiments import changed_settings

# what it would run and cost


def plan(value: Mapping[str, Any]) -> str:
    """The parts with their questions and calls, and what was measured of them."""
    planned = experiments.plan(value)
    *rows, total = planned.rows
    notes = value["probe"]["notes"] if value.get("probe") else value["notes"]
    heads = "".join(
        f'<th class="{"num" if i else ""}">{escape(label)}</th>'
        for i, label in enumerate(planned.labels)
    )
    body = "".join(_plain_row(row) for row in rows) + _plain_row(
        [f"{len(rows)} part{'s' * (len(rows) != 1)} in all", *total[1:]], True
    )
    return (
        f'<div class="rb-label"><b>{escape(value["name"])}</b><span>would run:</span></div><div class="rb-wide">'
        f'<table class="rb-table rb-tight"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>{"".join(note(on_page(one)) for one in notes)}'
    )


def _plain_row(row: Sequence[str], bold: bool = False) -> str:
    shown = [f"<b>{escape(cell)}</b>" if bold else escape(cell) for cell in row]
    return (
        "<tr>"
        + "".join(f'<td class="{"num" if i else ""}">{cell}</td>' for i, cell in enumerate(shown))
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
        else error(f"The probe of {name}: {on_page(end)}")
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
        badge(f"{metric} {text(mean.value)} (n = {mean.n})")
        for metric, mean in list(found.means.items())[:6]
        if mean.value is not None
    )
    failed = badge(f"{found.n_errors} failed", "bad") if found.n_errors else ""
    how = badge("had ended before" if piece.reused else "done", "good")
    told = f"{found.n} question{'s' * (found.n != 1)}, {text(found.seconds, 'duration')}"
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
    return error(f"{name}: {on_page(end)}")


# what came out


def whole(found: StoredExperiment) -> str:
    """A suite's facts, notes and tables."""
    if found.report is None:
        return head(found) + note(
            "It has not ended. Fill the form with it and press Run suite to continue; what was answered is kept."
        )
    own = [html.table(Table.from_json(table)) for table in found.report.get("tables", ())]
    parts = [html.table(table) for table in experiments.parts(found.report)]
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


def own_numbers(means: Mapping[str, Mapping[str, Any]]) -> str:
    """What a run of a suite is worth by the suite's own metrics."""
    return html.table(Table("The suite's own numbers", ("metric", "mean"), tuple(means.items())))


# two beside each other


def beside(first: StoredExperiment, other: StoredExperiment, differences: Table) -> str:
    """Two suites' tables, row by row; a table that only one of them has stands alone. ``differences``: that of both."""
    tables, others = (
        [
            *map(Table.from_json, (one.report or {}).get("tables", ())),
            *experiments.parts(one.report or {"parts": ()}),
        ]
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
                if one.title == table.title and set(one.labels) & {*table.labels[1:]}
            ),
            None,
        )
        if pair is not None:
            left.remove(pair)
            shown += _pair(table, pair, first.name, other.name)
        else:
            shown += note(f"Only {first.name} has this table:") + html.table(table)
    shown += "".join(note(f"Only {other.name} has this table:") + html.table(one) for one in left)
    return shown + (html.table(differences) if differences.rows else "")


def _pair(a: Table, b: Table, first: str, other: str) -> str:
    """Two tables as one: under each row the same row of the other, with the difference of what are numbers in both."""
    columns = {c.label: (c, html.is_numeric(t, i)) for t in (b, a) for i, c in enumerate(t.heads)}
    names = list(dict.fromkeys([*a.labels[1:], *b.labels[1:]]))
    left, right = _rows(a), _rows(b)
    body, lines = "", []
    for key in dict.fromkeys([*left, *right]):
        sides = [(who, rows[key]) for who, rows in ((first, left), (other, right)) if key in rows]
        if len(sides) == 2 and all(
            left[key].get(name) == right[key].get(name)
            for name in left[key].keys() & right[key].keys()
        ):
            sides = [("both", {**right[key], **left[key]})]  # a line of the paper, for instance
        for number, (who, row) in enumerate(sides):
            before = sides[0][1] if number and a.percent == b.percent else {}
            cells = "".join(
                html.cell(
                    row.get(name),
                    columns[name][0].format,
                    columns[name][1],
                    _gap(before.get(name), row.get(name), columns[name][0].format),
                )
                for name in names
            )
            begins = (
                "" if number else f'<td rowspan="{len(sides)}"><b>{escape(text(key[0]))}</b></td>'
            )
            body += f'<tr>{begins}<td class="name">{escape(who)}</td>{cells}</tr>'
            lines.append((key[0], who, *(row.get(name) for name in names)))
    heads = html.head(a.labels[0], False) + "<th>run</th>"
    heads += "".join(html.head(name, columns[name][1]) for name in names)
    merged = Table("", (a.labels[0], "run", *names), tuple(lines))
    link = html.csv_link(html.file_name(f"{a.title} beside"), csv.table(merged))
    return html.paper(a, heads, body, link)


def _rows(table: Table) -> dict[tuple[Any, int], dict[str, Any]]:
    """(first cell, how often it came before) → column → cell."""
    rows: dict[tuple[Any, int], dict[str, Any]] = {}
    for row in table.rows:
        name = text(row[0])
        key = (name, sum(known == name for known, _ in rows))
        rows[key] = dict(zip(table.labels[1:], row[1:]))
    return rows


def _gap(a: Any, b: Any, format: Format) -> str:
    values = [mean["value"] if (mean := mean_of(cell)) else cell for cell in (a, b)]
    if not all(isinstance(value, float) for value in values):
        return ""
    gap = values[1] - values[0]
    return f' <span class="rb-basis">({"+" if gap >= 0 else "−"}{text(abs(gap), format)})</span>'
