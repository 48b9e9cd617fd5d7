"""Combinations that ask a language model: their requests, which are greedy unless they say otherwise, and their counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from rallebench.core.backends import LLM, Retriever, fit_to_model
from rallebench.core.choosing import Choose, answer_choices
from rallebench.core.errors import RalleError
from rallebench.core.thinking import generate_answers
from rallebench.core.types import Generate, Json, Reply
from rallebench.retrievers._parts import Combined

T = TypeVar("T", bound=Generate)


class AskingCombined(Combined):
    """A combination with a language model. ``requests``, ``unread``: replies requested, and those that could not be read."""

    def __init__(
        self, name: str, kind: str, part: Retriever, llm: LLM, llm_name: str, settings: Json
    ) -> None:
        super().__init__(name, kind, [part], settings)
        self._llm, self._llm_name = llm, llm_name
        self.requests = self.unread = 0

    @property
    def refuses(self) -> tuple[str, ...]:
        """Return the fields that its own model and its part's model refused."""
        return tuple(sorted({*super().refuses, *getattr(self._llm, "refuses", ())}))

    def ask(self, requests: Sequence[Generate]) -> list[str]:
        """Return the answers of the model, without its thinking. Raises the model's errors."""
        return [reply.text for reply in self._replies(requests, generate_answers)]

    def choose(self, requests: Sequence[Choose]) -> list[Reply]:
        """Return the model's replies, each with its ``choice``. Raises the model's errors."""
        return self._replies(requests, answer_choices)

    def _replies(
        self,
        requests: Sequence[T],
        answer: Callable[[LLM, Sequence[T], str], Sequence[Reply | RalleError]],
    ) -> list[Reply]:
        if not requests:
            return []
        self.requests += len(requests)
        sent = [fit_to_model(request, self._llm) for request in requests]
        replies = []
        for reply in answer(self._llm, sent, self._llm_name):
            if isinstance(reply, RalleError):
                raise reply
            replies.append(reply)
        return replies
