"""Requests to a server, and parsing of its answers, whole or streamed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from asking import ask, reply_of, stream_failure, streamed
from loopback import (
    DONE,
    USAGE,
    Behaviour,
    Handler,
    Loopback,
    answer,
    chunk,
    completion,
    echo,
    fail,
    good_stream,
    send_json,
    send_text,
    stream,
)

from rallebench.core.backends import Backends, StreamingLLM
from rallebench.core.errors import RalleError
from rallebench.core.types import Generate, Message, Reply, ToolCall, ToolSpec
from rallebench.engine.record import request_from_json, request_to_json
from rallebench.engine.reply_cache import cache_key
from rallebench.llms.scripted import Scripted

Serve = Callable[..., tuple[Loopback, Any]]

# ── requests ─────────────────────────────────────────────────────────────────

OPTIONS = ask(
    options={"top_k": 2, "top_p": None}, temperature=0.9, seed=3, stop=("\n",), max_tokens=5
)
DEFAULTS = {
    "max_tokens": 9,
    "top_p": 0.5,
    "temperature": 0.1,
    "extra_body": {"top_k": 1, "min_p": 0.2, "temperature": 0.4},
}


SENT = {
    "defaults": ({}, ask(), {"max_tokens": 256, "temperature": 0.0}),
    "the request over its options over extra_body over the defaults": (
        DEFAULTS,
        OPTIONS,
        {"top_k": 2, "min_p": 0.2, "temperature": 0.9, "seed": 3, "stop": ["\n"], "max_tokens": 5},
    ),
    "extra_body over the defaults": (
        DEFAULTS,
        ask(),
        {"top_k": 1, "min_p": 0.2, "temperature": 0.4, "top_p": 0.5, "max_tokens": 9},
    ),
    "the server's own": ({"temperature": None, "max_tokens": None}, ask(), {}),
}


@pytest.mark.parametrize("case", SENT)
def test_a_request_holds_these_fields_and_no_other(serve: Serve, case: str) -> None:
    settings, request, fields = SENT[case]
    server, llm = serve(**settings)
    reply_of(llm, request)
    messages = [{"role": "user", "content": "Who?"}]
    assert server.bodies == [{"model": "m", "messages": messages, "stream": False, **fields}]
    assert server.paths == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    ("settings", "temperature", "seed"),
    [
        ({}, 0.0, None),
        ({"temperature": 0.3}, 0.3, None),
        ({"temperature": None}, 1.0, None),  # the server's own value, and then it samples
        ({"temperature": 0.3, "extra_body": {"temperature": 0.9, "seed": 5}}, 0.9, 5),
        ({"extra_body": {"temperature": None}}, 1.0, None),
        ({"extra_body": {"temperature": "hot"}}, 1.0, None),
    ],
    ids=str,
)
def test_temperature_and_seed_are_those_of_a_request_that_leaves_them_open(
    serve: Serve, settings: dict[str, Any], temperature: float, seed: int | None
) -> None:
    server, llm = serve(**settings)
    reply_of(llm)
    assert (llm.temperature, llm.seed) == (temperature, seed)
    sent = server.bodies[0].get("temperature", "the server's own")
    assert sent == temperature or (temperature == 1.0 and isinstance(sent, str))
    assert server.bodies[0].get("seed") == seed


def test_the_system_setting_is_sent_only_where_the_request_has_none(serve: Serve) -> None:
    server, llm = serve(system="Be brief.")
    own = Generate("gpt", (Message("system", "Sing."), Message("user", "Who?")))
    reply_of(llm), reply_of(llm, own)
    assert [body["messages"][0]["content"] for body in server.bodies] == ["Be brief.", "Sing."]
    assert len(server.bodies[1]["messages"]) == 2


# ── replies ──────────────────────────────────────────────────────────────────

LOGPROBS = {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -1}]}


def with_choice(text: str, **choice: Any) -> dict[str, Any]:
    value = completion(text)
    value["choices"][0].update(choice)
    return value


WRONG_USAGE = {**completion("Ada"), "usage": {"prompt_tokens": "many", "completion_tokens": -1}}
PARTS = [{"type": "text", "text": "A"}, {"type": "text", "text": "da"}]
WHOLE: dict[str, tuple[Behaviour, dict[str, Any]]] = {
    "finish reason": (answer("Ada", finish_reason="length"), {"finish_reason": "length"}),
    "logprobs": (send_json(with_choice("Ada", logprobs=LOGPROBS)), {"logprobs": (-0.5, -1.0)}),
    "refusal": (answer(None, refusal="Ada"), {"finish_reason": "refusal"}),
    "content in parts": (answer(PARTS), {}),  # type: ignore[arg-type]
    "usage of wrong types": (
        send_json(WRONG_USAGE),
        {
            "prompt_tokens": 0,
            "completion_tokens": 0,
            "note": "The server reported no token counts.",
        },
    ),
    "content type": (send_text(json.dumps(completion("Ada")), 200, "text/html"), {}),
    "a stream unasked": (stream([chunk("Ad"), chunk("a", "stop"), USAGE, DONE]), {}),
}


@pytest.mark.parametrize("case", WHOLE)
def test_a_whole_answer_is_read(serve: Serve, case: str) -> None:
    behaviour, expected = WHOLE[case]
    reply = reply_of(serve(behaviour)[1])
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    times = {"first_token_seconds": reply.first_token_seconds}
    assert reply == Reply("Ada", **{**times, **usage, **expected})


# ── tools ────────────────────────────────────────────────────────────────────

SEARCH = ToolSpec("search", "finds", {"type": "object"})
CALL = ToolCall("c1", "search", '{"q": "Ada"}')
SENT_CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "search", "arguments": '{"q": "Ada"}'},
}
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


def test_tools_are_offered_and_tool_calls_come_back(serve: Serve) -> None:
    calls = [SENT_CALL, {"function": {"name": "look", "arguments": {"at": 1}}}]
    server, llm = serve(answer(None, tool_calls=calls, finish_reason="tool_calls"))
    reply = reply_of(llm, ask(tools=(SEARCH,)))
    function = {"name": "search", "description": "finds", "parameters": {"type": "object"}}
    assert server.bodies[0]["tools"] == [{"type": "function", "function": function}]
    assert reply.tool_calls == (CALL, ToolCall("call_1", "look", '{"at": 1}'))
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")


def test_a_tools_answer_is_tied_to_the_call_or_else_is_the_users(serve: Serve) -> None:
    server, llm = serve(answer("Ada Byron"))
    assert reply_of(llm, SECOND).text == "Ada Byron"
    reply_of(llm, Generate("gpt", (Message("tool", "Ada"),)))
    assert [body["messages"] for body in server.bodies] == [
        [
            {"role": "user", "content": "Who?"},
            {"role": "assistant", "content": None, "tool_calls": [SENT_CALL]},
            {"role": "tool", "content": "Ada Byron", "tool_call_id": "c1"},
        ],
        [{"role": "user", "content": "Ada"}],
    ]


def test_calls_that_a_server_leaves_in_the_text_are_read_from_there(serve: Serve) -> None:
    reply = reply_of(serve(answer(WRITTEN))[1], SECOND)
    assert (reply.text, reply.tool_calls) == (
        "Let me see.",
        (ToolCall("call_0", "search", '{"q": "Ada"}'),),
    )


def test_a_stream_hands_out_the_text_without_the_calls_in_it_as_a_whole_reply_does(
    serve: Serve,
) -> None:
    pieces, reply = streamed(serve(good_stream(WRITTEN))[1], SECOND)
    assert "".join(pieces) == reply.text == "Let me see."
    assert [call.name for call in reply.tool_calls] == ["search"]
    pieces, reply = streamed(serve(good_stream(WRITTEN))[1], ask())
    assert "".join(pieces) == reply.text == WRITTEN


@pytest.mark.parametrize("tools", [(), (ToolSpec("look"),)])
def test_a_text_that_looks_like_a_call_is_a_text_where_no_such_tool_was_offered(
    serve: Serve, tools: tuple[ToolSpec, ...]
) -> None:
    reply = reply_of(serve(answer(WRITTEN))[1], ask(tools=tools))
    assert (reply.text, reply.tool_calls) == (WRITTEN, ())


def test_calls_of_a_message_are_kept_in_a_run_and_tell_requests_apart_in_the_cache() -> None:
    backends = Backends({}, {"gpt": Scripted()})
    assert request_from_json(request_to_json(SECOND)) == SECOND
    bare = Generate("gpt", tuple(Message(m.role, m.content) for m in SECOND.messages), (SEARCH,))
    assert cache_key(SECOND, backends) != cache_key(bare, backends)
    assert request_to_json(ask()) == {
        "ask": "generate",
        "llm": "gpt",
        "messages": [{"role": "user", "content": "Who?"}],
    }


# ── many at a time ───────────────────────────────────────────────────────────


def test_as_many_requests_overlap_as_concurrency_says_and_keep_their_order(serve: Serve) -> None:
    def wait_for_four(handler: Handler) -> None:
        assert handler.owner.until(lambda: handler.owner.most_in_flight == 4)
        handler.wait(0.02)
        echo(handler)

    server, llm = serve(wait_for_four, concurrency=4)
    replies = llm.generate([ask(str(n)) for n in range(40)])
    assert [reply.text for reply in replies] == [str(n) for n in range(40)]
    assert {(reply.prompt_tokens, reply.completion_tokens) for reply in replies} == {(7, 3)}
    # Keep-alive: one connection per worker, not per request.
    assert server.most_in_flight == 4 and server.connections <= 4


def test_a_slow_request_does_not_hold_up_the_others(serve: Serve) -> None:
    def wait_for_the_others(handler: Handler) -> None:
        if handler.body["messages"][-1]["content"] == "slow":
            assert handler.owner.until(lambda: handler.owner.answered == 9)
        echo(handler)

    _, llm = serve(wait_for_the_others, concurrency=2)
    replies = llm.generate([ask("slow"), *[ask(str(n)) for n in range(9)]])
    assert [reply.text for reply in replies] == ["slow", *map(str, range(9))]


def test_a_request_that_fails_alone_comes_back_as_its_error_in_its_place(serve: Serve) -> None:
    def refuse_one(handler: Handler) -> None:
        (fail(400, "too long") if handler.body["messages"][-1]["content"] == "1" else echo)(handler)

    _, llm = serve(refuse_one, concurrency=3)
    results = llm.generate([ask(str(n)) for n in range(3)])
    assert [isinstance(result, RalleError) for result in results] == [False, True, False]
    assert results[2].text == "2"


# ── streaming ────────────────────────────────────────────────────────────────


def test_a_stream_hands_out_pieces_and_ends_with_the_whole_reply(serve: Serve) -> None:
    server, llm = serve(good_stream("Ada wrote it"))
    assert isinstance(llm, StreamingLLM)
    pieces, reply = streamed(llm)
    assert pieces == ["Ada", " wrote", " it"]
    assert (reply.text, reply.finish_reason) == ("Ada wrote it", "stop")
    assert (reply.prompt_tokens, reply.completion_tokens) == (7, 3)
    assert server.bodies[0]["stream"] is True
    assert server.bodies[0]["stream_options"] == {"include_usage": True}


def test_a_slow_stream_is_live_and_its_first_token_is_timed(serve: Serve) -> None:
    _, llm = serve(good_stream("a b c d", pause=0.1))
    start = time.monotonic()
    pieces = llm.stream(ask())
    assert next(pieces) == "a"
    first = time.monotonic() - start
    *_, reply = pieces
    whole = time.monotonic() - start
    assert whole >= 0.5 and first < whole - 0.3
    assert reply.first_token_seconds == pytest.approx(first, abs=0.1)


def with_crlf(handler: Handler) -> None:
    handler.start(200, {"Content-Type": "text/event-stream", "Connection": "close"})
    data = b'data: {"choices": [{"delta": {"content": "Ada"}, "finish_reason": "stop"}]}'
    handler.wfile.write(b": comment\r\n\r\n" + data + b"\r\n\r\ndata: [DONE]\r\n\r\n")
    handler.drop()


THOUGHTS = [chunk(reasoning_content="hm") for _ in range(6)]
ODD_LOGPROBS = chunk("Ada", "stop")
ODD_LOGPROBS["choices"][0]["logprobs"] = {"content": 3}


STREAMS: dict[str, tuple[Behaviour, float]] = {
    "an answer as a whole": (answer("Ada"), 5),
    "content type": (stream([chunk("Ada", "stop"), DONE], kind="text/plain"), 5),
    "no DONE": (stream([chunk("Ad"), chunk("a", "stop")]), 5),
    "no finish reason": (stream([chunk("Ada"), DONE]), 5),
    "usage last": (stream([chunk("Ada"), chunk(None, "length"), USAGE]), 5),
    "dropped after the finish reason": (stream([chunk("Ada", "stop")], promise=True), 5),
    "CRLF and comments": (with_crlf, 5),
    "logprobs that are not a list": (stream([ODD_LOGPROBS, DONE]), 5),
    "a time-out counts silence, not length": (
        stream([chunk("A"), chunk(""), chunk("d"), chunk(""), chunk("a", "stop")], pause=0.1),
        0.35,
    ),
    "thoughts are not silence": (stream([*THOUGHTS, chunk("Ada", "stop")], pause=0.1), 0.35),
}


@pytest.mark.parametrize("form", STREAMS)
def test_a_stream_in_any_usual_form_is_read(serve: Serve, form: str) -> None:
    behaviour, timeout = STREAMS[form]
    pieces, reply = streamed(serve(behaviour, timeout=timeout)[1])
    assert "".join(pieces) == reply.text == "Ada"
    assert reply.logprobs == ()


def test_unicode_line_separators_and_length_break_neither_answer_nor_stream(serve: Serve) -> None:
    text = "ß\u2028" * 500_000
    assert reply_of(serve(answer(text))[1]).text == text
    pieces, reply = streamed(serve(stream([chunk("a\u2028b\x85c"), chunk("d", "stop"), DONE]))[1])
    assert "".join(pieces) == reply.text == "a\u2028b\x85cd"


def test_tool_calls_and_logprobs_of_a_stream_are_put_together(serve: Serve) -> None:
    begin = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": ""}}
    more = [{"index": 0, "function": {"arguments": part}} for part in ('{"q":', ' "Ada"}')]
    other = {"index": 1, "id": "c2", "function": {"name": "look", "arguments": "{}"}}
    pieces = [chunk(tool_calls=[call]) for call in (begin, *more, other)]
    pieces[0]["choices"][0]["logprobs"] = {"content": [{"logprob": -0.25}]}
    _, llm = serve(stream([*pieces, chunk(finish_reason="tool_calls"), DONE]))
    texts, reply = streamed(llm)
    assert (texts, reply.tool_calls) == ([], (CALL, ToolCall("c2", "look", "{}")))
    assert (reply.text, reply.finish_reason, reply.logprobs) == ("", "tool_calls", (-0.25,))


@pytest.mark.parametrize(
    ("pieces", "texts", "words"),
    [
        ([chunk("Ada"), {"error": {"message": "no room"}}], ["Ada"], "reported an error: no room"),
        (["{rubbish", DONE], [], "not JSON"),
        ([[1], DONE], [], "JSON that is not an object"),
        ([{"choices": {"a": 1}}, DONE], [], "choices that are not a list"),
        ([{"choices": [{"delta": 3}]}, DONE], [], "a piece that is not an object"),
        ([chunk(7), DONE], [], "a piece that is not a text"),  # type: ignore[arg-type]
        ([chunk(tool_calls=3), DONE], [], "tool calls that are not a list"),
        ([chunk(tool_calls=[3]), DONE], [], "a malformed tool call"),
    ],
)
def test_a_malformed_piece_of_a_stream_is_an_error(
    serve: Serve, pieces: list[Any], texts: list[str], words: str
) -> None:
    yielded, message = stream_failure(serve(stream(pieces))[1])
    assert (yielded, words in message) == (texts, True), message


@pytest.mark.parametrize("promise", [False, True], ids=["clean end", "dropped"])
def test_a_stream_that_breaks_off_is_an_error_or_tried_again(serve: Serve, promise: bool) -> None:
    server, llm = serve(stream([chunk("Ada"), chunk(" was")], promise=promise))
    yielded, message = stream_failure(llm)
    assert yielded == ["Ada", " was"] and len(server.bodies) == 1
    assert "The text received so far is incomplete and was not kept." in message
    server, llm = serve(stream([chunk("", role="assistant")], promise=promise), good_stream("Ada"))
    assert streamed(llm)[1].text == "Ada" and len(server.bodies) == 2


def test_a_stream_that_falls_silent_is_an_error(serve: Serve) -> None:
    _, llm = serve(stream([chunk("Ada"), chunk(" was")], pause=4), timeout=0.2)
    yielded, message = stream_failure(llm)
    assert (yielded, "gave no answer within 0.2 s" in message) == (["Ada"], True)


def test_leaving_a_stream_early_hangs_up_and_gives_its_room_back(serve: Serve) -> None:
    gone = threading.Event()

    def talk_on(handler: Handler) -> None:
        try:
            stream([chunk("word ")] * 200, pause=0.02)(handler)
        except (BrokenPipeError, ConnectionResetError):
            gone.set()

    _, llm = serve(talk_on)
    pieces = llm.stream(ask())
    next(pieces)
    assert llm.status().in_flight == 1
    pieces.close()
    assert llm.status().in_flight == 0 and gone.wait(3)


# ── stop strings ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("texts", "whole"),
    [
        (["Ada\nObservation: born ### 1815"], "Ada"),
        (["Ada\nObs", "ervation: no", "thing"], "Ada"),
        (["a ##", " b\nObs"], "a ## b\nObs"),
    ],
)
def test_a_server_that_ignores_stop_strings_has_its_answer_cut_before_the_first_one(
    serve: Serve, texts: list[str], whole: str
) -> None:
    request = ask(stop=("\nObservation", "###"))
    reason = "length" if whole == "Ada" else "stop"
    last = [*map(chunk, texts), chunk(None, reason), DONE]
    _, llm = serve(answer("".join(texts), finish_reason=reason), stream(last))
    reply = reply_of(llm, request)
    assert (reply.text, reply.finish_reason) == (whole, "stop")
    pieces, reply = streamed(llm, request)
    assert "".join(pieces) == reply.text == whole and reply.finish_reason == "stop"


# ── fields that some servers refuse ──────────────────────────────────────────

NEWER = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."


def refuse_max_tokens(handler: Handler) -> None:
    (fail(400, NEWER, param="max_tokens") if "max_tokens" in handler.body else answer())(handler)


def test_a_model_that_rejects_max_tokens_is_asked_differently_from_then_on(serve: Serve) -> None:
    server, llm = serve(refuse_max_tokens, max_retries=0)
    assert [reply_of(llm, ask(max_tokens=5)).text, reply_of(llm).text] == ["fine", "fine"]
    assert ["max_tokens" in body for body in server.bodies] == [True, False, False]
    assert [body.get("max_completion_tokens") for body in server.bodies] == [None, 5, 256]


@pytest.mark.parametrize(
    ("behaviour", "field", "requests"),
    [
        (refuse_max_tokens, "max_tokens", 1),
        (fail(400, "neither max_tokens nor max_completion_tokens"), "auto", 3),
    ],
)
def test_a_fixed_field_is_never_switched_and_a_refusal_of_both_ends_it(
    serve: Serve, behaviour: Behaviour, field: str, requests: int
) -> None:
    server, llm = serve(behaviour, max_tokens_field=field)
    assert "refused the request" in str(reply_of(llm)) and len(server.bodies) == requests
    server, llm = serve(max_tokens_field="max_completion_tokens")
    reply_of(llm)
    assert server.bodies[0]["max_completion_tokens"] == 256


def test_a_server_that_rejects_stream_options_is_asked_without(serve: Serve) -> None:
    server, llm = serve(fail(400, "unknown field stream_options"), good_stream("Ada"))
    assert next(llm.stream(ask())) == "Ada"
    assert ["stream_options" in body for body in server.bodies] == [True, False]
