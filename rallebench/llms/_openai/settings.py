"""What an endpoint can be told, checked before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.http.endpoint import MAX_RATE, OPENAI, check_address, check_variable
from rallebench.http.retry import MAX_PAUSE
from rallebench.llms import DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE, checked_number

OURS = frozenset({"messages", "model", "n", "stream", "stream_options"})
"""Fields of the request that ``extra_body`` and a request's options may not set."""


@dataclass(frozen=True)
class Settings:
    """``api_key_env``: the variable that holds the key. By default OPENAI_API_KEY, which only OpenAI
    and this machine are shown; a key for any other server is named here.

    Seconds for ``timeout`` (silence in a stream, the whole answer otherwise) and ``backoff``
    (the first pause before another try; doubled each time, with jitter, at most a minute).

    ``temperature``, ``max_tokens``, ``top_p``: null leaves them to the server.

    At most ``concurrency`` requests are in flight, fewer while the server is overloaded; that, and
    ``requests_per_minute`` and ``tokens_per_minute`` (prompt and answer), hold for all models at one address.

    ``prices``: US dollars per million tokens, ``{"prompt": 0.15, "completion": 0.6}``.
    """

    model: str
    base_url: str = OPENAI
    api_key_env: str | None = None
    timeout: float = 120.0
    concurrency: int = 16
    max_retries: int = 6
    backoff: float = 0.5
    max_tokens: int | None = DEFAULT_MAX_TOKENS
    temperature: float | None = DEFAULT_TEMPERATURE
    top_p: float | None = None
    system: str = ""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    max_tokens_field: str = "auto"
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    prices: Mapping[str, float] | None = None


def check(name: str, given: Settings) -> None:
    """Raise UsageError for the first setting that cannot be."""
    for setting in ("model", "base_url", "system", "max_tokens_field"):
        if not isinstance(getattr(given, setting), str):
            raise UsageError(f"{name!r}: {setting} must be a text.")
    if not given.model.strip():
        raise UsageError(
            f"{name!r}: model is empty; it must be the name the server knows the model by."
        )
    check_address(name, given.base_url)
    if given.api_key_env is not None:
        check_variable(name, given.api_key_env)
    checked_number(name, "timeout", given.timeout, 0.01, 86_400)
    checked_number(name, "concurrency", given.concurrency, 1, 256, whole=True)
    checked_number(name, "max_retries", given.max_retries, 0, 100, whole=True)
    checked_number(name, "backoff", given.backoff, 0, MAX_PAUSE)
    checked_number(name, "max_tokens", given.max_tokens, 1, 10_000_000, whole=True, optional=True)
    checked_number(name, "temperature", given.temperature, 0, 5, optional=True)
    checked_number(name, "top_p", given.top_p, 0, 1, optional=True)
    if given.max_tokens_field not in ("auto", "max_tokens", "max_completion_tokens"):
        raise UsageError(
            f"{name!r}: max_tokens_field must be auto, max_tokens or max_completion_tokens."
        )
    if not isinstance(given.extra_body, Mapping):
        raise UsageError(f"{name!r}: extra_body must be an object of request fields.")
    check_fields(name, "extra_body", given.extra_body)
    for setting in ("requests_per_minute", "tokens_per_minute"):
        checked_number(name, setting, getattr(given, setting), 0.01, MAX_RATE, optional=True)
    _check_prices(name, given.prices)


def _check_prices(name: str, prices: Any) -> None:
    if prices is None:
        return
    if not isinstance(prices, Mapping) or set(prices) != {"prompt", "completion"}:
        raise UsageError(
            f'{name!r}: prices must be {{"prompt": …, "completion": …}}, both in US dollars per million tokens.'
        )
    for kind, price in prices.items():
        checked_number(name, f"prices: {kind}", price, 0, 1e9)


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
