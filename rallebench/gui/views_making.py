"""Question sets in the making as HTML: every stage with its counts, its first rows, what came out. Pure: all is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.core.errors import StoppedError
from rallebench.core.events import Finished, Progress
from rallebench.gui.views import badge, empty, error, note, progress_bar
from rallebench.gui.views_data import cut_text, table
from rallebench.gui.wording import on_page
from rallebench.services.builders import ExperimentResult, FilledRows

VERDICTS = {
    "recent": "recent",
    "answerable": "answered by its article",
    "closed_book": "asked without the article",
    "without": "right without it",
}
STAGE_NAMES = {
    "1-articles": "Articles",
    "2-dates": "Date filter",
    "3-recency": "Recency filter",
    "4-questions": "Questions",
    "5-checks": "Quality checks",
}


def stage_name(label: str) -> str:
    """How a stage is called on the page.

    >>> stage_name("2-dates"), stage_name("documents")
    ('Date filter', 'Documents')
    """
    return STAGE_NAMES.get(label, label.lstrip("0123456789-").replace("-", " ").capitalize())


def about(text: str) -> str:
    """A line about a maker."""
    return f'<div class="rb-label">{escape(text)}</div>'


def going_on(name: str, said: Sequence[Any], stopping: bool) -> str:
    """How far a making is: the stages that ended, and the one that goes on."""
    filed = {piece.task: counts_of(piece) for piece in said if isinstance(piece, Finished)}
    now = next((piece for piece in reversed(said) if isinstance(piece, Progress)), None)
    state = badge("stopping", "bad") if stopping else badge("making", "page")
    head = f'<div class="rb-label"><b>{escape(name)}</b> {state} <span>{escape(_where(now, filed))}</span></div>'
    bar = progress_bar(now.done, now.total) if now and now.total and now.task not in filed else ""
    return f'<div class="rb-work">{head}{bar}{stages(filed) if filed else ""}</div>'


def counts_of(piece: Finished) -> Mapping[str, Any]:
    """The counts of a stage, or of a suite's run, that has ended."""
    if isinstance(piece.result, FilledRows):
        return piece.result.counts
    run = piece.result
    return {"inputs": run.n, "rows": run.n, "kept": run.n - run.n_errors, "failed": run.n_errors}


def _where(now: Progress | None, filed: Mapping[str, Any]) -> str:
    if now is None or now.task in filed:
        return "starting …" if now is None else ""
    of = f" of {now.total:,}" if now.total else ""
    return f"{stage_name(now.task)}: {now.message or f'{now.done:,}{of}'} …"


def ended(name: str, end: Any) -> str:
    """How a making ended."""
    if isinstance(end, ExperimentResult):
        return f'<div class="rb-work">{_came_out(end.document)}</div>'
    said = (
        note(f"{name}: {end}")
        if isinstance(end, StoppedError)
        else error(f"{name}: {on_page(end)}")
    )
    return f'<div class="rb-work">{said}</div>'


def done(report: Mapping[str, Any]) -> str:
    """What came out, what to know of it, and where it lies."""
    files = "".join(
        f"<li><code>{escape(str(path))}</code></li>" for path in report.get("files", ())
    )
    return (
        _came_out(report)
        + "".join(note(on_page(one)) for one in report.get("notes", ()))
        + f'<ul class="rb-list">{files}</ul>'
    )


def _came_out(report: Mapping[str, Any]) -> str:
    counts, name = report.get("counts", {}), report.get("name", "")
    many = counts.get("questions", 0)
    if many:
        kept = counts.get("articles_kept")
        about = (
            f" on {counts.get('articles_asked_about', 0):,} of {kept:,} articles"
            if kept is not None
            else ""
        )
        told = f"{name}: {many:,} question{'s' * (many != 1)}{about}. It can be chosen in Develop and Benchmark."
    else:
        records = counts.get("records", {})
        told = f"{name}: " + (
            ", ".join(f"{count:,} records in {file}" for file, count in records.items())
            or "no question is left."
        )
    return note(told, "good" if many or any(counts.get("records", {}).values()) else "note")


def stages(counts: Mapping[str, Mapping[str, Any]]) -> str:
    """A row a stage: how many came in and stayed, why others did not, what asking took."""
    heads = [
        ("Stage", False),
        ("In", True),
        ("Kept", True),
        ("Left out", False),
        ("Worth a look", False),
        ("Requests", True),
        ("Tokens", True),
    ]
    return (
        '<div class="rb-wide">'
        + table(heads, [_stage(label, one) for label, one in counts.items()])
        + "</div>"
    )


