"""Detection of servers that ignore the seed, the temperature or the model, based on their replies alone."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from rallebench.core.types import Reply, digest

MAX_REMEMBERED_REQUESTS = 2000
"""Number of requests that are remembered."""

WARM, LONG = 0.5, 20
"""Minimum temperature and tokens at which two seeds hardly ever give the same text."""

SAME = "The server gave the same text with another seed, so it seems to ignore temperature or seed."
OTHER = (
    "The server gave another text with the same seed, so a sampled text cannot be repeated there."
)


class SampledTexts:
    """Sampled texts of one server, by request. Thread-safe. ``fault``: the latest warning, '' if there is none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[str, tuple[Any, str]] = {}
        self.fault = ""

    def note(self, body: Mapping[str, Any], reply: Reply) -> str:
        """Remember a reply to ``body``; return a warning if it shows that the server ignores seed or temperature, else
        ''.
        """
        seed, temperature = body.get("seed"), body.get("temperature")
        if not isinstance(temperature, (int, float)) or temperature <= 0:
            return ""
        if seed is None or not reply.text:
            return ""
        key = digest(
            {name: value for name, value in body.items() if name not in ("seed", "stream")}
        )
        with self._lock:
            earlier, text = self._texts.get(key, (None, ""))
            if len(self._texts) < MAX_REMEMBERED_REQUESTS:
                self._texts.setdefault(key, (seed, reply.text))
            if earlier is None:
                return ""
            fault = ""
            if earlier == seed and text != reply.text:
                fault = OTHER
            elif earlier != seed and text == reply.text:
                sure = temperature >= WARM and reply.completion_tokens >= LONG
                fault = SAME if sure else ""
            self.fault = fault or self.fault
            return fault


class ServedModel:
    """The model that a server reports. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._name = ""

    def note(self, name: str) -> str:
        """Remember the model of a reply, '' if unnamed; return a warning if an earlier reply named another, else ''."""
        with self._lock:
            before, self._name = self._name, name or self._name
        if not name or before in ("", name):
            return ""
        return f"The server answered with the model {name!r}, before with {before!r}."
