"""The forms of an agent's replies, for a model that enforces them while it writes (``Generate.forced``).

They leave the prompts as they are published and say no more than what their readers need: a verb of the environment with an
argument in its brackets, a function with arguments of its schema. Texts are short enough that the reply ends before its
limit of tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rallebench.core.formats import quote_literal, schema_rule
from rallebench.core.types import ToolSpec

NESTED = 40
"""The most characters between brackets inside an argument."""


def room(max_tokens: int) -> int:
    """The characters that may be written freely in a reply of so many tokens: rare letters take a token each, and more."""
    return max(24, max_tokens * 5 // 8)


def action(verbs: Iterable[str], brackets: str, max_tokens: int) -> Mapping[str, Any]:
    """One action of a scratchpad, such as ``Search[Ada Lovelace]``."""
    pattern = f" ?{_action(verbs, brackets, room(max_tokens))}"
    return {"response_format": {"type": "regex", "regex": pattern}}


def thought_and_action(
    verbs: Iterable[str], brackets: str, number: int, max_tokens: int
) -> Mapping[str, Any]:
    """A thought and the action of the same number below it."""
    half = room(max_tokens) // 2
    pattern = rf" ?[^\s\[\]][^\n]{{0,{half}}}\nAction {number}: {_action(verbs, brackets, half)}"
    return {"response_format": {"type": "regex", "regex": pattern}}


def _action(verbs: Iterable[str], brackets: str, longest: int) -> str:
    left, right = map(re.escape, brackets)
    plain = rf"[^{left}{right}\n]"
    argument = rf"[^\s{left}{right}](?:{plain}|{left}{plain}{{0,{NESTED}}}{right}){{0,{longest}}}"
    return f"(?:{'|'.join(map(re.escape, verbs))}){left}{argument}{right}"


def text_call(tools: Sequence[ToolSpec], max_tokens: int) -> Mapping[str, Any]:
    """A thought, a function and its arguments, in the text protocol."""
    half = room(max_tokens) // 2
    rules = [f'start: "Thought: " /[^\\s][^\\n]{{0,{half}}}/ "\\nAction: " call']
    names = [f"call{number}" for number in range(len(tools))]
    rules.append(f"call: {' | '.join(names)}")
    for name, tool in zip(names, tools):
        head = quote_literal(f"{tool.name}\nAction Input: ")
        rules.append(f"{name}: {head} {schema_rule(_short(tool.parameters, half))}")
    return {"response_format": {"type": "grammar", "grammar": "\n".join(rules)}}


def native_call(tools: Sequence[ToolSpec]) -> Mapping[str, Any]:
    """A call of the model's own."""
    return {"tool_choice": "required"} if tools else {}


def _short(schema: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """The schema of an object whose texts share so many characters."""
    properties = schema.get("properties", {})
    free = [name for name, value in properties.items() if _is_free(value)]
    most = {"maxLength": max(16, longest // max(1, len(free)))}
    bound = {name: {**properties[name], **most} for name in free}
    # Without an end to its properties an object may have no end.
    closed = {"type": "object", "additionalProperties": False}
    return {**schema, **closed, "properties": {**properties, **bound}}


def _is_free(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "string" and "enum" not in value
