"""Whether a model said yes: a boolean from a tool call, from JSON, or from words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rallebench.core.errors import BackendError
from rallebench.core.types import Reply, ToolSpec
from rallebench.llms._structured import json_of

TRUE, FALSE = ("true", "yes", "y", "1"), ("false", "no", "n", "0")
_THOUGHT_ENDS = "</think>"

RETRIEVAL = ToolSpec(
    "databaseRetrieval",
    "Query the database for extracts that help to answer.",
    {
        "type": "object",
        "properties": {
            "retrieve": {"type": "boolean", "description": "Whether the database is queried."}
        },
        "required": ["retrieve"],
    },
)
MORE = ToolSpec(
    "moreInformation",
    "Say whether more information would have helped.",
    {
        "type": "object",
        "properties": {
            "moreInfo": {
                "type": "boolean",
                "description": "True if you could have answered the last question better with more information.",
            }
        },
        "required": ["moreInfo"],
    },
)


def read_boolean(reply: Reply, name: str) -> bool | None:
    """The value of the argument ``name``; None where the reply does not say clearly.

    A tool call is looked at first, then JSON in the text, then its words: a first sentence that begins with yes, no, true or false
    and does not take it back, or a short text in which only one of these stands.

    >>> read_boolean(Reply('Well: {"retrieve": "yes"}'), "retrieve"), read_boolean(Reply("No, thanks."), "retrieve")
    (True, False)
    >>> read_boolean(Reply("Paris"), "retrieve"), read_boolean(Reply('{"other": true}'), "retrieve")
    (None, None)
    """
    text = reply.text.rpartition(_THOUGHT_ENDS)[2].strip()
    for piece in (*(call.arguments for call in reply.tool_calls), text):
        try:
            value = json_of(piece)
        except BackendError:
            continue
        if isinstance(value, bool):
            return value
        if isinstance(value, Mapping):
            return _boolean(_inside(value, name.lower()))
    named = re.search(rf"\b{re.escape(name)}\b\W{{1,4}}(\w+)", text, re.IGNORECASE)
    if named and (found := _boolean(named[1])) is not None:
        return found
    first = re.split(r"[.!?;\n]", text.lower(), maxsplit=1)[0]
    begins = re.match(r"\W*(?:yes|no|true|false)\b", first)
    kinds = {
        word in TRUE
        for word in re.findall(r"\b(?:yes|no|true|false)\b", first if begins else text.lower())
    }
    return kinds.pop() if len(kinds) == 1 and (begins or len(text) < 200) else None


def _inside(value: Mapping[str, Any], name: str) -> Any:
    """The argument, whatever its capitals, also inside ``arguments`` of a call that was written as text."""
    found = {str(key).lower(): one for key, one in value.items()}
    if name not in found and isinstance(found.get("arguments", found.get("parameters")), Mapping):
        return _inside(found.get("arguments", found.get("parameters")) or {}, name)
    return found.get(name)


def _boolean(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    said = str(value).strip().lower()
    return True if said in TRUE else False if said in FALSE else None