def _stage(label: str, one: Mapping[str, Any]) -> list[str]:
    left = ", ".join(
        f"{count:,} {escape(reason)}" for reason, count in one.get("left_out", {}).items()
    )
    names = {
        "unknown": "replies could not be read",
        "failed": "failed, tried again next time",
        "edited": "changed by hand",
    }
    worth = "".join(
        badge(f"{one[key]:,} {name}", "bad" if key == "failed" else "")
        for key, name in names.items()
        if one.get(key)
    )
    tokens = f"{one['prompt_tokens']:,} + {one['completion_tokens']:,}" if one.get("calls") else ""
    if one.get("tokens_not_counted"):
        tokens += badge("some not counted", about=f"{one['tokens_not_counted']:,} rows")
    kept = f"{one.get('kept', 0):,}" + (
        f" of {one['rows']:,}" if one.get("rows") != one.get("inputs") else ""
    )
    calls = f"{one['calls']:,}" if one.get("calls") else ""
    return [
        f"<b>{escape(stage_name(label))}</b>",
        f"{one.get('inputs', 0):,}",
        kept,
        left or "none",
        worth,
        calls,
        tokens,
    ]


def rows(found: Sequence[Mapping[str, Any]], path: str) -> str:
    """The first rows of a stage, with what was asked and replied behind a fold."""
    place = f'<div class="rb-label"><span>Edit <code>{escape(path)}</code>, then continue: rows that you changed stay as they are.</span></div>'
    if not found:
        return place + empty("No such row.")
    return place + table(
        [("First rows", False), ("", False)], [[_row(row), _state(row)] for row in found]
    )


def _state(row: Mapping[str, Any]) -> str:
    state = (
        badge("kept", "good") if row["keep"] else badge(str(row.get("why") or "left out"), "bad")
    )
    return (
        state
        + (badge("verdict not read") if row.get("unknown") else "")
        + (badge("by hand", "page") if row.get("edited") else "")
    )


def _row(row: Mapping[str, Any]) -> str:
    parts = [
        f"<code>{cut_text(str(row['id']), 60)}</code>"
        + (f" <b>{cut_text(str(row['title']), 90)}</b>" if row.get("title") else "")
    ]
    facts = [str(row["date"])] if row.get("date") else []
    facts += [f"{row['characters']:,} characters"] if isinstance(row.get("characters"), int) else []
    facts += [f"same as {row['same_as']}"] if row.get("same_as") else []
    facts += [f"like {row['near']}"] if row.get("near") else []
    if facts:
        parts[0] += f' <span class="definition">{escape(", ".join(facts))}</span>'
    if row.get("question"):
        parts.append(cut_text(str(row["question"]), 300))
    if row.get("answers"):
        parts.append(
            f'<span class="definition">answer: {cut_text(" · ".join(map(str, row["answers"])), 160)}</span>'
        )
    if "content" in row:
        parts.append(f'<span class="definition">{cut_text(str(row["content"]), 200)}</span>')
    if row.get("error"):
        parts.append(error(str(row["error"])))
    parts += [
        _asked(label, row[key])
        for key, label in VERDICTS.items()
        if isinstance(row.get(key), Mapping)
    ]
    if row.get("reply") is not None:
        parts.append(_asked("asked", row))
    return "".join(f"<div>{part}</div>" for part in parts)


def _asked(label: str, verdict: Mapping[str, Any]) -> str:
    """A verdict in a line; unfolded, the prompt and the reply as they were."""
    value = verdict.get("value")
    shown = (
        ""
        if "value" not in verdict
        else ": not read"
        if value is None
        else f": {'yes' if value is True else 'no' if value is False else value or 'declined'}"
    )
    reason = f" ({verdict['reason']})" if verdict.get("reason") else ""
    head = f"{escape(label)}{cut_text(shown + reason, 160)}"
    if "reply" not in verdict:
        return f'<span class="definition">{head}</span>'
    body = "".join(
        f'<div class="rb-text">{escape(str(verdict.get(key, "")))}</div>'
        for key in ("prompt", "reply")
    )
    return f'<details class="rb-label"><summary>{head}</summary>{body}</details>'
