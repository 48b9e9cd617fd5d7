"""JSON in the text of a language model, and its validation against a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, NoReturn

from rallebench.core.errors import BackendError, MissingPackageError
from rallebench.core.json_values import JsonValue
from rallebench.core.satisfiable import fits_nothing
from rallebench.core.types import Json, Reply

_STARTS = 200
"""Brackets at which a JSON value is tried: a text of nothing but brackets must not take minutes."""

_LONGEST = 160
"""Characters of a schema's complaint to show, because it quotes the whole value."""

AROUND = "What the answer said around its JSON was left out."
"""The note about a text with more than JSON."""

FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)


# ── JSON in a text ───────────────────────────────────────────────────────────


def find_json(text: str) -> JsonValue:
    """The first JSON value of a text: the whole text, a fenced block, or an object or list inside.

    Raises BackendError if there is none.

    >>> find_json('Here it is:\\n```json\\n{"answer": "Paris"}\\n```')
    {'answer': 'Paris'}
    >>> find_json('It is {"answer": [1, 2]}, as asked.')
    {'answer': [1, 2]}
    >>> find_json("Paris")
    Traceback (most recent call last):
    rallebench.core.errors.BackendError: the answer holds no JSON
    """
    for value in _values(text):
        return value
    raise BackendError("the answer holds no JSON")


def json_in(reply: Reply, schema: Json | None = None) -> Iterator[JsonValue]:
    r"""The JSON value of each tool call of a reply, then the value in its text: the first that fits ``schema``, else the
    first.

    Values in Python's notation count as well, after those in JSON.

    >>> list(json_in(Reply('See [1]: {"age": 3}'), {"type": "object"}))
    [{'age': 3}]
    >>> list(json_in(Reply("{'name': \"Ada's\", 'alive': False,}")))
    [{'name': "Ada's", 'alive': False}]
    """
    for piece in (*(call.arguments for call in reply.tool_calls), reply.text):
        values = list(islice(chain(_values(piece), _python_values(piece)), 20))
        fits = (value for value in values if not schema or not check_schema(value, schema))
        yield from islice(chain(fits, values), 1)


def _values(text: str) -> Iterator[JsonValue]:
    text = text.strip()
    for piece in (text, *(block[1] for block in FENCE.finditer(text))):
        try:
            yield _DECODER.decode(piece.strip())
        except (ValueError, RecursionError):
            continue
    seen = 0
    for start in islice(re.finditer(r"[{\[]", text), _STARTS):
        if start.start() < seen:
            continue
        try:
            value, seen = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        yield value


_PYTHON = re.compile(
    r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\b(?:True|False|None)\b|,(?=\s*[}\]])"
)
_CONSTANTS = {"True": "true", "False": "false", "None": "null", ",": ""}


def _python_values(text: str) -> Iterator[JsonValue]:
    """The objects and lists of a text in Python's notation."""
    seen = 0
    for start in islice(re.finditer(r"[{\[]", text), _STARTS):
        if start.start() < seen:
            continue
        piece = _PYTHON.sub(_as_json, text[start.start() :])
        try:
            value, end = _DECODER.raw_decode(piece)
        except (ValueError, RecursionError):
            continue
        seen = start.start() + end
        yield value


def _as_json(match: re.Match[str]) -> str:
    part = match[0]
    if part[0] != "'":
        return _CONSTANTS.get(part, part)
    inside = part[1:-1].replace("\\'", "'")
    return '"' + re.sub(r'(?<!\\)"', r"\"", inside) + '"'


def decode_json(text: str) -> JsonValue:
    """The value of a text that is nothing but JSON; None for any other text."""
    try:
        value: JsonValue = _DECODER.decode(text.strip())
        return value
    except (ValueError, RecursionError):
        return None


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


# ── a schema for the answer ──────────────────────────────────────────────────


def schema_fault(schema: Json) -> str:
    """'' for a JSON schema, else its fault (no capital, no full stop).

    >>> schema_fault({"type": "array"}), schema_fault({"type": "list"})[:25]
    ('', "at $.type: 'list' is not ")
    """
    from jsonschema.exceptions import SchemaError

    try:
        _validator(schema).check_schema(dict(schema))
        return ""
    except SchemaError as error:
        return f"at {error.json_path}: {shorten_complaint(error.message)}"
    except RecursionError:
        return "it is nested too deeply"


def never_fits(schema: Json) -> str:
    """The reason why no JSON fits a JSON schema, as far as visible without a search; '' if JSON may fit.

    >>> never_fits({"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 3})
    'its items must be 3 different values, and there are 2'
    """
    return fits_nothing(schema, _validator(schema))


def check_schema(value: JsonValue, schema: Json) -> str:
    """'' if ``value`` fits the JSON schema, else the fault (no capital, no full stop).

    Only references inside the schema are followed: a ``$ref`` to elsewhere is never fetched.

    >>> check_schema({"age": "ten"}, {"type": "object", "properties": {"age": {"type": "integer"}}})
    "at $.age: 'ten' is not of type 'integer'"
    """
    from jsonschema.exceptions import best_match
    from referencing.exceptions import Unresolvable

    try:
        error = best_match(_validator(schema).iter_errors(value))
    except (Unresolvable, RecursionError, re.error) as failure:
        return f"the schema itself cannot be followed ({shorten_complaint(str(failure))})"
    return f"at {error.json_path}: {shorten_complaint(error.message)}" if error else ""


def in_form(text: str, schema: Json) -> tuple[str, str]:
    """Return the answer's JSON alone if it fits the schema, else the whole text; and the text of ``Reply.note``.

    >>> in_form('Sure [1]: {"answer": 3}', {"type": "object"})
    ('{"answer": 3}', 'What the answer said around its JSON was left out.')
    >>> in_form('{"answer": 3}', {"type": "object"})
    ('{"answer": 3}', '')
    >>> in_form("Paris", {"type": "object"})
    ('Paris', 'The answer does not fit the schema: the answer holds no JSON.')
    """
    faults = []
    for value in islice(_values(text), 20):
        if not (fault := check_schema(value, schema)):
            alone = value is None or decode_json(text) is not None
            return (text, "") if alone else (json.dumps(value, ensure_ascii=False), AROUND)
        faults.append(fault)
    fault = faults[0] if faults else "the answer holds no JSON"
    return text, f"The answer does not fit the schema: {fault}."


def _validator(schema: Json) -> Any:
    try:
        import jsonschema
        from jsonschema_specifications import REGISTRY
    except ImportError:
        raise MissingPackageError("jsonschema", "and response_format needs it") from None
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    # With its own registry the library fetches nothing from the network.
    return kind(dict(schema), registry=REGISTRY)


def shorten_complaint(text: str) -> str:
    """Shorten a complaint to one line of at most 160 characters."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
