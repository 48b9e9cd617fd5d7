"""Whether a server keeps to seed, temperature and its model: known from what it wrote, never asked for."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from rallebench.core.types import Reply, digest

MOST = 2000
"""Requests that are remembered."""

WARM, LONG = 0.5, 20
"""A temperature and a number of tokens from which two seeds hardly ever give the same text."""

SAME = "The server gave the same text with another seed, so it seems to ignore temperature or seed."
OTHER = (
    "The server gave another text with the same seed, so a sampled text cannot be repeated there."
)


class SampledTexts:
    """The texts that one server sampled, by request. Thread-safe. ``fault``: the sentence of the last sign, '' for none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[str, tuple[Any, str]] = {}
        self.fault = ""

    def note(self, body: Mapping[str, Any], reply: Reply) -> str:
        """Remember a reply to ``body``; the sentence for it if it shows that the server ignores seed or temperature."""
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
            if len(self._texts) < MOST:
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
    """The model that a server says it answered with. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._name = ""

    def note(self, name: str) -> str:
        """Remember the model of a reply, '' if it was not named; the sentence for it if another answered before."""
        with self._lock:
            before, self._name = self._name, name or self._name
        if not name or before in ("", name):
            return ""
        return f"The server answered with the model {name!r}, before with {before!r}."
