"""A model's yes or no: a boolean from a tool call, from JSON, or from words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rallebench.core.structured import json_in
from rallebench.core.types import Reply, ToolSpec

TRUE, FALSE = ("true", "yes", "y", "1"), ("false", "no", "n", "0")


def _decision(name: str, about: str, argument: str, meaning: str) -> ToolSpec:
    """A function with one argument, true or false."""
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
    """The value of the argument ``name``; None if the reply is unclear.

    A tool call counts first, then JSON in the text, then its words: a first sentence that begins with yes, no, true or
    false and does not contradict it, or a short text with only one of these words.

    >>> read_boolean(Reply('Well: {"retrieve": "yes"}'), "retrieve"), read_boolean(Reply("No, thanks."), "retrieve")
    (True, False)
    >>> read_boolean(Reply("Paris"), "retrieve"), read_boolean(Reply('{"other": true}'), "retrieve")
    (None, None)
    """
    text = reply.text.strip()
    for value in json_in(reply):
        if isinstance(value, bool):
            return value
        if isinstance(value, Mapping):
            return _boolean(_inside(value, name.lower()))
    named = re.search(rf"\b{re.escape(name)}\b\W{{1,4}}(\w+)", text, re.IGNORECASE)
    if named and (boolean := _boolean(named[1])) is not None:
        return boolean
    first = re.split(r"[.!?;\n]", text.lower(), maxsplit=1)[0]
    begins = re.match(r"\W*(?:yes|no|true|false)\b", first)
    kinds = {
        word in TRUE
        for word in re.findall(r"\b(?:yes|no|true|false)\b", first if begins else text.lower())
    }
    return kinds.pop() if len(kinds) == 1 and (begins or len(text) < 200) else None


def _inside(value: Mapping[str, Any], name: str) -> Any:
    """The argument in any case of letters, also inside the ``arguments`` of a call in text."""
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
