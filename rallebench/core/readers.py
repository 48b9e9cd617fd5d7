"""Calls of the readers of foreign formats. An error in a reader becomes one sentence about the file."""

from __future__ import annotations

import csv
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rallebench.core.errors import BadFileError, RalleError
from rallebench.core.files import json_problem
from rallebench.core.registry import Registry
from rallebench.core.sources import Source

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
Row = TypeVar("Row", bound="tuple[Any, ...]")
"""A row of a reader; its first part is the number of its first line."""
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
