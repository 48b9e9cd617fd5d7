"""Calls of the readers of foreign formats. An error in a reader becomes one sentence about the file."""

from __future__ import annotations

import csv
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from rallebench.core.columnar import columnar_kind
from rallebench.core.columns import ColumnMap, Columns, Role, list_columns
from rallebench.core.errors import BadFileError, RalleError, UsageError
from rallebench.core.files import json_problem
from rallebench.core.json_lists import find_rows
from rallebench.core.registry import Registry
from rallebench.core.sources import Problems, Source, has_suffix, table_files
from rallebench.core.types import Json

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
Row = TypeVar("Row", bound="tuple[Any, ...]")
"""A row of a reader; its first part is the number of its first line."""
LOOKED_AT = 1000
"""Rows in which a column must occur."""
UNREADABLE = (
    ValueError,  # includes errors of JSON and of UTF-8
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    EOFError,
    OSError,
    csv.Error,
)
"""Errors of a reader on a file of another form."""


def read_rows(read: Callable[[Source], Iterator[Row]], source: Source, form: str) -> Iterator[Row]:
    """Yield the rows of a reader. Raises BadFileError for an error in the reader, naming the last good row."""
    last = 0
    with naming(source.path, form, lambda: f", after {source.unit} {last}" if last else ""):
        for row in read(source):
            last = row[0]
            yield row


@contextmanager
def naming(path: Path | str, form: str, place: Callable[[], str] = str) -> Iterator[None]:
    """Turn an error of a reader into a BadFileError about ``path``; ``place``: the position reached so far, '' at the
    start."""
    try:
        yield
    except RalleError:
        raise
    except UNREADABLE as error:
        _LOG.debug("the reader of the format %s failed", form, exc_info=True)
        where = place() or _line(error)
        raise BadFileError(
            f"{path}{where} {_fault(error)}; check the file, or its format ({form})."
        ) from error


def _line(error: Exception) -> str:
    return f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""


def _fault(error: Exception) -> str:
    """The fault of a file in words.

    >>> _fault(KeyError("question"))
    "lacks the field 'question'"
    """
    if isinstance(error, (json.JSONDecodeError, RecursionError)):
        return f"is not valid JSON ({json_problem(error)})"
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 (byte {error.start})"
    if isinstance(error, KeyError):
        return f"lacks the field {error.args[0]!r}" if error.args else "lacks a field"
    if isinstance(error, OSError):
        return f"cannot be read ({error.strerror or error})"
    return f"has another form ({type(error).__name__}: {error})"


def table_form(registry: Registry[T], path: Path, form: str = "") -> str:
    """Return ``form``, or the format of a table by its kind, whose columns may have roles. Raises UsageError for another
    format."""
    if form:
        tables = [name for name in registry.names() if "columns" in registry.entry(name).traits]
        if registry.entry(form).name not in tables:
            raise UsageError(
                f"The format {form!r} has its own names, so its columns have no roles; choose another format ({', '.join(tables)})."
            )
        return form
    file = next(iter(table_files(path)), path)
    if has_suffix(".tsv", ".tab")(file):
        return "tsv" if "tsv" in registry else "csv"
    return columnar_kind(file) or ("csv" if has_suffix(".csv")(file) else "jsonl")


def table_rows(path: Path, most: int, encoding: str = "") -> list[Json]:
    """Return the first rows of a table as they are stored, without bad ones. Raises BadFileError."""
    file = next(iter(table_files(path)), path)
    source = Source(file, Problems(skip=True), peeking=True, encoding=encoding)
    if has_suffix(".csv", ".tsv", ".tab")(file):
        return [row for _, _, row in islice(source.named_rows(lambda *_: None), most)]
    document = source.document()
    rows = find_rows(document) if document else None
    return rows[:most] if rows else [row for _, row in islice(source.objects(), most)]


def role_columns(
    source: Source,
    columns: Columns | None,
    roles: Mapping[str, Role],
    normal: Callable[[str], str] = str.lower,
) -> ColumnMap | None:
    """Return the columns of a table in their roles, None if there are none. Raises UsageError for an unknown role, BadFileError
    for a column that the table lacks."""
    if not columns:
        return None
    in_roles = ColumnMap(columns, roles, normal)
    rows = table_rows(source.path, LOOKED_AT, source.encoding)
    in_roles.check(list_columns(rows), source.path)
    return in_roles


def matching_formats(registry: Registry[T], path: Path, without: str = "") -> Iterator[str]:
    """Yield the formats that recognise a file or folder, in alphabetical order, except ``without``.

    A format with a failing test does not recognise the file.
    """
    for name in registry.names():
        test = registry.entry(name).traits.get("recognises")
        if not test or name == without:
            continue
        try:
            fits = test(path)
        except (*UNREADABLE, RalleError):
            _LOG.debug("the format %s cannot look at %s", name, path, exc_info=True)
            continue
        if fits:
            yield name
