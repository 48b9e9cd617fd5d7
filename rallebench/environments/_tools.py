"""The verbs of an environment as tools with a JSON schema, and validation of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rallebench.core.types import Json, ToolSpec


def tool(
    name: str, description: str, /, *, optional: Sequence[str] = (), **parameters: str
) -> ToolSpec:
    """Return a tool with text parameters, name → description; all but the ``optional`` ones are required.

    >>> tool("Search", "Open a page.", entity="its name").arguments
    ('entity',)
    """
    properties = {
        key: {"type": "string", "description": about} for key, about in parameters.items()
    }
    required = [key for key in parameters if key not in optional]
    schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema)


LONGEST_LIST = 700
"""Maximum characters of a list of tools in an observation."""


def invalid_action(tools: Sequence[ToolSpec]) -> str:
    """Return the observation of an unknown verb in round brackets: a sentence that lists the verbs and their arguments."""
    actions = (
        f"{spec.name}({', '.join(f'<{name}>' for name in spec.arguments)})" for spec in tools
    )
    return f"Invalid Action. Valid Actions are {_shorten(' '.join(actions))} and Finish(<answer>)."


def unknown_tool(tools: Sequence[ToolSpec], name: str) -> str:
    """Return the observation of a call of a tool that does not exist."""
    names = _shorten(", ".join(spec.name for spec in tools))
    return f"There is no tool {name[:100]!r}. The tools are {names}."


def _shorten(listed: str) -> str:
    return listed if len(listed) <= LONGEST_LIST else f"{listed[:LONGEST_LIST]} …"


def checked_call(
    tools: Sequence[ToolSpec], name: str, arguments: Json
) -> tuple[dict[str, str], str]:
    """Return (the non-empty arguments as texts, '') of a valid call, or ({}, one sentence).

    A number is converted to text, a list of plain values to texts joined with commas.
    """
    spec = next((spec for spec in tools if spec.name == name), None)
    if spec is None:
        return {}, unknown_tool(tools, name)
    known, texts = spec.arguments, {}
    for key, value in arguments.items():
        if key not in known:
            return {}, f"{name} takes {', '.join(known)}; {str(key)[:100]!r} is none of them."
        text = as_text(value)
        if text is None:
            return {}, f"{name} takes {key} as text, not as {type(value).__name__}."
        if text.strip():
            texts[key] = text
    missing = [key for key in spec.required_names if key not in texts]
    return ({}, f"{name} needs {missing[0]}; it is missing or empty.") if missing else (texts, "")


def as_text(value: Any) -> str | None:
    """Return a plain value as text ('' for null), None for anything else."""
    if value is None:
        return ""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return ", ".join(map(str, value))
    return None


def single_argument(tools: Sequence[ToolSpec], name: str, arguments: Json) -> tuple[str, str]:
    """Return (argument, '') of a call of a tool with one parameter, or ('', one sentence)."""
    texts, wrong = checked_call(tools, name, arguments)
    return ("", wrong) if wrong else (next(iter(texts.values()), ""), "")
