"""Schemas that no JSON can fit, as far as this is visible without a search. The grammar of a schema shows more
(``core.formats``)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Protocol

from rallebench.core.json_values import JsonValue
from rallebench.core.types import Json


class SchemaValidator(Protocol):
    """A validator of ``jsonschema``, as far as it is needed here."""

    @property
    def schema(self) -> JsonValue: ...

    def evolve(self, *, schema: JsonValue) -> SchemaValidator: ...

    def is_valid(self, value: JsonValue) -> bool: ...


MOST_VALUES = 256
"""Values of a schema that are checked one by one."""

MOST_VISITS = 5000
"""The most visited parts of a schema: nested references can make their number explode."""


def fits_nothing(schema: JsonValue, validator: SchemaValidator) -> str:
    """The reason why no JSON fits a schema (no capital, no full stop); '' if JSON may fit.

    ``validator``: a ``jsonschema`` validator of this schema.
    """
    try:
        return _Search(validator).reason(schema, frozenset())
    except RecursionError:
        return ""


class _Search:
    def __init__(self, validator: SchemaValidator) -> None:
        self._validator, self._visits = validator, 0

    def reason(self, schema: Any, inside: frozenset[str]) -> str:
        """The reason for one part. ``inside``: the references in progress; a value that must contain itself has no end."""
        self._visits += 1
        if schema is False:
            return "false permits nothing"
        if not isinstance(schema, Mapping) or self._visits > MOST_VISITS:
            return ""
        return (
            self._combination_fault(schema, inside)
            or self._reference_fault(schema.get("$ref"), inside)
            or self._values_fault(schema)
            or (self._array(schema, inside) if schema.get("type") == "array" else "")
            or (self._object(schema, inside) if schema.get("type") == "object" else "")
        )

    def _combination_fault(self, schema: Json, inside: frozenset[str]) -> str:
        if _permits_all(schema.get("not", False)):
            return "not forbids everything"
        for part in schema.get("allOf", ()):
            if reason := self.reason(part, inside):
                return reason
        for kind in ("anyOf", "oneOf"):
            reasons = [self.reason(part, inside) for part in schema.get(kind, ())]
            if reasons and all(reasons):
                return reasons[0]
        if "if" in schema:
            always, never = _permits_all(schema["if"]), schema["if"] is False
            if always or never:
                return self.reason(schema.get("then" if always else "else", True), inside)
        return ""

    def _reference_fault(self, ref: Any, inside: frozenset[str]) -> str:
        if not isinstance(ref, str):
            return ""
        if ref in inside:
            return f"{ref} holds itself without an end"
        target = self._target(ref)
        return self.reason(target, inside | {ref})

    def _target(self, ref: str) -> Any:
        """The target of a reference inside the schema; True, which permits everything, for any other reference."""
        target = self._validator.schema
        if not ref.startswith("#") or (ref != "#" and not ref.startswith("#/")):
            return True
        for part in ref[2:].split("/") if ref != "#" else ():
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or name not in target:
                return True
            target = target[name]
        return target

    # ── schemas that list their values ───────────────────────────────────────

    def _values_fault(self, schema: Json) -> str:
        values = _values(schema)
        # For integers the grammar has a better message: their bounds.
        if values is None or schema.get("type") == "integer":
            return ""
        if any(self._fits(value, schema) for value in values):
            return ""
        return "none of its values fits the rest of it" if values else "it lists no value"

    def _fits(self, value: Any, schema: Json) -> bool:
        from referencing.exceptions import Unresolvable

        try:
            return bool(self._validator.evolve(schema=schema).is_valid(value))
        except (Unresolvable, RecursionError):
            return True

    def _array(self, schema: Json, inside: frozenset[str]) -> str:
        least, items = schema.get("minItems", 0), schema.get("items", True)
        first = schema.get("prefixItems", ())
        if least > len(first) and (reason := self.reason(items, inside)):
            return f"its items: {reason}"
        for part in islice(first, int(least)):
            if reason := self.reason(part, inside):
                return f"its items: {reason}"
        if schema.get("minContains", 1) > 0 and (
            reason := self.reason(schema.get("contains", True), inside)
        ):
            return f"contains: {reason}"
        values = _values(items) if schema.get("uniqueItems") is True and not first else None
        if values is not None:
            different = sum(self._fits(value, items) for value in values)
            if different < least:
                return f"its items must be {least} different values, and there are {different}"
        return ""

    def _object(self, schema: Json, inside: frozenset[str]) -> str:
        known, patterns = schema.get("properties", {}), schema.get("patternProperties")
        required, waiting = [], list(schema.get("required", ()))
        while waiting:
            if (name := waiting.pop()) not in required:
                required.append(name)
                waiting += schema.get("dependentRequired", {}).get(name, ())
        for name in required:
            other = True if patterns else schema.get("additionalProperties", True)
            if reason := self.reason(known.get(name, other), inside):
                return f"its property {name!r}: {reason}"
            if not self._fits(name, schema.get("propertyNames", True)):
                return f"propertyNames forbids its property {name!r}"
        return ""


def _permits_all(schema: Any) -> bool:
    return schema is True or schema == {}


def _values(schema: Any) -> list[Any] | None:
    """All distinct values that a schema permits; None if it does not list them, or if there are too many."""
    if not isinstance(schema, Mapping):
        return None
    if "const" in schema:
        return [schema["const"]]
    if "enum" in schema:
        values = schema["enum"]
    elif schema.get("type") == "boolean":
        values = [False, True]
    elif schema.get("type") == "null":
        values = [None]
    elif schema.get("type") == "integer":
        values = _integers(schema)
    else:
        return None
    return values if values is not None and len(values) <= MOST_VALUES else None


def _integers(schema: Json) -> list[int] | None:
    lows = [schema[name] for name in ("minimum", "exclusiveMinimum") if name in schema]
    highs = [schema[name] for name in ("maximum", "exclusiveMaximum") if name in schema]
    if not lows or not highs or not all(isinstance(bound, (int, float)) for bound in lows + highs):
        return None
    low, high = max(lows), min(highs)
    if high - low > MOST_VALUES:
        return None
    return list(range(int(low) - 1, int(high) + 2))
