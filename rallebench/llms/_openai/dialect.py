"""What one server takes, learnt from what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.llms._openai.forms import IGNORED, Form


class Dialect:
    """What one server was found not to take, and how it is asked instead.

    Threads may share it: each thing is learnt once, and learning it twice does no harm.
    """

    def __init__(self, max_tokens_field: str) -> None:
        self._automatic = max_tokens_field == "auto"
        self._limit_field = "max_tokens" if self._automatic else max_tokens_field
        self._ask_for_usage = True
        self._formats_refused: dict[str, str] = {}
        self.ignores_format = False

    def fit(self, body: Mapping[str, Any], stream: bool) -> dict[str, Any]:
        """``body`` in the fields that this server takes."""
        sent = dict(body)
        if "max_tokens" in sent and self._limit_field != "max_tokens":
            sent[self._limit_field] = sent.pop("max_tokens")
        if stream and self._ask_for_usage:
            sent["stream_options"] = {"include_usage": True}
        return {**sent, "stream": stream}

    def why_no_format(self, form: Form) -> str:
        """Why this form of an answer is asked for in the prompt, '' if it is sent as ``response_format``."""
        return IGNORED if self.ignores_format else self._formats_refused.get(form.digest, "")

    def learn_no_format(self, form: Form, reason: str) -> None:
        """Remember that this form is refused or ignored, and that the same request without it is answered."""
        if reason == IGNORED:  # of one form that is true of all
            self.ignores_format = True
        else:
            self._formats_refused[form.digest] = reason

    def learn(self, message: str, sent: Mapping[str, Any]) -> bool:
        """Remember what the server refused; True if the request can now be asked differently."""
        if "stream_options" in sent and "stream_options" in message:
            self._ask_for_usage = False
            return True
        if self._automatic and "max_tokens" in sent and "max_completion_tokens" in message:
            self._limit_field = "max_completion_tokens"
            return True
        return False
