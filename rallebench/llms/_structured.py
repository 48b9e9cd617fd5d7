"""Structured answers as text: JSON found in it, checked against a schema, and tool calls written into it.

Shared by the backends; a server or a model that does this itself needs only the checks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from rallebench.core.errors import BackendError, MissingPackageError, UsageError
from rallebench.core.types import ToolCall

_STARTS = 200
"""Brackets at which a JSON value is looked for: a text of nothing but brackets must not take minutes."""

_LONGEST = 160
"""Characters of a schema's complaint that are shown: it quotes the whole value."""

AROUND = "What the answer said around its JSON was left out."
"""The note about a text that is more than its JSON."""

_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
_THOUGHT_ENDS = "</think>"
_MARK, _END_MARK = "<tool_call>", "</tool_call>"


# ── JSON in a text ───────────────────────────────────────────────────────────


def json_of(text: str) -> Any:
    """The first JSON value of a text: the whole text, a fenced block, or an object or list inside.

    What a reasoning model wrote before ``</think>`` is not looked at. Raises BackendError if there is none.

    >>> json_of('Here it is:\\n```json\\n{"answer": "Paris"}\\n```')
    {'answer': 'Paris'}
    >>> json_of('It is {"answer": [1, 2]}, as asked.')
    {'answer': [1, 2]}
    >>> json_of("Paris")
    Traceback (most recent call last):
    rallebench.core.errors.BackendError: the answer holds no JSON
    """
    for value in _values(text):
        return value
    raise BackendError("the answer holds no JSON")


def _values(text: str) -> Iterator[Any]:
    text = text.rpartition(_THOUGHT_ENDS)[2].strip()
    for piece in (text, *(block[1] for block in _FENCE.finditer(text))):
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


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


# ── a schema for the answer ──────────────────────────────────────────────────


def schema_of(name: str, response_format: Any) -> Mapping[str, Any] | None:
    """The JSON schema that ``response_format`` (OpenAI's shape) asks for; None if it asks for plain text.

    ``{"type": "json_object"}`` is any object. Raises UsageError for what is not of that shape.

    >>> schema_of("m", {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "array"}}})
    {'type': 'array'}
    """
    if response_format is None:
        return None
    wish = response_format if isinstance(response_format, Mapping) else {}
    kind, inside = wish.get("type"), wish.get("json_schema")
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    schema = inside.get("schema") if kind == "json_schema" and isinstance(inside, Mapping) else None
    if not isinstance(schema, Mapping):
        raise UsageError(
            f'{name!r}: response_format must be {{"type": "json_schema", "json_schema": {{"name": …, "schema": '
            '…}}, {"type": "json_object"} or {"type": "text"}.'
        )
    from jsonschema.exceptions import SchemaError

    validator = _validator(schema)
    try:
        validator.check_schema(dict(schema))
        return schema
    except SchemaError as error:
        wrong = f"at {error.json_path}: {_short(error.message)}"
    except RecursionError:
        wrong = "it is nested too deeply"
    raise UsageError(f"{name!r}: the schema of response_format is no JSON schema ({wrong}).")


def check_schema(value: Any, schema: Mapping[str, Any]) -> str:
    """'' if ``value`` fits the JSON schema, else what does not fit (no capital, no full stop).

    Only what stands in the schema itself is followed: a ``$ref`` to elsewhere is never fetched.

    >>> check_schema({"age": "ten"}, {"type": "object", "properties": {"age": {"type": "integer"}}})
    "at $.age: 'ten' is not of type 'integer'"
    """
    from jsonschema.exceptions import best_match
    from referencing.exceptions import Unresolvable

    try:
        error = best_match(_validator(schema).iter_errors(value))
    except (Unresolvable, RecursionError, re.error) as failure:
        return f"the schema itself cannot be followed ({_short(str(failure))})"
    return f"at {error.json_path}: {_short(error.message)}" if error else ""


