"""The columns of a table before its import, and the roles that they have by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rallebench.core.columns import Columns, guess_columns, list_columns, value_at
from rallebench.core.errors import RalleError
from rallebench.core.readers import table_form, table_rows
from rallebench.core.sources import TABLES, table_files
from rallebench.core.streams import plain_name
from rallebench.core.types import Json
from rallebench.corpora import CORPORA
from rallebench.corpora import ROLES as CORPUS_ROLES
from rallebench.datasets import DATASETS
from rallebench.datasets.fields import ROLES as DATASET_ROLES
from rallebench.datasets.fields import normal

OFFERED = {
    "dataset": ("question", "answer", "page", "id", "group"),
    "corpus": ("text", "title", "id", "page", "url"),
}
"""Kind → the roles that the page offers; the others are named on the command line."""
QUESTION_LENGTH = 250
"""Characters up to which the longest text of a row may be a question."""
SEEN, MOST_ROWS = 200, 3
"""Rows whose columns are listed, and rows that are shown."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table. ``form``: the format that reads it; ``guess``: role → the column that has it by its name, '';
    ``rows``: the first rows as stored."""

    form: str
    names: tuple[str, ...]
    guess: Columns
    rows: tuple[Json, ...]

    def complete(self, columns: Columns | None) -> dict[str, str]:
        """Return role → column of every offered role, with the guesses for roles without a choice."""
        return {**self.guess, **{r: c for r, c in (columns or {}).items() if r in self.guess}}

    def differing(self, chosen: Mapping[str, str]) -> Columns | None:
        """Return the columns to import by; None if all roles are as guessed."""
        known = {role: chosen.get(role, column) for role, column in self.guess.items()}
        if known == dict(self.guess):
            return None
        return {role: column for role, column in known.items() if column or self.guess[role]}

    def values(self, columns: Columns) -> tuple[dict[str, object], ...]:
        """Return role → value of the first rows, for the roles with a column."""
        return tuple(
            {role: value_at(row, column) for role, column in columns.items() if column}
            for row in self.rows
        )


def read_columns(source: Path, kind: str, form: str, encoding: str = "") -> TableColumns | None:
    """Return the columns of a table that is read in ``form``; None for a source or a format whose columns have no roles."""
    if kind not in OFFERED or (form and not has_roles(kind, form)):
        return None
    if not _is_table(source):
        return None
    try:
        rows = table_rows(source, SEEN, encoding)
    except RalleError:  # the preview reports it
        return None
    names = tuple(list_columns(rows))
    if not names:
        return None
    form = form or (
        table_form(DATASETS, source) if kind == "dataset" else table_form(CORPORA, source)
    )
    roles = DATASET_ROLES if kind == "dataset" else CORPUS_ROLES
    spelling = normal if kind == "dataset" else str.lower
    offered = {role: roles[role] for role in OFFERED[kind]}
    guess = guess_columns(names, offered, spelling)
    return TableColumns(form, names, guess, tuple(rows[:MOST_ROWS]))


def holds_short_texts(source: Path) -> bool:
    """Return whether a source is a table whose texts are as short as questions, in half of its first rows."""
    if not _is_table(source):
        return False
    try:
        rows = table_rows(source, SEEN)
    except RalleError:
        return False
    longest = (max((len(x) for x in row.values() if isinstance(x, str)), default=0) for row in rows)
    return bool(rows) and 2 * sum(length <= QUESTION_LENGTH for length in longest) >= len(rows)


def _is_table(source: Path) -> bool:
    file = next(iter(table_files(source)), source)
    return file.is_file() and plain_name(file.name).lower().endswith(TABLES)


def has_roles(kind: str, form: str) -> bool:
    """Return whether the columns of a format may be given roles."""
    if kind == "dataset":
        return form in DATASETS and "columns" in DATASETS.entry(form).traits
    return form in CORPORA and "columns" in CORPORA.entry(form).traits
