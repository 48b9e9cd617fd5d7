"""The OpenAI-compatible backend against a real server on the loopback that misbehaves on demand."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import pytest
from loopback import (
    DONE,
    USAGE,
    Behaviour,
    Handler,
    Loopback,
    answer,
    chunk,
    completion,
    drip,
    drop_at_once,
    drop_halfway,
    echo,
    fail,
    flood,
    good_stream,
    hang,
    send_json,
    send_text,
    stream,
)

from rallebench.core.errors import BackendError, MissingPackageError, RalleError, UsageError
from rallebench.core.types import Generate, Message, Reply, ToolCall, ToolSpec
from rallebench.llms import LLMS, StreamingLLM

KEY = "sk-verysecret0123456789"

Serve = Callable[..., tuple[Loopback, Any]]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for this machine's servers."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def ask(text: str = "Who?", **fields: Any) -> Generate:
    return Generate("gpt", (Message("user", text),), **fields)


def one(llm: Any, request: Generate | None = None) -> Any:
    (result,) = llm.generate([request or ask()])
    return result


def failure(llm: Any, request: Generate | None = None) -> str:
    """The sentence of the error that came in the reply's place."""
    result = one(llm, request)
    assert isinstance(result, BackendError), result
    return str(result)


def stream_failure(llm: Any) -> tuple[list[Any], str]:
    """What was handed out, and the sentence of the error that ended it."""
    got: list[Any] = []
    with pytest.raises(BackendError) as caught:
        got.extend(iter(llm.stream(ask())))
    return got, str(caught.value)


# ── what is asked and what comes back ────────────────────────────────────────


def test_a_reply_holds_text_usage_and_finish_reason(serve: Serve) -> None:
    server, llm = serve(answer("Ada", finish_reason="length"))
    assert one(llm) == Reply("Ada", prompt_tokens=7, completion_tokens=3, finish_reason="length")
    assert server.paths == ["/v1/chat/completions"]


def test_an_unset_request_is_sent_with_the_defaults_and_without_top_p(serve: Serve) -> None:
    server, llm = serve()
    one(llm)
    assert server.bodies == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Who?"}],
            "max_tokens": 256,
            "temperature": 0.0,
            "stream": False,
        }
    ]


def test_the_request_wins_over_options_over_extra_body_over_the_defaults(serve: Serve) -> None:
    server, llm = serve(
        max_tokens=9,
        top_p=0.5,
        temperature=0.1,
        extra_body={"top_k": 1, "min_p": 0.2, "temperature": 0.4},
    )
    one(
        llm,
        ask(
            options={"top_k": 2, "top_p": None}, temperature=0.9, seed=3, stop=("\n",), max_tokens=5
        ),
    )
    body = server.bodies[0]
    assert (body["top_k"], body["min_p"], body["temperature"], body["seed"]) == (2, 0.2, 0.9, 3)
    assert (body["stop"], body["max_tokens"]) == (["\n"], 5)
    assert "top_p" not in body
    one(llm)
    assert (server.bodies[1]["temperature"], server.bodies[1]["max_tokens"]) == (0.4, 9)


def test_null_leaves_temperature_and_max_tokens_to_the_server(serve: Serve) -> None:
    server, llm = serve(temperature=None, max_tokens=None)
    one(llm)
    assert not {"temperature", "max_tokens", "max_completion_tokens"} & server.bodies[0].keys()


def test_the_system_setting_is_sent_only_where_the_request_has_none(serve: Serve) -> None:
    server, llm = serve(system="Be brief.")
    llm.generate([ask()])
    llm.generate([Generate("gpt", (Message("system", "Sing."), Message("user", "Who?")))])
    assert [body["messages"][0]["content"] for body in server.bodies] == ["Be brief.", "Sing."]
    assert len(server.bodies[1]["messages"]) == 2


