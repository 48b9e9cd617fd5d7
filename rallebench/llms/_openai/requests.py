"""A Generate as the body of a request, in the fields that this server takes."""

from __future__ import annotations

from typing import Any

from rallebench.core.types import Generate, Message, ToolSpec
from rallebench.llms._openai.settings import Settings, check_fields

SERVER_TEMPERATURE = 1.0
"""What a server samples with that is told nothing: OpenAI's default, and that of most."""


def defaults(ours: Settings) -> dict[str, Any]:
    """The fields of a request that asks for nothing: ``extra_body`` over our settings; null is not sent."""
    return {"temperature": ours.temperature, "top_p": ours.top_p, **ours.extra_body}


def default_temperature(ours: Settings) -> float:
    """The temperature of a request that leaves it open."""
    value = defaults(ours)["temperature"]
    return float(value) if isinstance(value, (int, float)) else SERVER_TEMPERATURE


def default_seed(ours: Settings) -> int | None:
    """The seed of a request that leaves it open: that of ``extra_body``, if any."""
    value = defaults(ours).get("seed")
    return value if isinstance(value, int) else None


def body_of(name: str, request: Generate, ours: Settings) -> dict[str, Any]:
    """The request's own settings over its options over ``extra_body`` over our defaults.

    Raises UsageError for options that it may not set.
    """
    check_fields(name, "the generation options", request.options)
    body = {**defaults(ours), **request.options}
    if request.max_tokens is not None or not {"max_tokens", "max_completion_tokens"} & body.keys():
        body.pop("max_completion_tokens", None)
        body["max_tokens"] = ours.max_tokens if request.max_tokens is None else request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    body = {field: value for field, value in body.items() if value is not None}
    return {"model": ours.model, "messages": _messages(request, ours.system), **body}


def _messages(request: Generate, system: str) -> list[dict[str, Any]]:
    messages = [_message(message) for message in request.messages]
    if system and all(message["role"] != "system" for message in messages):
        messages.insert(0, {"role": "system", "content": system})
    return messages


def _message(message: Message) -> dict[str, Any]:
    """The format ties a tool's message to the id of a call; one without is sent as the user's."""
    if message.role == "tool":
        if not message.tool_call_id:
            return {"role": "user", "content": message.content}
        return {"role": "tool", "content": message.content, "tool_call_id": message.tool_call_id}
    if not message.tool_calls:
        return {"role": message.role, "content": message.content}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in message.tool_calls
    ]
    return {"role": message.role, "content": message.content or None, "tool_calls": calls}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    parameters = dict(tool.parameters)
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}
