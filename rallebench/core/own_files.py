"""The product's own files, checked by type on reading, because another program may have changed them.

The expected form is a frozen dataclass with the needed fields; further fields are ignored.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rallebench.core.errors import BadFileError, RalleError
from rallebench.core.files import json_problem, read_json, write_json
from rallebench.core.json_values import JsonObject, JsonValue
from rallebench.core.types import digest

log = logging.getLogger(__name__)

T = TypeVar("T")

DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Errors of code that reads values of unexpected types."""

MAX_DEPTH = 60
"""The most levels of nested lists and objects; no file of ours is nearly as deep."""


def damage_error(path: Path, mend: str, fault: str = "") -> BadFileError:
    """The error for a changed file of ours; ``mend`` is a clause."""
    return BadFileError(f"{path} was damaged by another program{fault and f' ({fault})'}; {mend}.")


def read_sealed(path: Path, mend: str) -> dict[str, JsonValue]:
    """Return the object in a file of ours, without its seal, if any. Raises BadFileError."""
    if not path.is_file():
        raise BadFileError(f"{path} does not exist.")
    try:
        value = read_json(path)
    except BadFileError as error:
        raise BadFileError(f"{str(error).rstrip('.')}; {mend}.") from None
    if not isinstance(value, dict):
        raise damage_error(path, mend)
    if is_too_deep(value):
        raise damage_error(path, mend, "too deeply nested")
    if "seal" in value and value.pop("seal") != make_seal(value):
        raise damage_error(path, mend)
    return value


def write_sealed(path: Path, value: JsonObject) -> None:
    """Write a file with a seal that reveals any later change."""
    content = {key: item for key, item in value.items() if key != "seal"}
    write_json(path, {**content, "seal": make_seal(content)})


def make_seal(value: JsonObject) -> str:
    """12 hex digits over a value without its seal, as it will be read again."""
    return digest(json.loads(json.dumps(value)))[:12]


_adapter: Callable[[Any], TypeAdapter[Any]] = lru_cache(maxsize=64)(TypeAdapter)


def load_line(line: bytes, place: Path, mend: str) -> JsonValue:
    """The value in a line of a file of ours; ``place``: the file with the number of the line. Raises BadFileError."""
    try:
        value: JsonValue = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise damage_error(place, mend, json_problem(error)) from None
    return value


def parse(value: object, shape: type[T], path: Path, mend: str) -> T:
    """The content of a file of ours as a ``shape``, a frozen dataclass. Raises BadFileError."""
    if not isinstance(value, dict):
        raise damage_error(path, mend)
    if is_too_deep(value):
        raise damage_error(path, mend, "too deeply nested")
    try:
        content: T = _adapter(shape).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where, message = ".".join(str(part)[:40] for part in first["loc"]), str(first["msg"])
        fault = f"{where!r}: {message[:1].lower()}{message[1:]}"
        raise damage_error(path, mend, fault) from None
    return content


def is_too_deep(value: object) -> bool:
    """Return whether lists and objects are nested deeper than in any file of ours."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        level = [item for item in inner if isinstance(item, (dict, list))]
        if not level:
            return False
    return True


@contextmanager
def reading(path: Path, mend: str) -> Iterator[None]:
    """A block that only reads values of a file of ours: values of other types mean a damaged file. Raises BadFileError."""
    try:
        yield
    except RalleError:
        raise
    except DAMAGE as error:
        log.debug("%s was damaged", path, exc_info=error)
        raise damage_error(path, mend) from None