def in_form(text: str, schema: Mapping[str, Any]) -> tuple[str, str]:
    """The answer's JSON alone, where one fits the schema, else the whole text; and what ``Reply.note`` should say.

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
            alone = value is None or _decoded(text) is not None
            return (text, "") if alone else (json.dumps(value, ensure_ascii=False), AROUND)
        faults.append(fault)
    fault = faults[0] if faults else "the answer holds no JSON"
    return text, f"The answer does not fit the schema: {fault}."


def _validator(schema: Mapping[str, Any]) -> Any:
    try:
        import jsonschema
        from jsonschema_specifications import REGISTRY
    except ImportError:
        raise MissingPackageError("jsonschema", "and response_format needs it") from None
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    # With a registry of its own the library fetches nothing from the network.
    return kind(dict(schema), registry=REGISTRY)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# ── tool calls in a text ─────────────────────────────────────────────────────


def calls_of(text: str) -> tuple[str, tuple[ToolCall, ...]]:
    """The text without its tool calls, and the calls in order (ids ``call_0``, ``call_1`` …).

    Two forms: Hermes' ``<tool_call>{"name": …, "arguments": {…}}</tool_call>`` anywhere in the text (the
    last may lack its end), and a text that is one such object, or a list of them, and nothing else.
    What cannot be parsed stays in the text.

    >>> calls_of('Let me see.\\n<tool_call>{"name": "search", "arguments": {"q": "Ada"}}</tool_call>')
    ('Let me see.', (ToolCall(id='call_0', name='search', arguments='{"q": "Ada"}'),))
    >>> calls_of('[{"name": "search", "parameters": {}}]')
    ('', (ToolCall(id='call_0', name='search', arguments='{}'),))
    >>> calls_of("search(Ada)")
    ('search(Ada)', ())
    """
    thought, ends, rest = text.rpartition(_THOUGHT_ENDS)
    if _MARK not in rest:
        calls = _plain_calls(rest)
        return (f"{thought}{ends}", _numbered(calls)) if calls else (text, ())
    calls: list[tuple[str, str]] = []
    first, *pieces = rest.split(_MARK)
    texts = [first]
    for piece in pieces:
        inside, _, after = piece.partition(_END_MARK)
        call = _call(_decoded(inside))
        if call:
            calls.append(call)
            texts.append(after)
        else:
            texts.append(_MARK + piece)
    if not calls:
        return text, ()
    return f"{thought}{ends}{''.join(texts)}".rstrip(), _numbered(calls)


def before_calls(text: str) -> str:
    """The beginning of a text, still being written, that no tool call can take back from its reader.

    >>> before_calls('Let me see. <tool'), before_calls(' {"name": "se'), before_calls("a { b")
    ('Let me see.', '', 'a { b')
    """
    thought, ends, rest = text.rpartition(_THOUGHT_ENDS)
    if rest.lstrip().startswith(("{", "[", "`")):
        rest = ""
    rest = rest.partition(_MARK)[0]
    begun = max((size for size in range(1, len(_MARK)) if rest.endswith(_MARK[:size])), default=0)
    return f"{thought}{ends}{rest[: len(rest) - begun]}".rstrip()


def _plain_calls(text: str) -> list[tuple[str, str]]:
    text = text.strip()
    if fenced := _FENCE.fullmatch(text):
        text = fenced[1]
    if not text.lstrip().startswith(("{", "[")):
        return []
    value = _decoded(text)
    calls = [_call(part) for part in (value if isinstance(value, list) else [value])]
    return [call for call in calls if call] if all(calls) else []


def _decoded(text: str) -> Any:
    try:
        return _DECODER.decode(text.strip())
    except (ValueError, RecursionError):
        return None


def _call(value: Any) -> tuple[str, str] | None:
    """(name, arguments as JSON text) of an object that is a call: arguments, or Llama's parameters."""
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]  # OpenAI's own shape
    if not isinstance(value, Mapping):
        return None
    name = value.get("name")
    arguments = value["arguments"] if "arguments" in value else value.get("parameters")
    if isinstance(arguments, str):  # JSON inside JSON
        arguments = _decoded(arguments)
    if not isinstance(name, str) or not name or not isinstance(arguments, Mapping):
        return None
    return name, json.dumps(arguments, ensure_ascii=False)


def _numbered(calls: list[tuple[str, str]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(f"call_{number}", *call) for number, call in enumerate(calls))
