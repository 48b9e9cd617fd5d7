"""A Generate as the body of a request, in the fields that this server takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.llms._openai.settings import Settings, check_fields
from rallebench.types import Generate, ToolSpec

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


def _messages(request: Generate, system: str) -> list[dict[str, str]]:
    messages = [
        {"role": "user" if m.role == "tool" else m.role, "content": m.content} for m in request.messages
    ]
    if system and all(message["role"] != "system" for message in messages):
        messages.insert(0, {"role": "system", "content": system})
    return messages


def _tool(tool: ToolSpec) -> dict[str, Any]:
    parameters = dict(tool.parameters)
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


class Dialect:
    """What one server was found not to take, and how it is asked instead.

    Threads may share it: each thing is learnt once, and learning it twice does no harm.
    """

    def __init__(self, max_tokens_field: str) -> None:
        self._automatic = max_tokens_field == "auto"
        self._limit_field = "max_tokens" if self._automatic else max_tokens_field
        self._ask_for_usage = True

    def fit(self, body: Mapping[str, Any], stream: bool) -> dict[str, Any]:
        """``body`` in the fields that this server takes."""
        sent = dict(body)
        if "max_tokens" in sent and self._limit_field != "max_tokens":
            sent[self._limit_field] = sent.pop("max_tokens")
        if stream and self._ask_for_usage:
            sent["stream_options"] = {"include_usage": True}
        return sent

    def learn(self, said: str, sent: Mapping[str, Any]) -> bool:
        """Remember what the server refused; True if the request can now be asked differently."""
        if "stream_options" in sent and "stream_options" in said:
            self._ask_for_usage = False
            return True
        if self._automatic and "max_tokens" in sent and "max_completion_tokens" in said:
            self._limit_field = "max_completion_tokens"
            return True
        return False
