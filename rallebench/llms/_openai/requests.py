"""Settings of a model at a server, and the request body for a Generate with the fields that this server takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.settings import Setting, declare
from rallebench.core.types import Generate, Message
from rallebench.http.endpoint import Endpoint, check_endpoint
from rallebench.llms import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_TEMPERATURE,
    MOST_TOKENS,
    call_json,
    checked_value,
    settings_from,
    tool_json,
)
from rallebench.llms._transformers.templates import plain

OURS = frozenset({"messages", "model", "n", "prompt", "stream", "stream_options"})
"""Request fields that ``extra_body`` and a request's options may not set."""

PATHS = {"chat": "/chat/completions", "completions": "/completions"}
"""Kind of API → path below the server's address."""

MOST_TOKENS_AT_A_PLACE, FEWER_TOKENS = 20, 5
"""Most tokens with log-probabilities at a place of an answer: of OpenAI's chat API and of its plain completions, which is
also the limit of other servers."""

SERVER_TEMPERATURE = 1.0
"""Temperature of most servers for a request without one, OpenAI included."""


@dataclass(frozen=True)
class Settings(Endpoint):
    """Settings of one model at one server."""

    model: str = declare(str, "", required=True, about="the model's name on the server")
    api: str = declare(
        str,
        "chat",
        choices=tuple(PATHS),
        about="completions: the plain endpoint for base models, which has no chat template and takes no tools",
    )
    timeout: float = declare(
        float, 120.0, 0.01, 86_400, about="seconds until an answer, or of silence in a stream"
    )
    max_tokens: int | None = declare(
        int, DEFAULT_MAX_TOKENS, 1, MOST_TOKENS, null=True, about="null: the server's default"
    )
    temperature: float | None = declare(
        float, DEFAULT_TEMPERATURE, 0, 5, null=True, about="null: the server's default"
    )
    top_p: float | None = declare(float, None, 0, 1, about="null: the server's default")
    system: str = declare(str, "", about="system message for requests without one")
    extra_body: Mapping[str, Any] = declare(object, {}, about="additional fields of every request")
    max_tokens_field: str = declare(
        str, "auto", choices=("auto", "max_tokens", "max_completion_tokens")
    )
    prices: Mapping[str, float] | None = declare(
        object, None, about='US dollars per million tokens: {"prompt": 0.15, "completion": 0.6}'
    )

    @property
    def plain(self) -> bool:
        """True if the model is asked at the plain completion endpoint."""
        return self.api == "completions"

    @property
    def path(self) -> str:
        """Path of requests, below the server's address."""
        return PATHS[self.api]

    @property
    def defaults(self) -> dict[str, Any]:
        """Fields of a request without its own settings: ``extra_body`` over ours; null is not sent."""
        return {"temperature": self.temperature, "top_p": self.top_p, **self.extra_body}


def insisted_settings(ours: Settings) -> dict[str, Any]:
    """Return the settings that apply to requests of every method: those that differ from the defaults, null, and
    ``extra_body``.

    >>> insisted_settings(Settings(max_tokens=4000, temperature=None)), insisted_settings(Settings())
    ({'max_tokens': 4000, 'temperature': None}, {})
    """
    extra = ours.extra_body
    settings: dict[str, Any] = {}
    if ours.max_tokens != DEFAULT_MAX_TOKENS:
        settings["max_tokens"] = ours.max_tokens
    limits = [extra[name] for name in ("max_tokens", "max_completion_tokens") if name in extra]
    if limits:
        settings["max_tokens"] = limits[0] if isinstance(limits[0], int) else None
    if ours.temperature is None or "temperature" in extra:
        settings["temperature"] = None
    if "seed" in extra and extra["seed"] is None:
        settings["seed"] = None
    return settings


def read_settings(name: str, /, **values: Any) -> Settings:
    """Return the settings of the model ``name``. Raises UsageError for the first invalid one."""
    settings = settings_from(Settings, name, values)
    if not settings.model.strip():
        raise UsageError(f"{name!r}: model is empty; enter the model's name on the server.")
    check_endpoint(name, settings)
    if not isinstance(settings.extra_body, Mapping):
        raise UsageError(f"{name!r}: extra_body must be an object of request fields.")
    check_fields(name, "extra_body", settings.extra_body)
    prices = settings.prices
    if prices is not None and (
        not isinstance(prices, Mapping) or set(prices) != {"prompt", "completion"}
    ):
        raise UsageError(
            f'{name!r}: prices must be {{"prompt": …, "completion": …}}, both in US dollars per million tokens.'
        )
    for kind, price in (prices or {}).items():
        checked_value(name, f"prices: {kind}", Setting(float, 0.0, 0, 1e9), price)
    return settings


def check_fields(name: str, where: str, fields: Mapping[str, Any]) -> None:
    """Raise UsageError if ``fields`` contains a reserved field, or cannot be written as JSON."""
    if taken := sorted(OURS.intersection(fields)):
        raise UsageError(
            f"{name!r}: {where} may not set {', '.join(taken)}; rallebench sets that itself."
        )
    try:
        json.dumps(dict(fields), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name!r}: {where} cannot be sent as JSON ({error}).") from None


def request_body(name: str, request: Generate, ours: Settings) -> dict[str, Any]:
    """Return the request body: the request's own settings, then its options, ``extra_body`` and our defaults.

    Raises UsageError for options that it may not set.
    """
    check_fields(name, "the generation options", request.options)
    body = {**ours.defaults, **request.options}
    limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
    if request.max_tokens is not None or limit not in body:
        body[limit] = ours.max_tokens if request.max_tokens is None else request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop and ours.extra_body.get("stop", ()) is not None:  # the text is also cut here
        body["stop"] = list(request.stop)
    if request.tools and ours.plain:
        raise UsageError(
            f"{name!r} is asked by plain completions, which take no tools; set api to chat, or call functions in text."
        )
    if request.tools:
        body["tools"] = [tool_json(tool, dict(tool.parameters)) for tool in request.tools]
    body = {field: value for field, value in body.items() if value is not None}
    messages = request.messages
    if ours.system and all(message.role != "system" for message in messages):
        messages = (Message("system", ours.system), *messages)
    if ours.plain:
        return {"model": ours.model, "prompt": plain(messages), **_plain_fields(body)}
    return {"model": ours.model, "messages": [_message(message) for message in messages], **body}


def body_text(body: Mapping[str, Any]) -> str:
    """Return all text in a body that the model is sent."""
    if "prompt" in body:
        return str(body["prompt"])
    return "".join(message.get("content") or "" for message in body["messages"])


def _plain_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields as plain completions expect them: the number of log-probabilities per token instead of a flag.

    >>> _plain_fields({"logprobs": True, "top_logprobs": 3}), _plain_fields({"logprobs": False, "seed": 1})
    ({'logprobs': 3}, {'seed': 1})
    """
    fields = {
        name: value for name, value in body.items() if name not in ("logprobs", "top_logprobs")
    }
    if body.get("logprobs"):
        fields["logprobs"] = body.get("top_logprobs") or 1
    return fields


def _message(message: Message) -> dict[str, Any]:
    """Return a message as JSON. A tool's message without a call id is sent as the user's, since the format requires the
    id.
    """
    if message.role == "tool":
        if not message.tool_call_id:
            return {"role": "user", "content": message.content}
        return {"role": "tool", "content": message.content, "tool_call_id": message.tool_call_id}
    if not message.tool_calls:
        return {"role": message.role, "content": message.content}
    calls = [call_json(call, call.arguments) for call in message.tool_calls]
    return {"role": message.role, "content": message.content or None, "tool_calls": calls}