def test_tools_are_offered_and_tool_calls_come_back(serve: Serve) -> None:
    calls = [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "search", "arguments": '{"q": "Ada"}'},
        },
        {"function": {"name": "look", "arguments": {"at": 1}}},
    ]
    server, llm = serve(answer(None, tool_calls=calls, finish_reason="tool_calls"))
    reply = one(llm, ask(tools=(ToolSpec("search", "finds", {"type": "object"}),)))
    assert server.bodies[0]["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "search",
                "description": "finds",
                "parameters": {"type": "object"},
            },
        }
    ]
    assert reply.tool_calls == (
        ToolCall("c1", "search", '{"q": "Ada"}'),
        ToolCall("call_1", "look", '{"at": 1}'),
    )
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")


def test_a_tool_message_is_sent_as_a_user_message(serve: Serve) -> None:
    server, llm = serve()
    llm.generate([Generate("gpt", (Message("user", "Who?"), Message("tool", "Ada")))])
    assert [message["role"] for message in server.bodies[0]["messages"]] == ["user", "user"]


def test_logprobs_are_passed_through(serve: Serve) -> None:
    value = completion("a b")
    value["choices"][0]["logprobs"] = {
        "content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -1}]
    }
    _, llm = serve(send_json(value))
    assert one(llm).logprobs == (-0.5, -1.0)


def test_a_refusal_is_the_text_and_says_so(serve: Serve) -> None:
    _, llm = serve(answer(None, refusal="I may not."))
    assert (one(llm).text, one(llm).finish_reason) == ("I may not.", "refusal")


def test_content_in_parts_is_joined(serve: Serve) -> None:
    _, llm = serve(answer([{"type": "text", "text": "A"}, {"type": "text", "text": "da"}]))  # type: ignore[arg-type]
    assert one(llm).text == "Ada"


def test_a_usage_of_wrong_types_counts_as_none_and_does_not_cost_the_answer(serve: Serve) -> None:
    _, llm = serve(
        send_json(
            {**completion("Ada"), "usage": {"prompt_tokens": "many", "completion_tokens": -1}}
        )
    )
    assert one(llm) == Reply("Ada", note="The server reported no token counts.")


def test_a_long_answer_arrives_whole(serve: Serve) -> None:
    text = "ß\u2028" * 500_000
    _, llm = serve(answer(text))
    assert one(llm).text == text


# ── many at a time ───────────────────────────────────────────────────────────


def test_a_batch_keeps_its_order_and_each_request_has_its_own_usage(serve: Serve) -> None:
    server, llm = serve(echo, concurrency=4)
    replies = llm.generate([ask(str(n)) for n in range(40)])
    assert [reply.text for reply in replies] == [str(n) for n in range(40)]
    assert sum(reply.prompt_tokens for reply in replies) == 7 * 40
    assert sum(reply.completion_tokens for reply in replies) == 3 * 40
    assert server.connections <= 4  # keep-alive: one connection per worker, not per request


def test_as_many_requests_overlap_as_concurrency_says_and_no_more(serve: Serve) -> None:
    def wait_for_four(handler: Handler) -> None:
        assert handler.owner.until(lambda: handler.owner.most_in_flight == 4)
        handler.wait(0.02)
        echo(handler)

    server, llm = serve(wait_for_four, concurrency=4)
    llm.generate([ask(str(n)) for n in range(12)])
    assert server.most_in_flight == 4


def test_a_slow_request_does_not_hold_up_the_others(serve: Serve) -> None:
    def wait_for_the_others(handler: Handler) -> None:
        if handler.body["messages"][-1]["content"] == "slow":
            assert handler.owner.until(lambda: handler.owner.answered == 9)
        echo(handler)

    _, llm = serve(wait_for_the_others, concurrency=2)
    replies = llm.generate([ask("slow"), *[ask(str(n)) for n in range(9)]])
    assert [reply.text for reply in replies] == ["slow", *map(str, range(9))]


def test_many_threads_may_share_one_backend(serve: Serve) -> None:
    _, llm = serve(echo, concurrency=8)
    texts: dict[int, str] = {}

    def work(number: int) -> None:
        for turn in range(5):
            texts[number * 5 + turn] = one(llm, ask(f"{number}-{turn}")).text

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert texts == {n * 5 + t: f"{n}-{t}" for n in range(8) for t in range(5)}


