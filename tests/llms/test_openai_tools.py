"""Tool calls and their answers, there and back, and what is kept of them."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from loopback import Behaviour, Loopback, answer, good_stream

from rallebench.core.runs import Backends
from rallebench.core.types import Generate, Message, ToolCall, ToolSpec
from rallebench.engine.record import request_from_json, request_to_json
from rallebench.engine.reply_cache import cache_key
from rallebench.llms import LLMS
from rallebench.llms.scripted import Scripted

SEARCH = ToolSpec("search", "finds", {"type": "object", "properties": {"q": {"type": "string"}}})
CALL = ToolCall("c1", "search", '{"q": "Ada"}')
SECOND = Generate(
    "gpt",
    (
        Message("user", "Who?"),
        Message("assistant", "", tool_calls=(CALL,)),
        Message("tool", "Ada Byron", tool_call_id="c1"),
    ),
    (SEARCH,),
)
WRITTEN = 'Let me see. <tool_call>{"name": "search", "arguments": {"q": "Ada"}}</tool_call>'


def asked(
    behaviour: Behaviour, request: Generate, stream: bool = False
) -> tuple[dict[str, Any], list[Any]]:
    """What the server was sent, and what came back."""
    with Loopback(behaviour) as server:
        llm: Any = LLMS["openai_compatible"]("gpt", model="m", base_url=server.url)
        with closing(llm):
            return (
                found := list(llm.stream(request) if stream else llm.generate([request]))
            ) and server.bodies[0], found


def test_a_tools_answer_is_tied_to_the_call_it_answers() -> None:
    body, (reply,) = asked(answer("Ada Byron"), SECOND)
    assert body["messages"] == [
        {"role": "user", "content": "Who?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "search", "arguments": '{"q": "Ada"}'},
                }
            ],
        },
        {"role": "tool", "content": "Ada Byron", "tool_call_id": "c1"},
    ]
    assert reply.text == "Ada Byron"


def test_calls_that_a_server_leaves_in_the_text_are_read_from_there() -> None:
    _, (reply,) = asked(answer(WRITTEN), SECOND)
    assert (reply.text, reply.tool_calls) == (
        "Let me see.",
        (ToolCall("call_0", "search", '{"q": "Ada"}'),),
    )


def test_a_stream_keeps_the_text_it_has_handed_out() -> None:
    _, (*pieces, reply) = asked(good_stream(WRITTEN), SECOND, stream=True)
    assert "".join(pieces) == reply.text == WRITTEN
    assert [call.name for call in reply.tool_calls] == ["search"]


def test_a_text_that_looks_like_a_call_is_a_text_where_no_such_tool_was_offered() -> None:
    for tools in ((), (ToolSpec("look"),)):
        _, (reply,) = asked(answer(WRITTEN), Generate("gpt", (Message("user", "Who?"),), tools))
        assert (reply.text, reply.tool_calls) == (WRITTEN, ())


def test_calls_of_a_message_are_kept_in_a_run_and_tell_requests_apart_in_the_memory() -> None:
    backends = Backends({}, {"gpt": Scripted()})
    assert request_from_json(request_to_json(SECOND)) == SECOND
    bare = Generate("gpt", tuple(Message(m.role, m.content) for m in SECOND.messages), (SEARCH,))
    assert cache_key(SECOND, backends) != cache_key(bare, backends)


def test_a_message_without_calls_is_kept_as_it_always_was() -> None:
    written = request_to_json(Generate("gpt", (Message("user", "Who?"),)))
    assert written == {
        "ask": "generate",
        "llm": "gpt",
        "messages": [{"role": "user", "content": "Who?"}],
    }
