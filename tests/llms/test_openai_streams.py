"""Streams whose pieces are JSON of a wrong shape inside."""

from __future__ import annotations

from typing import Any

import pytest
from loopback import DONE, Loopback, chunk, stream

from rallebench.core.errors import BackendError
from rallebench.core.types import Generate, Message, Reply
from rallebench.llms import LLMS

WHO = Generate("gpt", (Message("user", "Who?"),))


def streamed(*pieces: Any) -> list[Any]:
    """All that a backend yields when a server sends ``pieces``."""
    with Loopback(stream([*pieces, DONE])) as server:
        llm: Any = LLMS["openai_compatible"]("gpt", model="m", base_url=server.url)
        try:
            return list(llm.stream(WHO))
        finally:
            llm.close()


def test_tool_calls_in_a_stream_that_are_not_a_list_are_an_error() -> None:
    with pytest.raises(BackendError, match="tool calls that are not a list"):
        streamed(chunk(tool_calls=3))


def test_logprobs_in_a_stream_that_are_not_a_list_do_not_cost_the_answer() -> None:
    piece = chunk("Ada", "stop")
    piece["choices"][0]["logprobs"] = {"content": 3}
    *_, reply = streamed(piece)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.logprobs) == ("Ada", ())
