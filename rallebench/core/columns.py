"""Columns of a table in the roles of a format, given where their names do not tell: ``question=q,answer=a``.

A role is what a format needs, such as ``question``; a column is the name of a field, with dots inside nested ones
(``answers.text``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, overload

from rallebench.core.errors import BadFileError, Hint, NotFoundError, UsageError
from rallebench.core.json_values import JsonValue
from rallebench.core.registry import unknown
from rallebench.core.types import Json

Columns = Mapping[str, str]
"""Role → column, '' for a role that no column has."""
DEEPEST = 4
"""Levels of nested fields whose names are listed."""
MOST_NAMED = 300
"""Characters of a list of columns in a sentence."""


class Role(NamedTuple):
    """``field``: the name under which a format reads the role; ``names``: the fields that a column in this role replaces."""

    field: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class ColumnMap:
    """The columns of a file in their roles. ``normal``: the spelling of a field's name among the names of a role."""

    columns: Columns
    roles: Mapping[str, Role]
    normal: Callable[[str], str] = str.lower

    def __post_init__(self) -> None:
        for role in self.columns:
            if role not in self.roles:
                raise NotFoundError(unknown("role", role, list(self.roles)))

    @property
    def sources(self) -> frozenset[str]:
        """The columns, and the fields that contain them."""
        return frozenset(x for c in self._present.values() for x in (c, c.partition(".")[0]))

    @property
    def _present(self) -> Columns:
        return {role: column for role, column in self.columns.items() if column}

    def check(self, names: Iterable[str], file: object) -> None:
        """Raise BadFileError for a column that is not among the ``names`` of a file."""
        known = list(dict.fromkeys(names))
        spelled = {name.lower() for name in known}
        for column in self._present.values():
            if column.lower() not in spelled:
                have = ", ".join(known)[:MOST_NAMED] or "none"
                raise BadFileError(f"{file} has no column {column!r}; it has {have}.")

    def fields(self, names: Iterable[str]) -> list[str]:
        """Return the fields that the format reads in a file with these fields."""
        return [self.roles[role].field for role in self._present] + self.rename(names)

    def rename(self, names: Iterable[str]) -> list[str]:
        """Return the names of fields as a format reads them, '' for a field that another one replaces."""
        fields = {column.lower(): self.roles[role].field for role, column in self._present.items()}
        return [fields.get(name.lower(), "" if self._is_replaced(name) else name) for name in names]

    def apply(self, row: Json) -> Json:
        """Return a row with the fields that the format reads, and its other fields."""
        used = {source.lower() for source in self.sources}
        rest = {
            name: value
            for name, value in row.items()
            if name.lower() not in used and not self._is_replaced(name)
        }
        mapped = {
            self.roles[role].field: value_at(row, column) for role, column in self._present.items()
        }
        return {**rest, **mapped}

    def _is_replaced(self, name: str) -> bool:
        spelled = self.normal(name)
        return any(spelled in self.roles[role].names for role in self.columns)


def no_column(file: object, names: Iterable[str], role: str) -> BadFileError:
    """The error for a file none of whose columns is named as a format needs it."""
    have = ", ".join(names)[:MOST_NAMED] or "no name"
    return BadFileError(
        f"{file} has the columns {have}, and none is {role!r}.", hint=Hint("columns", role)
    )


def parse_columns(text: str) -> dict[str, str]:
    """Parse ``role=column`` pairs between commas; ``role=`` says that no column has it. Raises UsageError.

    >>> parse_columns("question=q, answer=answers.text")
    {'question': 'q', 'answer': 'answers.text'}
    """
    columns: dict[str, str] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        role, is_pair, column = (part.strip() for part in pair.partition("="))
        if not (is_pair and role):
            raise UsageError(f"{pair!r} is not ROLE=COLUMN, as in question=q,answer=a.")
        if role in columns:
            raise UsageError(f"The role {role!r} has two columns; name one.")
        columns[role] = column
    return columns


def value_at(row: Json, column: str) -> object:
    """Return the value of a column; None if the row lacks it. Of a list of objects, the list of their values.

    >>> value_at({"a": {"text": ["x"]}, "b.c": 1}, "a.text"), value_at({"b.c": 1}, "b.c")
    (['x'], 1)
    >>> value_at({"pages": [{"id": 1}, {"id": 2}]}, "pages.id"), value_at({"Q": "Who?"}, "q")
    ([1, 2], 'Who?')
    """
    if column in row:
        return row[column]
    spelled = {name.lower(): name for name in row}
    if column.lower() in spelled:
        return row[spelled[column.lower()]]
    first, _, inner = column.partition(".")
    value = row.get(spelled.get(first.lower(), first))
    if inner and isinstance(value, Mapping):
        return value_at(value, inner)
    if inner and isinstance(value, (list, tuple)):
        return [value_at(x, inner) for x in value if isinstance(x, Mapping)]
    return None


@overload
def first_value(row: Mapping[str, str], names: Iterable[str], default: str = "") -> str: ...
@overload
def first_value(row: Json, names: Iterable[str], default: JsonValue = "") -> JsonValue: ...
def first_value(row: Json, names: Iterable[str], default: JsonValue = "") -> JsonValue:
    """The first of these fields with a value other than null and NaN. A whole number in pandas' form, 7.0, becomes 7."""
    for name in names:  # a loop, because every row of a corpus comes through here
        value = row.get(name)
        if value is not None and value == value:
            return int(value) if isinstance(value, float) and value.is_integer() else value
    return default


def guess_columns(
    names: Iterable[str], roles: Mapping[str, Role], normal: Callable[[str], str] = str.lower
) -> dict[str, str]:
    """Return role → the column that a format takes for it by its name, '' for none.

    >>> guess_columns(["Query", "a"], {"question": Role("question", ("question", "query")), "id": Role("id", ("id",))})
    {'question': 'Query', 'id': ''}
    """
    spelled: dict[str, str] = {}
    for name in names:
        spelled.setdefault(normal(name), name)
    return {
        role: next((spelled[name] for name in known.names if name in spelled), "")
        for role, known in roles.items()
    }


def list_columns(rows: Iterable[Json]) -> list[str]:
    """Return the columns of rows in order, nested ones behind the field that contains them.

    >>> list_columns([{"id": 1, "answers": {"text": ["x"]}}, {"pages": [{"id": 1}]}])
    ['id', 'answers', 'answers.text', 'pages', 'pages.id']
    """
    return list(dict.fromkeys(name for row in rows for name in _columns(row, DEEPEST)))


def _columns(row: Json, depth: int) -> Iterator[str]:
    for name, value in row.items():
        yield name
        inner = value if isinstance(value, (list, tuple)) else [value]
        if depth > 1:
            for nested in (x for x in inner if isinstance(x, Mapping)):
                yield from (f"{name}.{column}" for column in _columns(nested, depth - 1))
