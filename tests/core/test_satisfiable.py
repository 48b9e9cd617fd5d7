"""A schema that no text can satisfy is refused before a model is called; a satisfiable one never is."""

from __future__ import annotations

from typing import Any

import pytest

from rallebench.chains.saved import checked_generation
from rallebench.core.errors import UsageError
from rallebench.core.formats import read_format
from rallebench.core.structured import check_schema, never_fits

PAIR = {"enum": ["a", "b"]}


def letters(**more: Any) -> dict[str, Any]:
    return {"type": "array", "items": PAIR, "uniqueItems": True, **more}


def holding(name: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: schema}, "required": [name], **more}


def chain(*ends: Any) -> dict[str, Any]:
    """A list of lists, nested until one of ``ends``."""
    return {
        "$ref": "#/$defs/list",
        "$defs": {"list": holding("next", {"anyOf": [{"$ref": "#/$defs/list"}, *ends]})},
    }


def folded(depth: int, end: Any) -> dict[str, Any]:
    """Two choices at each of ``depth`` levels: too many to walk them all."""
    ways = {
        f"d{n}": {
            "anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}]}]
        }
        for n in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**ways, f"d{depth}": end}}


IMPOSSIBLE: dict[str, tuple[Any, str]] = {
    "too few values": (letters(minItems=3), "3 different values, and there are 2"),
    "too few booleans": (
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 3},
        "there are 2",
    ),
    "too few integers": (
        {**letters(minItems=4), "items": {"type": "integer", "minimum": 0, "maximum": 2}},
        "there are 3",
    ),
    "too few values that fit": (
        {**letters(minItems=2), "items": {**PAIR, "not": {"const": "a"}}},
        "there are 1",
    ),
    "not anything": ({"not": {}}, "not forbids everything"),
    "not anything inside": (holding("a", {"not": True}), "its property 'a': not forbids"),
    "then false": ({"enum": ["a"], "if": {"const": "a"}, "then": False}, "none of its values fits"),
    "if always": ({"if": {}, "then": {"not": {}}}, "not forbids"),
    "else of never": ({"if": False, "then": True, "else": False}, "false permits nothing"),
    "itself": ({"$ref": "#"}, "# holds itself without an end"),
    "each other": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        "holds itself",
    ),
    "a list without an end": (chain(), "'next': #/$defs/list holds itself"),
    "items without an end": (
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        "# holds itself",
    ),
    "an item of a place": ({"type": "array", "prefixItems": [False], "minItems": 1}, "its items"),
    "no value": ({"enum": []}, "lists no value"),
    "a value that is forbidden": ({"const": 1, "not": {"const": 1}}, "none of its values"),
    "values of another type": ({"type": "string", "enum": [1, 2]}, "none of its values"),
    "all of two": ({"allOf": [True, {"not": {}}]}, "not forbids"),
    "one of none": ({"oneOf": [False, {"enum": []}]}, "false permits nothing"),
    "contains nothing": ({"type": "array", "contains": {"not": {}}}, "contains: not forbids"),
    "a name that is forbidden": (
        holding("a", True, propertyNames={"pattern": "^b"}),
        "propertyNames forbids its property 'a'",
    ),
    "a name that follows": (
        holding("a", True, dependentRequired={"a": ["b"]}, additionalProperties=False),
        "its property 'b': false",
    ),
    "bounds": ({"type": "integer", "minimum": 5, "maximum": 3}, "minimum (5) is greater"),
    "lengths": ({"type": "string", "minLength": 5, "maxLength": 3}, "minLength (5) is greater"),
    "between two integers": (
        {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4},
        "no integer values",
    ),
    "two types": ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "incompatible types"),
}
"""A schema, and its refusal."""

POSSIBLE: dict[str, tuple[Any, Any]] = {
    "enough values": (letters(minItems=2), ["b", "a"]),
    "no items": (letters(), []),
    "a property that may be absent": ({"type": "object", "properties": {"a": {"not": {}}}}, {}),
    "of any type": ({"required": ["a"], "properties": {"a": False}}, 5),
    "a list with an end": (chain({"type": "null"}), {"next": {"next": None}}),
    "a tree of lists": ({"type": "array", "items": {"$ref": "#"}}, [[], [[]]]),
    "one way": ({"anyOf": [False, {"const": 1}]}, 1),
    "then": ({"enum": ["a", "b"], "if": {"const": "a"}, "then": False}, "b"),
    "contains no more": ({"type": "array", "contains": False, "minContains": 0}, []),
    "a name by its pattern": (
        {
            "type": "object",
            "required": ["a"],
            "patternProperties": {"^a": {}},
            "additionalProperties": False,
        },
        {"a": 1},
    ),
    "many values": (
        {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": 10**9},
            "uniqueItems": True,
            "minItems": 2,
        },
        [1, 2],
    ),
    "many ways": (folded(40, {"type": "string"}), "a"),
    "a pointer to nowhere": ({"anyOf": [{"$ref": "#/$defs/none"}, {"type": "string"}]}, None),
}
"""A schema, and a value that fits."""


def of_schema(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_a_schema_that_nothing_fits_is_refused_in_one_sentence(what: str) -> None:
    schema, words = IMPOSSIBLE[what]
    with pytest.raises(UsageError) as refused:
        read_format("'m'", of_schema(schema))
    assert str(refused.value).startswith("'m': the JSON schema of response_format fits no text (")
    assert words in str(refused.value) and "\n" not in str(refused.value)
    assert str(refused.value).endswith("; mend the schema.")


@pytest.mark.parametrize("what", POSSIBLE)
def test_a_schema_that_something_fits_is_not_refused(what: str) -> None:
    schema, value = POSSIBLE[what]
    assert never_fits(schema) == ""
    assert value is None or check_schema(value, schema) == ""
    assert read_format("'m'", of_schema(schema)) is not None


def test_nothing_is_refused_where_the_ways_are_too_many_to_walk() -> None:
    assert never_fits(folded(5, {"not": {}})) == "not forbids everything"
    assert never_fits(folded(40, {"not": {}})) == ""


def test_a_chain_with_such_a_schema_is_refused_before_it_asks_anything() -> None:
    given = {"response_format": of_schema({"not": {}})}
    with pytest.raises(UsageError, match=r"^the chain, action 1: the JSON schema .* fits no text"):
        checked_generation(given, "the chain, action 1")
    fine = {"response_format": of_schema({"type": "string"})}
    assert checked_generation(fine, "the chain") == fine