def test_a_request_that_fails_alone_comes_back_as_its_error_in_its_place(serve: Serve) -> None:
    def refuse_one(handler: Handler) -> None:
        (fail(400, "too long") if handler.body["messages"][-1]["content"] == "1" else echo)(handler)

    _, llm = serve(refuse_one, concurrency=3)
    results = llm.generate([ask(str(n)) for n in range(3)])
    assert [isinstance(result, RalleError) for result in results] == [False, True, False]
    assert results[2].text == "2"


def test_an_empty_batch_asks_nothing(serve: Serve) -> None:
    server, llm = serve()
    assert llm.generate([]) == []
    assert server.bodies == []


# ── what is tried again ──────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "header", [{"retry_after": "0.3"}, {"retry_after_ms": "300", "retry_after": "60"}]
)
def test_too_many_requests_waits_as_long_as_the_server_asks(
    serve: Serve, header: dict[str, str]
) -> None:
    server, llm = serve(fail(429, "slow down", headers=header), answer("fine"))
    start = time.monotonic()
    assert one(llm).text == "fine"
    assert 0.3 <= time.monotonic() - start < 2
    assert len(server.bodies) == 2


def test_retry_after_may_be_a_date(serve: Serve) -> None:
    later = formatdate(time.time() + 1.5, usegmt=True)  # whole seconds: 0.5 to 1.5 from now
    _, llm = serve(fail(429, headers={"retry_after": later}), answer("fine"))
    start = time.monotonic()
    assert one(llm).text == "fine"
    assert 0.4 <= time.monotonic() - start < 3


def test_a_wait_of_an_hour_is_reported_instead_of_kept(serve: Serve) -> None:
    server, llm = serve(fail(429, "daily limit", headers={"retry_after": "3600"}))
    assert "asks to wait 3600 s" in failure(llm)
    assert len(server.bodies) == 1


def test_a_spent_quota_is_not_asked_again(serve: Serve) -> None:
    server, llm = serve(fail(429, "You exceeded your quota", code="insufficient_quota"))
    assert "no quota left" in failure(llm)
    assert len(server.bodies) == 1


def test_two_server_errors_then_an_answer(serve: Serve) -> None:
    server, llm = serve(fail(500), fail(503), answer("fine"))
    assert one(llm).text == "fine"
    assert len(server.bodies) == 3


def test_a_server_that_always_fails_is_asked_max_retries_more_times(serve: Serve) -> None:
    server, llm = serve(fail(500, "CUDA error"), max_retries=2)
    message = failure(llm)
    assert message == (
        f"'gpt' at {server.url} failed by itself (500: CUDA error) (tried 3 times). "
        "See the server's log and try again."
    )
    assert len(server.bodies) == 3


def test_the_pauses_between_tries_grow(serve: Serve) -> None:
    _, llm = serve(fail(500), max_retries=3, backoff=0.08)
    start = time.monotonic()
    failure(llm)
    assert time.monotonic() - start >= 0.5 * (0.08 + 0.16 + 0.32)


@pytest.mark.parametrize("drop", [drop_at_once, drop_halfway])
def test_a_dropped_connection_is_tried_again(serve: Serve, drop: Behaviour) -> None:
    server, llm = serve(drop, drop, answer("fine"))
    assert one(llm).text == "fine"
    assert len(server.bodies) == 3


@pytest.mark.parametrize("drop", [drop_at_once, drop_halfway])
def test_a_connection_that_always_drops_is_named(serve: Serve, drop: Behaviour) -> None:
    _, llm = serve(drop, max_retries=1)
    assert "dropped the connection" in failure(llm)


@pytest.mark.parametrize("slow", [hang(), drip])
def test_a_time_out_names_its_seconds(serve: Serve, slow: Behaviour) -> None:
    _, llm = serve(slow, timeout=0.2, max_retries=0)
    start = time.monotonic()
    assert "gave no answer within 0.2 s. Check that the server is well, raise timeout" in failure(
        llm
    )
    assert time.monotonic() - start < 1.5


