"""The settings of a model at a server, checked before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.settings import Setting, declare
from rallebench.http.endpoint import MAX_RATE, OPENAI, check_address, check_variable
from rallebench.http.retry import MAX_PAUSE
from rallebench.llms import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_TEMPERATURE,
    MOST_TOKENS,
    checked_value,
    settings_from,
)

OURS = frozenset({"messages", "model", "n", "stream", "stream_options"})
"""Fields of the request that ``extra_body`` and a request's options may not set."""


_RATE = (0.01, MAX_RATE)


@dataclass(frozen=True)
class Settings:
    """The settings of one model at one server.

    At most ``concurrency`` requests are in flight, fewer while the server is overloaded; that, and the two rates, hold
    for all models at one address. OPENAI_API_KEY goes to OpenAI and to this machine only.
    """

    model: str = declare(str, "", required=True, about="the model's name on the server")
    base_url: str = declare(str, OPENAI, about="the server's address, which usually ends in /v1")
    api_key_env: str | None = declare(
        object, None, about="the environment variable that holds the key"
    )
    timeout: float = declare(
        float, 120.0, 0.01, 86_400, about="seconds for an answer, or of silence in a stream"
    )
    concurrency: int = declare(int, 16, 1, 256, about="requests at once")
    max_retries: int = declare(int, 6, 0, 100, about="further tries of a request that failed")
    backoff: float = declare(
        float, 0.5, 0, MAX_PAUSE, about="seconds before the second try; doubled each time"
    )
    max_tokens: int | None = declare(
        int, DEFAULT_MAX_TOKENS, 1, MOST_TOKENS, null=True, about="null: the server's own"
    )
    temperature: float | None = declare(
        float, DEFAULT_TEMPERATURE, 0, 5, null=True, about="null: the server's own"
    )
    top_p: float | None = declare(float, None, 0, 1, about="null: the server's own")
    system: str = declare(str, "", about="the system message of requests without one")
    extra_body: Mapping[str, Any] = declare(object, {}, about="further fields of each request")
    max_tokens_field: str = declare(
        str, "auto", choices=("auto", "max_tokens", "max_completion_tokens")
    )
    requests_per_minute: float | None = declare(float, None, *_RATE, about="null: no limit")
    tokens_per_minute: float | None = declare(
        float, None, *_RATE, about="of prompts and answers; null: no limit"
    )
    prices: Mapping[str, float] | None = declare(
        object, None, about='US dollars per million tokens: {"prompt": 0.15, "completion": 0.6}'
    )


def settings_of(name: str, /, **values: Any) -> Settings:
    """The settings of the model ``name``. Raises UsageError for the first invalid one."""
    settings = settings_from(Settings, name, values)
    if not settings.model.strip():
        raise UsageError(
            f"{name!r}: model is empty; it must be the name the server knows the model by."
        )
    check_address(name, settings.base_url)
    if settings.api_key_env is not None:
        check_variable(name, settings.api_key_env)
    if not isinstance(settings.extra_body, Mapping):
        raise UsageError(f"{name!r}: extra_body must be an object of request fields.")
    check_fields(name, "extra_body", settings.extra_body)
    _check_prices(name, settings.prices)
    return settings


def _check_prices(name: str, prices: Any) -> None:
    if prices is None:
        return
    if not isinstance(prices, Mapping) or set(prices) != {"prompt", "completion"}:
        raise UsageError(
            f'{name!r}: prices must be {{"prompt": …, "completion": …}}, both in US dollars per million tokens.'
        )
    for kind, price in prices.items():
        checked_value(name, f"prices: {kind}", Setting(float, 0.0, 0, 1e9), price)


def check_fields(name: str, where: str, fields: Mapping[str, Any]) -> None:
    """Raise UsageError if ``fields`` of a request are ours to set, or no JSON."""
    if taken := sorted(OURS.intersection(fields)):
        raise UsageError(
            f"{name!r}: {where} may not set {', '.join(taken)}; rallebench sets that itself."
        )
    try:
        json.dumps(dict(fields), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name!r}: {where} cannot be sent as JSON ({error}).") from None
