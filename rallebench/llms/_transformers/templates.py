"""Messages → prompt text, through the model's chat template or as plain text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from rallebench.core.types import Json, Message, ToolSpec
from rallebench.llms import call_json, tool_json


def in_template(
    tokenizer: Any, messages: Sequence[Message], tools: Sequence[ToolSpec], extra: Json
) -> str:
    """Render the prompt with the tokenizer's chat template; raises whatever the template raises.

    A message keeps the role ``tool`` if there are tools, or if it answers a call; otherwise it becomes a user message.
    """
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    turns = [_turn(message, bool(tools), names) for message in messages]
    none = {"type": "object", "properties": {}}
    functions = [tool_json(tool, dict(tool.parameters) or none) for tool in tools]
    known = {"tools": functions} if tools else {}
    return str(
        tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, **{**extra, **known}
        )
    )


def _turn(message: Message, tools: bool, names: Mapping[str, str]) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        turn["tool_calls"] = [
            call_json(call, _object(call.arguments)) for call in message.tool_calls
        ]
    if message.role == "tool" and message.tool_call_id:
        turn["tool_call_id"] = message.tool_call_id
        turn["name"] = names.get(message.tool_call_id, "")
    elif message.role == "tool" and not tools:
        turn["role"] = "user"
    return turn


def _object(arguments: str) -> Any:
    """Return the arguments as an object, as templates expect them; text that is not an object is returned unchanged."""
    with suppress(ValueError):
        return json.loads(arguments)
    return arguments


def plain(messages: Sequence[Message]) -> str:
    """Join messages into one text for a model without a chat template; a lone prompt is returned unchanged.

    >>> plain([Message("system", "Be brief."), Message("user", "Who?")])
    'Be brief.\\n\\nWho?'
    >>> plain([Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "Who?")])
    'User: Hi\\nAssistant: Hello\\nUser: Who?\\nAssistant:'
    """
    system = [message.content for message in messages if message.role == "system"]
    turns = [message for message in messages if message.role != "system"]
    if len(turns) > 1:
        lines = [f"{message.role.capitalize()}: {message.content}" for message in turns]
        return "\n\n".join([*system, "\n".join([*lines, "Assistant:"])])
    return "\n\n".join([*system, *(message.content for message in turns)])


def fold_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Move system messages to the start of the next user message, separated by a blank line.

    >>> [(m.role, m.content) for m in fold_system([Message("system", "Be brief."), Message("user", "Who?")])]
    [('user', 'Be brief.\\n\\nWho?')]
    """
    others: list[Message] = []
    system: list[str] = []
    for message in messages:
        if message.role == "system":
            system.append(message.content)
        elif message.role == "user" and system:
            others.append(replace(message, content="\n\n".join([*system, message.content])))
            system = []
        else:
            others.append(message)
    return (*others, *(Message("user", text) for text in system))


def with_wish(messages: Sequence[Message], wish: str, chat: bool) -> tuple[Message, ...]:
    """Add instructions about the format of the answer after the last user message of a chat, or before a plain prompt.

    The last line of a plain prompt is often the beginning of the answer.

    >>> [message.content for message in with_wish([Message("user", "Who?")], "Answer yes or no.", chat=True)]
    ['Who?\\n\\nAnswer yes or no.']
    """
    places = [place for place, message in enumerate(messages) if message.role == "user"]
    if not chat or not places:
        return (Message("system", wish), *messages)
    last = messages[places[-1]]
    with_wish = replace(last, content=f"{last.content}\n\n{wish}")
    return (*messages[: places[-1]], with_wish, *messages[places[-1] + 1 :])