def test_a_time_out_is_tried_again_but_at_most_twice(serve: Serve) -> None:
    server, llm = serve(hang(), timeout=0.1, max_retries=6)
    assert "(tried 3 times)" in failure(llm)
    assert len(server.bodies) == 3
    _, llm = serve(hang(), answer("fine"), timeout=0.3)
    assert one(llm).text == "fine"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_refused_request_is_not_asked_again(serve: Serve, status: int) -> None:
    server, llm = serve(fail(status, "no"))
    assert f"({status}: no)" in failure(llm)
    assert len(server.bodies) == 1


def test_closing_ends_a_wait_for_another_try(serve: Serve) -> None:
    server, llm = serve(fail(429, headers={"retry_after": "60"}))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(one(llm)))
    thread.start()
    assert server.until(lambda: server.answered == 1)
    time.sleep(0.2)  # by now it waits
    llm.close()
    thread.join(5)
    assert "was unloaded" in str(results[0])
    assert "was unloaded" in failure(llm)


# ── what the messages say ────────────────────────────────────────────────────


def test_a_server_that_is_not_running_is_reported_at_once() -> None:
    with Loopback() as server:
        url = server.url
    llm = LLMS["openai_compatible"]("gpt", base_url=url, model="m")
    start = time.monotonic()
    message = failure(llm)
    assert message.startswith(f"'gpt' at {url} cannot be reached (")
    assert message.endswith("Start the server, or correct base_url.")
    assert time.monotonic() - start < 2


def test_a_refused_key_names_the_variable_to_set(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, llm = serve(fail(401, "bad key"), api_key_env="MY_KEY")
    assert "Set the environment variable MY_KEY to a valid key; it is not set now." in failure(llm)
    monkeypatch.setenv("MY_KEY", KEY)
    _, llm = serve(fail(401, "bad key"), api_key_env="MY_KEY")
    assert "Set the environment variable MY_KEY to a valid key." in failure(llm)


def test_an_unknown_model_is_named(serve: Serve) -> None:
    _, llm = serve(fail(404, "not found"), model="gtp-4")
    assert "knows no model 'gtp-4', or not this address (404: not found)" in failure(llm)


def test_a_redirect_is_not_followed_so_that_the_key_stays_here(serve: Serve) -> None:
    elsewhere, _ = serve()
    server, llm = serve(send_json({}, 307, location=elsewhere.url + "/chat/completions"))
    assert "redirects elsewhere (307)" in failure(llm)
    assert (len(server.bodies), len(elsewhere.bodies)) == (1, 0)


def test_a_long_server_message_is_cut_to_300_characters(serve: Serve) -> None:
    _, llm = serve(fail(400, "x" * 5000))
    assert "x" * 299 + "…" in failure(llm)
    assert "x" * 300 not in failure(llm)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"detail": "Not Found"}, "(400: Not Found)"),
        ({"message": "bad\n\x1b[31m  prompt"}, "(400: bad [31m prompt)"),
        ({"error": "plain"}, "(400: plain)"),
        ([1], "(400: [1])"),
        ({}, "(400: {})"),
    ],
)
def test_a_server_message_is_found_in_any_of_the_usual_places(
    serve: Serve, body: Any, shown: str
) -> None:
    _, llm = serve(send_json(body, 400))
    assert shown in failure(llm)


HTML = "<!DOCTYPE html><html><head><title>Bad gateway</title></head><body>…</body></html>"


def test_a_web_page_as_an_error_is_named_by_its_title(serve: Serve) -> None:
    _, llm = serve(send_text(HTML, 502, "text/html"), max_retries=0)
    assert "(502: a web page titled 'Bad gateway')" in failure(llm)


