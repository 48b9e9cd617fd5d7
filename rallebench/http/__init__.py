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
