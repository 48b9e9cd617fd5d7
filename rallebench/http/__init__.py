"""Requests to OpenAI-compatible servers: addresses, keys, connections, limits and retries.

``httpcore2`` is imported when the first connection is made.
"""

from __future__ import annotations

from typing import Protocol

MAX_RATE = 1e9
"""Requests or tokens per minute: the highest limit that can be set."""


class Endpoint(Protocol):
    """The settings of one model at one server.

    ``api_key_env``: the variable that holds the key. By default OPENAI_API_KEY, which goes only to OpenAI and
    to this machine. ``timeout`` and ``backoff`` are seconds.
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