@pytest.mark.parametrize(
    ("body", "kind", "shown"),
    [
        (HTML, "text/html", "not JSON (a web page titled 'Bad gateway')"),
        ("%&!", "application/json", "not JSON (%&!)"),
        ("", "application/json", "not JSON (nothing)"),
        ("[" * 100_000, "application/json", "not JSON ("),
        ('{"choices": [', "application/json", "not JSON ("),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_rubbish_instead_of_json_is_named_and_not_asked_again(
    serve: Serve, body: str, kind: str, shown: str, streaming: bool
) -> None:
    server, llm = serve(send_text(body, 200, kind))
    message = stream_failure(llm)[1] if streaming else failure(llm)
    assert shown in message
    assert "base_url" in message
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([], "JSON that is not an object"),
        ("text", "JSON that is not an object"),
        ({}, "without any choice"),
        ({"choices": []}, "without any choice"),
        ({"choices": None}, "without any choice"),
        ({"choices": {"a": 1}}, "choices that are not a list"),
        ({"choices": ["text"]}, "choices that are not a list of objects"),
        ({"choices": [{}]}, "holds no message"),
        ({"choices": [{"message": {}}]}, "holds no message"),
        ({"choices": [{"message": "text"}]}, "holds no message"),
        ({"choices": [{"message": {"content": 7}}]}, "not a text"),
        (
            {"choices": [{"message": {"content": None, "tool_calls": [{"function": {}}]}}]},
            "malformed tool call",
        ),
        (
            {"choices": [{"message": {"content": None, "tool_calls": 3}}]},
            "tool calls that are not a list",
        ),
        ({"error": {"message": "out of credits"}}, "reported an error: out of credits"),
    ],
)
def test_wrong_shapes_of_json_are_named(serve: Serve, value: Any, shown: str) -> None:
    _, llm = serve(send_json(value))
    assert shown in failure(llm)


def test_an_endless_body_is_cut_off(serve: Serve) -> None:
    _, llm = serve(flood)
    assert "answered with more than 32 MB" in failure(llm)


def test_a_prompt_that_is_not_unicode_is_named(serve: Serve) -> None:
    server, llm = serve()
    assert "broken Unicode" in failure(llm, ask("a\ud800b"))
    assert server.bodies == []


# ── fields that some servers do not take ─────────────────────────────────────

NEWER = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."


def refuse_max_tokens(handler: Handler) -> None:
    (fail(400, NEWER, param="max_tokens") if "max_tokens" in handler.body else answer())(handler)


def test_a_model_that_rejects_max_tokens_is_asked_differently_from_then_on(serve: Serve) -> None:
    server, llm = serve(refuse_max_tokens, max_retries=0)
    assert [one(llm, ask(max_tokens=5)).text, one(llm).text] == ["fine", "fine"]
    assert ["max_tokens" in body for body in server.bodies] == [True, False, False]
    assert [body.get("max_completion_tokens") for body in server.bodies] == [None, 5, 256]


def test_a_fixed_max_tokens_field_is_never_switched(serve: Serve) -> None:
    server, llm = serve(refuse_max_tokens, max_tokens_field="max_tokens")
    assert "Use 'max_completion_tokens' instead" in failure(llm)
    assert len(server.bodies) == 1
    server, llm = serve(max_tokens_field="max_completion_tokens")
    one(llm)
    assert server.bodies[0]["max_completion_tokens"] == 256


def test_a_server_that_rejects_both_fields_is_asked_only_twice(serve: Serve) -> None:
    server, llm = serve(fail(400, "neither max_tokens nor max_completion_tokens"))
    assert "refused the request" in failure(llm)
    assert len(server.bodies) == 2


def test_a_server_that_rejects_stream_options_is_asked_without(serve: Serve) -> None:
    server, llm = serve(fail(400, "unknown field stream_options"), good_stream("Ada"))
    assert next(llm.stream(ask())) == "Ada"
    assert ["stream_options" in body for body in server.bodies] == [True, False]


# ── streaming ────────────────────────────────────────────────────────────────


def test_a_stream_hands_out_pieces_and_ends_with_the_whole_reply(serve: Serve) -> None:
    server, llm = serve(good_stream("Ada wrote it"))
    assert isinstance(llm, StreamingLLM)
    *pieces, reply = llm.stream(ask())
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
    assert whole >= 0.5
    assert first < whole - 0.3
    assert reply.first_token_seconds == pytest.approx(first, abs=0.1)


def test_a_time_out_in_a_stream_counts_silence_not_length(serve: Serve) -> None:
    _, llm = serve(good_stream("a b c d e f", pause=0.1), timeout=0.5)
    *_, reply = llm.stream(ask())
    assert reply.text == "a b c d e f"


