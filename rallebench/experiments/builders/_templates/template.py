"""A template: a question with columns in braces, the location of its answer, and conditions on the rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictInt, field_validator, model_validator

from rallebench.core.entries import Strict, parse_entry
from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.files import read_json
from rallebench.experiments.builders._templates.tables import SourceTable

SEVERAL = ("drop", "all", "any")
PLACE = re.compile(r"\{([^{}]+)\}")
_INDEX = re.compile(r"(.+)\[(-?\d+)\]$")


class Join(Strict):
    """A join with ``table``: ``right_column`` equals ``left_column`` of the base rows; a list matches by any element. The
    joined columns are called ``name.…``."""

    model_config = ConfigDict(frozen=True)

    table: str = ""
    name: str = Field("", alias="as")
    on: str = Field("", coerce_numbers_to_str=True)

    @model_validator(mode="after")
    def _is_complete(self) -> Join:
        if not self.left_column or not self.right_column:
            raise ValueError(
                'a join is {"table": "…", "as": "…", "on": "column = column of that table"}'
            )
        return self

    @property
    def left_column(self) -> str:
        """The column of the base rows."""
        return self.on.partition("=")[0].strip()

    @property
    def right_column(self) -> str:
        """The column of the joined table."""
        return self.on.partition("=")[2].strip()


class Template(Strict):
    """A template.

    ``question``: text with ``{column}``; ``answer``: a column, or text with columns in braces; ``where``: column → required
    value. ``several``: the policy for a question with several matches. ``best``: a numeric column; the row with its smallest
    value gives the answer, or the largest with a leading ``-``. ``count``: the answer is the number of answers. ``strata``:
    column → value → number of questions. A column may select one element of a list, as in ``authors.name[0]``; rows with the
    value at another position do not match.
    """

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True, coerce_numbers_to_str=True)

    id: str = ""
    question: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    table: str = ""
    join: tuple[Join, ...] = ()
    where: dict[str, str] = Field(default_factory=dict)
    several: Literal["", "drop", "all", "any"] = ""
    best: str = ""
    count: StrictBool = False
    number: StrictInt = Field(0, ge=0)
    level: str = ""
    strata: dict[str, dict[str, StrictInt]] = Field(default_factory=dict, max_length=1)
    about: str = Field("", exclude=True)

    @field_validator("question")
    @classmethod
    def _names_a_column(cls, question: str) -> str:
        if not PLACE.search(question):
            raise ValueError(f"{question[:80]!r} names no column in braces")
        return question

    @field_validator("join", mode="before")
    @classmethod
    def _several_joins(cls, joins: Any) -> Any:
        return [joins] if isinstance(joins, Mapping) else joins

    @property
    def question_columns(self) -> tuple[str, ...]:
        """The distinct columns in the question's braces."""
        return tuple(dict.fromkeys(PLACE.findall(self.question)))

    @property
    def answer_columns(self) -> tuple[str, ...]:
        """The distinct columns in the answer's braces; an answer without braces is itself a column."""
        columns = PLACE.findall(self.answer) if "{" in self.answer else [self.answer]
        return tuple(dict.fromkeys(columns))

    @property
    def stratum(self) -> tuple[str, Mapping[str, int]]:
        """(column, value → number of questions); ('', {}) without strata."""
        return next(iter(self.strata.items()), ("", {}))

    @property
    def hops(self) -> int:
        """Number of hops: 1 plus the number of joins."""
        return 1 + len(self.join)

    def to_json(self) -> dict[str, Any]:
        """The template as stored in a file."""
        parts = self.model_dump(mode="json", by_alias=True)
        return {name: part for name, part in parts.items() if part}


def read_templates(path: Path, tables: Iterable[str]) -> tuple[Template, ...]:
    """The templates of a file, either ``{"templates": [{"question": …, "answer": …}]}`` or just the list. Raises
    BadFileError."""
    value = read_json(path)
    rows = value.get("templates") if isinstance(value, dict) else value
    if not isinstance(rows, list) or not rows:
        raise BadFileError(
            f'{path} holds no templates; it is {{"templates": [{{"question": "… {{column}} …?", "answer": "column"}}]}}.'
        )
    parts = f" The parts of a template are {', '.join(Template.model_fields)}."
    templates: dict[str, Template] = {}
    for number, row in enumerate(rows, 1):
        where = f"{path}, template {number}"
        template = parse_template(row, list(tables), f"t{number}", where, parts)
        if template.id in templates:
            raise BadFileError(f"{path}: two templates have the id {template.id!r}.")
        templates[template.id] = template
    return tuple(templates.values())


def parse_template(
    row: Any, tables: list[str], own_id: str, where: str, more: str = ""
) -> Template:
    """A template from JSON, with ``own_id`` if it has no id; ``check`` checks its columns. Raises BadFileError about
    ``where``; ``more`` is appended to the message about an invalid part."""
    template = parse_entry(Template, row, where, more)

    def resolve(join: Join) -> Join:
        table = _table(join.table, tables, where)
        return join.model_copy(update={"table": table, "name": join.name or table})

    own = {
        "id": template.id or own_id,
        "table": _table(template.table, tables, where),
        "join": tuple(map(resolve, template.join)),
    }
    return template.model_copy(update=own)


def _table(name: str, tables: list[str], where: str) -> str:
    if not name and len(tables) == 1:
        return tables[0]
    known = f"they are {', '.join(tables)}."
    if not name:
        raise BadFileError(f'{where} needs a "table"; {known}')
    if name not in tables:
        raise BadFileError(f"{where}: there is no table {name!r}; {known}")
    return name


def check(template: Template, tables: Mapping[str, SourceTable]) -> None:
    """Check that every column exists. Raises UsageError with the missing column and the existing ones."""
    columns = list(tables[template.table].columns)
    for join in template.join:
        _check_column(template, join.left_column, columns)
        joined = tables[join.table].columns
        _check_column(template, join.right_column, list(joined), f"table {join.table!r}")
        columns += [f"{join.name}.{column}" for column in joined]
    needed = (*template.question_columns, *template.answer_columns, *template.where)
    for column in (*needed, template.best.lstrip("-"), template.stratum[0]):
        if column:
            _check_column(template, column, columns)
    if set(template.question_columns) & set(template.answer_columns):
        raise UsageError(
            f"The template {template.id!r} names its answer {template.answer_columns[0]!r} in its question."
        )


def _check_column(template: Template, column: str, columns: list[str], where: str = "") -> None:
    name, _ = split_index(column)
    if name not in columns:
        near = get_close_matches(name, columns, 1)
        its = f"Its columns are {', '.join(columns)[:300]}."
        mend = f"Did you mean {near[0]!r}?" if near else its
        joined = " and what is joined to it" if template.join else ""
        place = where or f"table {template.table!r}{joined}"
        raise UsageError(
            f"The template {template.id!r} names the column {name!r}, which the {place} does not have. {mend}"
        )


def split_index(column: str) -> tuple[str, int | None]:
    """(column, position of the selected element, or None for all).

    >>> split_index("authors.name[0]"), split_index("name")
    (('authors.name', 0), ('name', None))
    """
    match = _INDEX.fullmatch(column)
    return (match[1], int(match[2])) if match else (column, None)
