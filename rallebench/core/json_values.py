"""Values as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Union

JsonValue = Union[None, bool, int, float, str, "Sequence[JsonValue]", "Mapping[str, JsonValue]"]
"""Any JSON; tuples are written as lists."""
JsonObject = Mapping[str, JsonValue]
"""A JSON object that no dataclass stands for."""


def as_json(value: object) -> Any:
    """A value as JSON: by its own ``to_json``, or a dataclass by its fields; tuples stay tuples, which JSON writes as lists."""
    if isinstance(value, (str, int, float, type(None))):
        return value
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(as_json(item) for item in value)
    return value
