"""Formats of an agent's replies, for a model that enforces them during generation (``Generate.forced``).

The formats leave the published prompts unchanged and prescribe only the minimum for the parsers: a verb of the environment
with an argument in its brackets, or a function with arguments that fit its schema. Texts are short enough for the reply to
end before its token limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from rallebench.core.formats import quote_literal, schema_rule
from rallebench.core.types import Json, ToolSpec

NESTED = 40
"""Maximum characters between brackets inside an argument."""


def room(max_tokens: int) -> int:
    """Return the number of free characters in a reply with this token limit: rare letters take one token or more each."""
    return max(24, max_tokens * 5 // 8)


def action(verbs: Iterable[str], brackets: str, max_tokens: int, bare: Sequence[str] = ()) -> Json:
    """Return the format of one scratchpad action, such as ``Search[Ada Lovelace]``. ``bare``: verbs without an argument."""
    pattern = f" ?{_action(verbs, brackets, room(max_tokens), bare)}"
    return {"response_format": {"type": "regex", "regex": pattern}}


def thought_and_action(
    verbs: Iterable[str],
    brackets: str,
    number: int,
    max_tokens: int,
    bare: Sequence[str] = (),
) -> Json:
    """Return the format of a thought and the action with the same number below it."""
    half = room(max_tokens) // 2
    pattern = (
        rf" ?[^\s\[\]][^\n]{{0,{half}}}\nAction {number}: {_action(verbs, brackets, half, bare)}"
    )
    return {"response_format": {"type": "regex", "regex": pattern}}


def _action(verbs: Iterable[str], brackets: str, longest: int, bare: Sequence[str]) -> str:
    left, right = map(re.escape, brackets)
    plain = rf"[^{left}{right}\n]"
    argument = rf"[^\s{left}{right}](?:{plain}|{left}{plain}{{0,{NESTED}}}{right}){{0,{longest}}}"
    with_argument = "|".join(re.escape(verb) for verb in verbs if verb not in bare)
    action = f"(?:{with_argument}){left}{argument}{right}"
    return f"(?:{action}|(?:{'|'.join(map(re.escape, bare))}){left}{right})" if bare else action


def text_call(tools: Sequence[ToolSpec], max_tokens: int) -> Json:
    """Return the format of a thought, a function and its arguments, in the text protocol."""
    half = room(max_tokens) // 2
    rules = [f'start: "Thought: " /[^\\s][^\\n]{{0,{half}}}/ "\\nAction: " call']
    names = [f"call{number}" for number in range(len(tools))]
    rules.append(f"call: {' | '.join(names)}")
    for name, tool in zip(names, tools):
        head = quote_literal(f"{tool.name}\nAction Input: ")
        rules.append(f"{name}: {head} {schema_rule(_short(tool, half))}")
    return {"response_format": {"type": "grammar", "grammar": "\n".join(rules)}}


def native_call(tools: Sequence[ToolSpec]) -> Json:
    """Return the format of a native tool call."""
    return {"tool_choice": "required"} if tools else {}


def _short(tool: ToolSpec, longest: int) -> dict[str, Any]:
    """Return the schema of the arguments whose texts share this number of characters."""
    properties = tool.properties
    free = [name for name, value in properties.items() if _is_free(value)]
    most = {"maxLength": max(16, longest // max(1, len(free)))}
    bound = {name: {**properties[name], **most} for name in free}
    # without an end to its properties an object may have no end
    closed = {"type": "object", "additionalProperties": False}
    return {**tool.parameters, **closed, "properties": {**properties, **bound}}


def _is_free(value: Json) -> bool:
    return value.get("type") == "string" and "enum" not in value
