"""A model's boolean decision, read from a tool call, JSON, or plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.core.structured import json_in
from rallebench.core.types import Reply, ToolSpec
from rallebench.core.verdicts import read_verdict

TRUE, FALSE = ("true", "yes", "y", "1"), ("false", "no", "n", "0")


def _decision(name: str, about: str, argument: str, meaning: str) -> ToolSpec:
    """A tool with one boolean argument."""
    properties = {argument: {"type": "boolean", "description": meaning}}
    return ToolSpec(
        name, about, {"type": "object", "properties": properties, "required": [argument]}
    )


RETRIEVAL = _decision(
    "databaseRetrieval",
    "Query the database for extracts that help to answer.",
    "retrieve",
    "Whether the database is queried.",
)
MORE = _decision(
    "moreInformation",
    "Say whether more information would have helped.",
    "moreInfo",
    "True if you could have answered the last question better with more information.",
)


def read_boolean(reply: Reply, name: str) -> bool | None:
    """The value of the argument ``name``; None for an unclear reply.

    A tool call takes precedence, then JSON in the text, then the words of the text.

    >>> read_boolean(Reply('Well: {"retrieve": "yes"}'), "retrieve"), read_boolean(Reply("No, thanks."), "retrieve")
    (True, False)
    >>> read_boolean(Reply("Paris"), "retrieve"), read_boolean(Reply('{"other": true}'), "retrieve")
    (None, None)
    """
    for value in json_in(reply):
        if isinstance(value, bool):
            return value
        if isinstance(value, Mapping):
            return _boolean(_inside(value, name.lower()))
    return read_verdict(reply.text)


def boolean_texts(name: str) -> tuple[str, str]:
    """The two replies that state the argument ``name``.

    >>> boolean_texts("retrieve")
    ('{"retrieve": true}', '{"retrieve": false}')
    """
    return f'{{"{name}": true}}', f'{{"{name}": false}}'


def _inside(value: Mapping[str, Any], name: str) -> Any:
    """The argument ``name``, ignoring case; it may be nested in the ``arguments`` of a call written as text."""
    fields = {str(key).lower(): content for key, content in value.items()}
    if name not in fields and isinstance(
        fields.get("arguments", fields.get("parameters")), Mapping
    ):
        return _inside(fields.get("arguments", fields.get("parameters")) or {}, name)
    return fields.get(name)


def _boolean(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    return True if word in TRUE else False if word in FALSE else None
