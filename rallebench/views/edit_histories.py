"""The history of a dataset: as a table, its edits in words, and the questions that differ from the first version."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from rallebench.core.dataset_edits import EditHistory, LineChange
from rallebench.core.errors import RalleError
from rallebench.core.numbers import plural
from rallebench.core.tables import Column, Table
from rallebench.core.types import Json
from rallebench.datasets.drafts import read_draft
from rallebench.datasets.fields import UNANSWERABLE

WORDS = {
    "add": "added",
    "change": "changed",
    "delete": "deleted",
    "undo": "undid edit",
    "return": "returned to edit",
}


def history_table(name: str, history: EditHistory) -> Table:
    """Return one row per edit, oldest first: its number, time, kind and questions."""
    rows = []
    for number, edit in enumerate(history.edits, 1):
        ids = list(dict.fromkeys(change.qid for change in edit.changes))
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(edit.time))
        words = " ".join(filter(None, (WORDS[edit.kind], edit.about)))
        named = ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
        rows.append((number, when, words, named))
    columns = (
        Column("edit", "count"),
        Column("time", "text"),
        Column("what", "text"),
        Column("questions", "text"),
    )
    title = f"{name}: {plural(len(rows), 'edit')}"
    return Table(title, columns, tuple(rows), note=history.problem)


EDITED_PARTS = ("id", "input", "output", "group", *UNANSWERABLE)
"""Keys of a record that an edit draws as parts of the question."""


def edited_questions(history: EditHistory) -> Mapping[str, str]:
    """Return id → "added" or "changed", for the questions that differ from the first version of a dataset."""
    first: dict[str, str | None] = {}
    last: dict[str, str | None] = {}
    for edit in history.edits:
        for change in edit.changes:
            first.setdefault(change.qid, change.before)
            last[change.qid] = change.after
    return {
        qid: "added" if before is None else "changed"
        for qid, before in first.items()
        if last[qid] is not None and last[qid] != before
    }


def change_words(change: LineChange) -> tuple[str, str]:
    """Return a changed question in words, before and after; '' where there is none."""
    return _line_words(change.before), _line_words(change.after)


def _line_words(line: str | None) -> str:
    """Return a line of the file as words: the question, its answers, its gold pages, and the rest of its record."""
    if line is None:
        return ""
    try:
        record: Json = dict(json.loads(line))
        draft = read_draft(record)
    except (RalleError, ValueError, TypeError, RecursionError):
        return line
    pages = " or ".join(
        " and ".join(page.title or page.page_id or page.doc_id for page in pages)
        for pages in draft.evidence
    )
    parts = {
        "Answers": " | ".join(draft.answers) or ("declining is right" * draft.unanswerable),
        "Gold pages": pages,
        "Group": draft.group,
    }
    parts |= {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in record.items()
        if key not in EDITED_PARTS
    }
    lines = (f"{name}: {words[:2000]}" for name, words in parts.items() if words)
    return "\n".join([draft.text, *lines])