def test_unicode_line_separators_and_crlf_do_not_break_a_stream(serve: Serve) -> None:
    pieces = [chunk("a\u2028b\x85c"), ":" + " comment", chunk("d", "stop"), DONE]
    _, llm = serve(stream(pieces[:1] + pieces[2:]))
    *_, reply = llm.stream(ask())
    assert reply.text == "a\u2028b\x85cd"

    def with_crlf(handler: Handler) -> None:
        handler.start(200, {"Content-Type": "text/event-stream", "Connection": "close"})
        data = b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}'
        handler.wfile.write(b": comment\r\n\r\n" + data + b"\r\n\r\ndata: [DONE]\r\n\r\n")
        handler.drop()

    _, llm = serve(with_crlf)
    assert [piece for piece in llm.stream(ask()) if isinstance(piece, str)] == ["x"]


def test_tool_calls_and_logprobs_of_a_stream_are_put_together(serve: Serve) -> None:
    begin = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": ""}}
    more = [{"index": 0, "function": {"arguments": part}} for part in ('{"q":', ' "Ada"}')]
    other = {"index": 1, "id": "c2", "function": {"name": "look", "arguments": "{}"}}
    pieces = [chunk(tool_calls=[call]) for call in (begin, *more, other)]
    pieces[0]["choices"][0]["logprobs"] = {"content": [{"logprob": -0.25}]}
    _, llm = serve(stream([*pieces, chunk(finish_reason="tool_calls"), DONE]))
    (reply,) = llm.stream(ask())
    assert reply.tool_calls == (
        ToolCall("c1", "search", '{"q": "Ada"}'),
        ToolCall("c2", "look", "{}"),
    )
    assert (reply.text, reply.finish_reason, reply.logprobs) == ("", "tool_calls", (-0.25,))


@pytest.mark.parametrize("promise", [False, True], ids=["clean end", "dropped"])
def test_a_stream_that_breaks_off_is_an_error_and_never_an_answer(
    serve: Serve, promise: bool
) -> None:
    server, llm = serve(stream([chunk("Ada"), chunk(" was")], promise=promise))
    got, message = stream_failure(llm)
    assert got == ["Ada", " was"]
    assert "What came before is incomplete and was not kept." in message
    assert len(server.bodies) == 1  # text was handed out, so it cannot start again


@pytest.mark.parametrize("promise", [False, True], ids=["clean end", "dropped"])
def test_a_stream_that_breaks_off_before_its_first_word_is_tried_again(
    serve: Serve, promise: bool
) -> None:
    server, llm = serve(stream([chunk("", role="assistant")], promise=promise), good_stream("Ada"))
    *_, reply = llm.stream(ask())
    assert reply.text == "Ada"
    assert len(server.bodies) == 2


def test_a_stream_that_falls_silent_is_an_error(serve: Serve) -> None:
    _, llm = serve(stream([chunk("Ada"), chunk(" was")], pause=4), timeout=0.2)
    got, message = stream_failure(llm)
    assert got == ["Ada"]
    assert "gave no answer within 0.2 s" in message


@pytest.mark.parametrize(
    "end", [[chunk("a", "stop")], [chunk("a"), DONE], [chunk("a"), chunk(None, "length"), USAGE]]
)
def test_a_finish_reason_or_done_makes_a_stream_complete(serve: Serve, end: list[Any]) -> None:
    _, llm = serve(stream(end))
    *_, reply = llm.stream(ask())
    assert reply.text == "a"


def test_a_drop_after_the_finish_reason_costs_only_the_usage(serve: Serve) -> None:
    _, llm = serve(stream([chunk("Ada", "stop")], promise=True))
    *_, reply = llm.stream(ask())
    assert (reply.text, reply.completion_tokens) == ("Ada", 0)


def test_an_error_inside_a_stream_is_reported(serve: Serve) -> None:
    _, llm = serve(stream([chunk("Ada"), {"error": {"message": "out of memory"}}]))
    got, message = stream_failure(llm)
    assert (got, "reported an error: out of memory" in message) == (["Ada"], True)


@pytest.mark.parametrize(
    "piece",
    ["{rubbish", [1], {"choices": {"a": 1}}, {"choices": [{"delta": 3}]}, chunk(7)],  # type: ignore[arg-type]
    ids=str,
)
def test_a_malformed_piece_of_a_stream_is_an_error(serve: Serve, piece: Any) -> None:
    _, llm = serve(stream([piece, DONE]))
    assert stream_failure(llm)[0] == []


