"""One template: a question with columns in braces, where its answer stands, and what must hold of its rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.files import read_json
from rallebench.experiments.builders._templates.tables import SourceTable

SEVERAL = ("drop", "all", "any")
PLACE = re.compile(r"\{([^{}]+)\}")
_INDEX = re.compile(r"(.+)\[(-?\d+)\]$")


@dataclass(frozen=True, slots=True)
class Join:
    """The rows of ``table`` whose column ``right`` is (or holds) what ``left`` is (or holds), as columns ``name.…``."""

    name: str
    table: str
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Template:
    """``question``: text with ``{column}``; ``answer``: a column, or text with them; ``where``: column → value that it must have.

    ``several``: what a question that fits several things becomes; ``best``: a number's column, ``-`` before it for the largest:
    the row with it answers; ``count``: how many answers there are is the answer. ``strata``: (column, value → how many questions).
    A column may end with the place of one of its values, ``authors.name[0]``; rows that have it at another place are not looked for.
    """

    id: str
    question: str
    answer: str
    table: str
    joins: tuple[Join, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    several: str = ""
    best: str = ""
    count: bool = False
    number: int = 0
    level: str = ""
    strata: tuple[str, tuple[tuple[str, int], ...]] | None = None

    @property
    def question_columns(self) -> tuple[str, ...]:
        """The columns of the question."""
        return tuple(dict.fromkeys(PLACE.findall(self.question)))

    @property
    def answered(self) -> tuple[str, ...]:
        """The columns of the answer."""
        columns = PLACE.findall(self.answer) if "{" in self.answer else [self.answer]
        return tuple(dict.fromkeys(columns))

    @property
    def hops(self) -> int:
        """1 and the tables that are joined."""
        return 1 + len(self.joins)

    def as_json(self) -> dict[str, Any]:
        """As a file has it."""
        value = {name: getattr(self, name) for name in ("id", "question", "answer", "table")}
        more: dict[str, Any] = {
            "join": [
                {"as": j.name, "table": j.table, "on": f"{j.left} = {j.right}"} for j in self.joins
            ],
            "where": dict(self.where),
            **{
                name: getattr(self, name)
                for name in ("several", "best", "count", "number", "level")
            },
            "strata": {self.strata[0]: dict(self.strata[1])} if self.strata else {},
        }
        return value | {key: part for key, part in more.items() if part}


def read_templates(path: Path, tables: Iterable[str]) -> tuple[Template, ...]:
    """The templates of a file, ``{"templates": [{"question": …, "answer": …}]}`` or the list alone. Raises BadFileError."""
    value = read_json(path)
    rows = value.get("templates") if isinstance(value, dict) else value
    if not isinstance(rows, list) or not rows:
        raise BadFileError(
            f'{path} holds no templates; it is {{"templates": [{{"question": "… {{column}} …?", "answer": "column"}}]}}.'
        )
    templates: dict[str, Template] = {}
    for number, row in enumerate(rows, 1):
        try:
            template = template_of(row, list(tables), f"t{number}")
        except ValueError as wrong:
            raise BadFileError(f"{path}, template {number}: {wrong}") from None
        if template.id in templates:
            raise BadFileError(f"{path}: two templates have the id {template.id!r}.")
        templates[template.id] = template
    return tuple(templates.values())


KEYS = {part.name for part in fields(Template)} - {"joins"} | {"join", "about"}
"""The parts of a template in a file."""


def template_of(row: Any, tables: list[str], own_id: str) -> Template:
    """A template as JSON gives it; its columns are checked by ``check``. Raises ValueError, one sentence."""
    if not isinstance(row, Mapping):
        raise ValueError('it is no object with "question" and "answer".')
    unknown = [key for key in row if key not in KEYS]
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is no part of a template; its parts are {', '.join(sorted(KEYS))}."
        )
    question, answer = (str(row.get(key) or "").strip() for key in ("question", "answer"))
    if not question or not answer:
        raise ValueError('it needs a "question" and an "answer".')
    if not PLACE.search(question):
        raise ValueError(f"its question {question[:80]!r} names no column in braces.")
    several = str(row.get("several") or "")
    if several and several not in SEVERAL:
        raise ValueError(
            f"several is {several!r}; it must be {', '.join(SEVERAL[:-1])} or {SEVERAL[-1]}."
        )
    number = row.get("number", 0)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ValueError("number must be a whole number of at least 0.")
    where = row.get("where") or {}
    if not isinstance(where, Mapping):
        raise ValueError('where must be an object, {"column": "value"}.')
    return Template(
        str(row.get("id") or own_id),
        question,
        answer,
        _table(row.get("table"), tables),
        tuple(_joins(row.get("join") or [], tables)),
        tuple((str(key), str(value)) for key, value in where.items()),
        several,
        str(row.get("best") or ""),
        row.get("count") is True,
        number,
        str(row.get("level") or ""),
        _strata(row.get("strata")),
    )


def _table(name: Any, tables: list[str]) -> str:
    if not name and len(tables) == 1:
        return tables[0]
    if not name:
        raise ValueError(f'it needs a "table"; they are {", ".join(tables)}.')
    if name not in tables:
        raise ValueError(f"there is no table {name!r}; they are {', '.join(tables)}.")
    return str(name)


def _joins(rows: Any, tables: list[str]) -> Iterable[Join]:
    for row in rows if isinstance(rows, list) else [rows]:
        on = str(row.get("on", "")) if isinstance(row, Mapping) else ""
        left, _, right = (part.strip() for part in on.partition("="))
        if not left or not right:
            raise ValueError(
                'a join is {"table": "…", "as": "…", "on": "column = column of that table"}.'
            )
        table = _table(row.get("table"), tables)
        yield Join(str(row.get("as") or table), table, left, right)


def _strata(value: Any) -> tuple[str, tuple[tuple[str, int], ...]] | None:
    if not value:
        return None
    counts = next(iter(value.values())) if isinstance(value, Mapping) and len(value) == 1 else None
    if not isinstance(counts, Mapping) or not all(
        isinstance(count, int) and not isinstance(count, bool) for count in counts.values()
    ):
        raise ValueError('strata must be one column with counts, {"column": {"value": 20}}.')
    return str(next(iter(value))), tuple((str(key), int(count)) for key, count in counts.items())


def check(template: Template, tables: Mapping[str, SourceTable]) -> None:
    """Whether every column is there. Raises UsageError, one sentence that names it and those that are."""
    columns = list(tables[template.table].columns)
    for join in template.joins:
        _check_column(template, join.left, columns)
        joined = tables[join.table].columns
        _check_column(template, join.right, list(joined), f"table {join.table!r}")
        columns += [f"{join.name}.{column}" for column in joined]
    needed = [*template.question_columns, *template.answered, *dict(template.where)]
    needed += [template.best.lstrip("-")] if template.best else []
    needed += [template.strata[0]] if template.strata else []
    for column in needed:
        _check_column(template, column, columns)
    if set(template.question_columns) & set(template.answered):
        raise UsageError(
            f"The template {template.id!r} names its answer {template.answered[0]!r} in its question."
        )


def _check_column(template: Template, column: str, columns: list[str], where: str = "") -> None:
    name, _ = indexed(column)
    if name not in columns:
        near = get_close_matches(name, columns, 1)
        its = f"Its columns are {', '.join(columns)[:300]}."
        mend = f"Did you mean {near[0]!r}?" if near else its
        joined = " and what is joined to it" if template.joins else ""
        place = where or f"table {template.table!r}{joined}"
        raise UsageError(
            f"The template {template.id!r} names the column {name!r}, which the {place} does not have. {mend}"
        )


def indexed(column: str) -> tuple[str, int | None]:
    """A column and which of its values is meant, None for all.

    >>> indexed("authors.name[0]"), indexed("name")
    (('authors.name', 0), ('name', None))
    """
    match = _INDEX.fullmatch(column)
    return (match[1], int(match[2])) if match else (column, None)
