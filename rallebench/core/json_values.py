"""Values as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Protocol, Union, runtime_checkable

JsonValue = Union[None, bool, int, float, str, "Sequence[JsonValue]", "Mapping[str, JsonValue]"]
"""Any JSON; tuples are written as lists."""
JsonObject = Mapping[str, JsonValue]
"""A JSON object without a dataclass of its own."""


@runtime_checkable
class Writable(Protocol):
    """A value that writes itself as JSON."""

    def to_json(self) -> JsonValue: ...


def as_json(value: object) -> JsonValue:
    """A value as JSON: by its own ``to_json``, or a dataclass by its fields; a path as text. Tuples stay tuples, which
    JSON writes as lists."""
    if isinstance(value, (str, int, float, type(None))):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Writable):
        return value.to_json()
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(as_json(item) for item in value)
    raise TypeError(f"{type(value).__name__} has no JSON")


def object_json(value: object) -> dict[str, JsonValue]:
    """A mapping or a dataclass as a JSON object."""
    content = as_json(value)
    assert isinstance(content, Mapping)
    return dict(content)
