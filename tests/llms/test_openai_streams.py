"""Streams whose pieces are JSON of a wrong shape inside."""

from __future__ import annotations

from typing import Any

import pytest
from loopback import DONE, Loopback, answer, chunk, stream

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


STOPPED = Generate("gpt", (Message("user", "Who?"),), stop=("\nObservation", "###"))


def replies_past_the_stop(*behaviours: Any, stream_it: bool) -> list[Any]:
    """What a backend yields for ``STOPPED`` from a server that ignores stop strings."""
    with Loopback(*behaviours) as server:
        llm: Any = LLMS["openai_compatible"]("gpt", model="m", base_url=server.url)
        try:
            return list(llm.stream(STOPPED)) if stream_it else llm.generate([STOPPED])
        finally:
            llm.close()


def test_a_server_that_ignores_stop_strings_has_its_answer_cut_before_the_first_one() -> None:
    ignoring = answer("Ada\nObservation: born ### 1815", finish_reason="length")
    (reply,) = replies_past_the_stop(ignoring, stream_it=False)
    assert (reply.text, reply.finish_reason) == ("Ada", "stop")


def test_a_stop_string_that_comes_in_two_pieces_of_a_stream_is_never_yielded() -> None:
    pieces = [chunk("Ada\nObs"), chunk("ervation: no"), chunk("thing", "stop"), DONE]
    *texts, reply = replies_past_the_stop(stream(pieces), stream_it=True)
    assert "".join(texts) == reply.text == "Ada"


def test_what_only_looks_like_the_beginning_of_a_stop_string_is_yielded_in_the_end() -> None:
    pieces = [chunk("a ##"), chunk(" b\nObs", "stop"), DONE]
    *texts, reply = replies_past_the_stop(stream(pieces), stream_it=True)
    assert "".join(texts) == reply.text == "a ## b\nObs"
    assert reply.finish_reason == "stop"
