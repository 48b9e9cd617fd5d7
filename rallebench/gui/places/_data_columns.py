"""The columns of a table in the import panel: one chooser for each role, filled with the guess, beside the first values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from rallebench.core.columns import Columns
from rallebench.gui import form, html
from rallebench.gui.events import Event
from rallebench.services.import_previews import Looked
from rallebench.services.import_tables import TableColumns

PREFIX = "column_"
LABELS: Mapping[str, str] = {
    "question": "Question",
    "answer": "Answer",
    "page": "Page",
    "id": "Id",
    "group": "Group",
    "text": "Text",
    "title": "Title",
    "url": "Address",
}
ABOUT = "Which column is what, with its first values. Names that tell are chosen already."
MISSING: Mapping[str, str] = {
    "question": "No column is named like a question. Choose the one that holds the questions.",
    "text": "No column is named like a text. Choose the one that holds the passages.",
}
SHORTEST = 60
"""Characters of a value beside its chooser."""


def columns_part(
    seen: Looked,
    columns: Columns | None,
    *,
    prefix: str = PREFIX,
    do: str = "import.preview",
    id: str = "import-columns",
) -> Markup:
    """Draw a chooser for each role beside its values in the first rows; closed only for a corpus with its text as guessed.
    ``prefix``: of the fields; ``do``: the action after a change.
    """
    if (table := seen.table) is None:
        return Markup()
    chosen = table.complete(columns)
    rows = table.values(chosen)
    roles = Markup().join(
        Markup('<div class="role">{}{}</div>').format(
            form.chooser(
                LABELS[role],
                f"{prefix}{role}",
                [("", "no column"), *((name, name) for name in table.names)],
                column,
                more=form.on_change(do),
            ),
            first_values([row[role] for row in rows]) if column else Markup(),
        )
        for role, column in chosen.items()
    )
    missing = missing_role(seen, columns)
    gist = html.join_facts(*(f"{LABELS[role]}: {c}" for role, c in chosen.items() if c))
    return html.fold(
        "Columns",
        (stored_columns(table, missing) if missing else html.note(ABOUT))
        + Markup('<div class="roles">{}</div>').format(roles),
        gist=gist or "none chosen",
        id=id,
        opened=bool(missing) or columns is not None or seen.kind == "dataset",
    )


def missing_role(seen: Looked, columns: Columns | None) -> str:
    """Return the role for want of which no row of a table can be read; '' if one can."""
    is_dataset = seen.kind == "dataset"
    part, needed = seen.dataset if is_dataset else seen.corpus, "question" if is_dataset else "text"
    if seen.table is None or (part and part.rows):
        return ""
    return "" if seen.table.complete(columns)[needed] else needed


def stored_columns(table: TableColumns, role: str) -> Markup:
    """Draw each column with its first value, and ask for the one in a role."""
    first = table.values({name: name for name in table.names})[:1]
    pairs = [(name, short(row.get(name))) for row in first for name in table.names]
    return html.warning(MISSING[role]) + html.defs(pairs)


def first_values(values: Sequence[object]) -> Markup:
    """Draw the values of a column in the first rows, a line each."""
    lines = Markup().join(Markup('<li dir="auto">{}</li>').format(short(x)) for x in values)
    return Markup('<ol class="values">{}</ol>').format(lines)


def short(value: object) -> str:
    """Return the beginning of a value: of a text itself, else of its JSON; "–" for none."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    flat = " ".join(("–" if value is None else text).split())
    return flat if len(flat) <= SHORTEST else flat[: SHORTEST - 1] + "…"


def read_columns(table: TableColumns | None, event: Event, prefix: str = PREFIX) -> Columns | None:
    """Return the columns that a person has chosen; None if all are as guessed."""
    chosen = event.with_prefix(prefix)
    return table.differing(chosen) if table and chosen else None
