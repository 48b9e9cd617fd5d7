"""The history of a dataset as a table."""

from __future__ import annotations

import time

from rallebench.core.dataset_edits import EditHistory
from rallebench.core.numbers import plural
from rallebench.core.tables import Column, Table

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