def test_a_server_that_ignores_stream_still_answers(serve: Serve) -> None:
    _, llm = serve(answer("Ada wrote it"))
    piece, reply = llm.stream(ask())
    assert (piece, reply.text, reply.prompt_tokens) == ("Ada wrote it", "Ada wrote it", 7)


def test_a_stream_under_a_wrong_content_type_is_still_read(serve: Serve) -> None:
    _, llm = serve(stream([chunk("Ada", "stop"), DONE], kind="text/plain"))
    *_, reply = llm.stream(ask())
    assert reply.text == "Ada"


def test_leaving_a_stream_early_hangs_up(serve: Serve) -> None:
    gone = threading.Event()

    def talk_on(handler: Handler) -> None:
        try:
            stream([chunk("word ")] * 200, pause=0.02)(handler)
        except (BrokenPipeError, ConnectionResetError):
            gone.set()

    _, llm = serve(talk_on)
    pieces = llm.stream(ask())
    next(pieces)
    pieces.close()
    assert gone.wait(3)


# ── secrets ──────────────────────────────────────────────────────────────────


def test_the_key_appears_in_the_authorization_header_and_nowhere_else(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server, llm = serve(
        answer(),
        fail(401, f"Incorrect API key provided: {KEY}"),
        fail(400, "x" * 290 + KEY),
        good_stream("a"),
        send_text(f"rubbish {KEY}"),
    )
    one(llm)
    messages = [failure(llm), failure(llm), *map(str, llm.stream(ask())), failure(llm)]
    messages += [repr(llm), str(vars(llm)["_server"]), llm.fingerprint, llm.about, caplog.text]
    for text in messages:
        assert KEY not in text
        assert KEY[:12] not in text
    assert "***" in messages[0]
    for headers, body in zip(server.headers, server.bodies, strict=True):
        assert [name for name, value in headers.items() if KEY in value] == ["authorization"]
        assert headers["authorization"] == f"Bearer {KEY}"
        assert KEY not in str(body)


def test_a_key_of_any_form_is_blotted_out(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "plainword")
    _, llm = serve(fail(401, "x" * 295 + "plainword is wrong"))
    assert "x" * 295 + "*** …" in failure(llm)


def test_another_key_that_the_server_repeats_is_blotted_out(serve: Serve) -> None:
    _, llm = serve(
        fail(400, "Bearer abcdefghijklmnop and sk-proj-ab***yz and sk-learn-models are bad")
    )
    assert "(400: *** and *** and sk-learn-models are bad)" in failure(llm)


def test_openai_account_headers_are_not_sent_to_other_servers(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "admin-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer other-secret")
    server, llm = serve()
    one(llm)
    assert "secret" not in str(server.headers).replace(KEY, "")


def test_a_missing_key_is_fine_for_a_server_of_ones_own(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    server, llm = serve()
    assert one(llm).text == "fine"
    assert server.headers[0]["authorization"] == "Bearer none"


def test_a_missing_key_for_openai_itself_is_refused_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="set the environment variable OPENAI_API_KEY"):
        LLMS["openai_compatible"]("gpt", model="gpt-4o")


def test_a_key_with_a_line_end_inside_is_refused_and_not_shown(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-first\nsk-second")
    with pytest.raises(
        UsageError, match="OPENAI_API_KEY holds characters that no key has"
    ) as caught:
        serve()
    assert "sk-first" not in str(caught.value)


def test_the_proxies_of_the_environment_do_not_stand_before_the_loopback(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    _, llm = serve()
    assert one(llm).text == "fine"


# ── settings and fingerprint ─────────────────────────────────────────────────


def make(**settings: Any) -> Any:
    return LLMS["openai_compatible"](
        "gpt", **{"model": "m", "base_url": "http://localhost:1/v1", **settings}
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"modle": "x"}, "no setting 'modle'. Did you mean 'model'"),
        ({"api_key": "sk-abc"}, "no setting 'api_key'"),
        ({"name": "x"}, "no setting 'name'"),
        ({"model": ""}, "model is empty"),
        ({"model": 3}, "model is 3; it must be text"),
        ({"base_url": "localhost:8000"}, "base_url is not an address"),
        ({"base_url": "ftp://localhost/v1"}, "base_url is not an address"),
        ({"base_url": "http://"}, "base_url is not an address"),
        ({"base_url": "http://h:99999/v1"}, "base_url is not an address"),
        ({"base_url": "http://[::1/v1"}, "base_url is not an address"),
        ({"base_url": "http://a b/v1"}, "base_url is not an address"),
        ({"base_url": "http://" + "ü" * 80 + ".de/v1"}, "base_url is not an address"),
        ({"base_url": "http://me:sk-abc@host/v1"}, "holds a user name or a query"),
        ({"base_url": "http://host/v1?key=sk-abc"}, "holds a user name or a query"),
        ({"api_key_env": "sk-abc"}, "must be the name of an environment variable"),
        ({"timeout": 0}, "timeout is 0; it must be a number from 0.01"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"timeout": "10"}, "timeout is '10'"),
        ({"concurrency": 0}, "concurrency is 0; it must be a whole number from 1 to 256"),
        ({"concurrency": True}, "concurrency is True"),
        ({"max_retries": -1}, "max_retries is -1"),
        (
            {"max_tokens": 1.5},
            "max_tokens is 1.5; it must be a whole number from 1 to 10000000 or null",
        ),
        ({"temperature": 9}, "temperature is 9"),
        ({"top_p": 2}, "top_p is 2"),
        ({"max_tokens_field": "limit"}, "max_tokens_field is 'limit'; it must be one of auto"),
        ({"requests_per_minute": 0}, "requests_per_minute is 0"),
        ({"tokens_per_minute": "many"}, "tokens_per_minute is 'many'"),
        ({"prices": {"prompt": 1}}, "prices must be {"),
        ({"prices": {"prompt": 1, "completion": -2}}, "prices: completion is -2"),
        ({"extra_body": [1]}, "extra_body must be an object"),
        ({"extra_body": {"stream": True}}, "extra_body may not set stream"),
        ({"extra_body": {"x": float("inf")}}, "extra_body cannot be sent as JSON"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_setting_is_refused_with_its_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        make(**settings)
    assert message in str(caught.value)
    assert "sk-abc" not in str(caught.value)


def test_a_missing_model_is_named() -> None:
    with pytest.raises(UsageError, match="'gpt' needs the setting 'model'"):
        LLMS["openai_compatible"]("gpt", base_url="http://localhost:1/v1")


def test_options_that_would_change_the_kind_of_answer_are_refused_in_place(serve: Serve) -> None:
    server, llm = serve()
    result = one(llm, ask(options={"n": 3}))
    assert isinstance(result, UsageError)
    assert "may not set n" in str(result)
    assert server.bodies == []


def test_the_fingerprint_changes_with_what_changes_an_answer_and_only_with_that() -> None:
    base = make().fingerprint
    assert make().fingerprint == base
    for change in (
        {"model": "n"},
        {"base_url": "http://localhost:2/v1"},
        {"max_tokens": 5},
        {"temperature": 0.5},
        {"top_p": 0.5},
        {"system": "Sing."},
        {"extra_body": {"top_k": 1}},
    ):
        assert make(**change).fingerprint != base, change
    for change in (
        {"timeout": 5},
        {"concurrency": 2},
        {"max_retries": 1},
        {"requests_per_minute": 5},
        {"tokens_per_minute": 5},
        {"prices": {"prompt": 1, "completion": 2}},
        {"base_url": "http://localhost:1/v1/"},
    ):
        assert make(**change).fingerprint == base, change


def test_without_the_http_package_the_install_line_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "httpcore2", None)
    with pytest.raises(MissingPackageError, match="pip install httpcore2"):
        make()


def test_listing_the_backends_does_not_import_the_client() -> None:
    import subprocess

    code = (
        "import sys; from rallebench.llms import LLMS; assert 'openai_compatible' in LLMS.names(); "
        "print('openai' in sys.modules, 'httpcore2' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.split() == ["False", "False"]
