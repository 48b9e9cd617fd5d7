"""Requests to one model, and their replies."""

from __future__ import annotations

from typing import Any

import pytest

from rallebench.core.errors import BackendError
from rallebench.core.types import Generate, Message

KEY = "sk-verysecret0123456789"


def ask(text: str = "Who?", **fields: Any) -> Generate:
    return Generate("gpt", (Message("user", text),), **fields)


def ask_tiny(text: str, **fields: Any) -> Generate:
    """A request to a tiny model of this process, for 12 tokens."""
    return Generate("tiny", (Message("user", text),), **{"max_tokens": 12, **fields})


def reply_of(llm: Any, request: Generate | None = None) -> Any:
    (result,) = llm.generate([request or ask()])
    return result


def streamed(llm: Any, request: Generate | None = None) -> tuple[list[str], Any]:
    """The pieces of a stream, and its reply."""
    *pieces, reply = llm.stream(request or ask())
    return pieces, reply


def failure(llm: Any, request: Generate | None = None) -> str:
    """The sentence of the error in place of the reply."""
    result = reply_of(llm, request)
    assert isinstance(result, BackendError), result
    return str(result)


def stream_failure(llm: Any) -> tuple[list[Any], str]:
    """Return the streamed pieces, and the sentence of the final error."""
    pieces: list[Any] = []
    with pytest.raises(BackendError) as caught:
        pieces.extend(iter(llm.stream(ask())))
    return pieces, str(caught.value)
