"""OpenAI-compatible servers, whatever is asked of them: addresses, keys, connections, trying again.

``httpcore2`` is imported when a connection is made.
"""

from __future__ import annotations

from typing import Protocol

MAX_RATE = 1e9
"""Requests or tokens per minute: the highest limit that can be set."""


class Endpoint(Protocol):
    """What everybody who asks a server has to say.

    ``api_key_env``: the variable that holds the key. By default OPENAI_API_KEY, which only OpenAI and this
    machine are shown. ``timeout`` and ``backoff`` are seconds.
    """

    @property
    def model(self) -> str: ...

    @property
    def base_url(self) -> str: ...

    @property
    def api_key_env(self) -> str | None: ...

    @property
    def timeout(self) -> float: ...

    @property
    def max_retries(self) -> int: ...

    @property
    def backoff(self) -> float: ...


class Rated(Endpoint, Protocol):
    """What a backend that asks a server many times is told besides.

    At most ``concurrency`` requests are in flight; ``requests_per_minute`` and ``tokens_per_minute`` (prompt and
    answer together) are kept by all that ask the same server, None or 0 is no limit.
    """

    @property
    def concurrency(self) -> int: ...

    @property
    def requests_per_minute(self) -> float | None: ...

    @property
    def tokens_per_minute(self) -> float | None: ...
