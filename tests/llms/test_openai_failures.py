"""Failing servers: repeated requests, and the one sentence for each failure."""

from __future__ import annotations

import gzip
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from email.utils import formatdate
from functools import partial
from typing import Any

import pytest
from asking import ask, failure, reply_of, stream_failure
from loopback import (
    Behaviour,
    Handler,
    Loopback,
    answer,
    chunk,
    completion,
    drip,
    drop_at_once,
    drop_halfway,
    fail,
    flood,
    hang,
    send_json,
    send_text,
)

from rallebench.core.errors import StoppedError
from rallebench.core.stopping import Stop, obey

Serve = Callable[..., tuple[Loopback, Any]]
Load = Callable[..., Any]

# ── repeated requests ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("headers", "least"),
    [
        ({"retry_after": "0.3"}, 0.3),
        ({"retry_after_ms": "300", "retry_after": "60"}, 0.3),
        (lambda: {"retry_after": formatdate(time.time() + 1.5, usegmt=True)}, 0.4),
    ],
    ids=["seconds", "milliseconds", "a date in whole seconds"],
)
def test_too_many_requests_waits_as_is_asked(serve: Serve, headers: Any, least: float) -> None:
    headers = headers() if callable(headers) else headers
    server, llm = serve(fail(429, "slow down", headers=headers), answer("fine"))
    start = time.monotonic()
    assert reply_of(llm).text == "fine"
    assert least <= time.monotonic() - start < 3
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("behaviours", "settings"),
    [
        ([fail(500), fail(503)], {}),
        ([drop_at_once, drop_at_once], {}),
        ([drop_halfway, drop_halfway], {}),
        ([hang()], {"timeout": 0.3}),
    ],
    ids=["server errors", "dropped at once", "dropped halfway", "a time-out"],
)
def test_what_may_pass_is_asked_again_until_it_is_answered(
    serve: Serve, behaviours: list[Behaviour], settings: dict[str, Any]
) -> None:
    server, llm = serve(*behaviours, answer("fine"), **settings)
    assert reply_of(llm).text == "fine"
    assert len(server.bodies) == len(behaviours) + 1


@pytest.mark.parametrize(
    ("behaviour", "settings", "words", "requests"),
    [
        (fail(500, "CUDA"), {"max_retries": 2}, "internal error (500: CUDA) (tried 3 times)", 3),
        (drop_at_once, {"max_retries": 1}, "dropped the connection", 2),
        (hang(), {"timeout": 0.1, "max_retries": 6}, "(tried 3 times)", 3),
        (fail(429, "today", headers={"retry_after": "3600"}), {}, "asks to wait 3600 s", 1),
        (fail(429, "Quota", code="insufficient_quota"), {}, "no quota left", 1),
        *[
            (fail(status, "no"), {}, f"({status}: no)", 1)
            for status in (400, 401, 403, 404, 413, 422)
        ],
    ],
)
def test_a_failure_that_does_not_pass_is_reported_after_so_many_requests(
    serve: Serve, behaviour: Behaviour, settings: dict[str, Any], words: str, requests: int
) -> None:
    server, llm = serve(behaviour, **settings)
    assert words in failure(llm)
    assert len(server.bodies) == requests


def test_the_pauses_between_tries_grow(serve: Serve) -> None:
    _, llm = serve(fail(500), max_retries=3, backoff=0.08)
    start = time.monotonic()
    failure(llm)
    assert time.monotonic() - start >= 0.5 * (0.08 + 0.16 + 0.32)


def test_closing_ends_a_wait_for_another_try(serve: Serve) -> None:
    server, llm = serve(fail(429, headers={"retry_after": "60"}))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(reply_of(llm)))
    thread.start()
    assert server.until(lambda: server.answered == 1)
    time.sleep(0.2)  # waiting by now
    llm.close()
    thread.join(5)
    assert "was unloaded" in str(results[0])
    assert "was unloaded" in failure(llm)


@pytest.mark.parametrize("busy", [hang(60), fail(429, headers={"retry_after": "60"})])
def test_a_stop_ends_the_waits_of_its_own_work_and_no_other(serve: Serve, busy: Behaviour) -> None:
    server, llm = serve(busy, concurrency=2)
    stop = Stop()
    results: list[Any] = []

    def work() -> None:
        obey(stop)
        results.extend(llm.generate([ask("a"), ask("b"), ask("c"), ask("d")]))

    thread = threading.Thread(target=work)
    other = threading.Thread(target=lambda: reply_of(llm), daemon=True)
    thread.start()
    other.start()
    assert server.until(lambda: len(server.bodies) >= 2)
    stop.set()
    thread.join(5)
    assert len(results) == 4 and all(isinstance(result, StoppedError) for result in results)
    assert other.is_alive()
    llm.close()
    other.join(5)
    assert not other.is_alive()


def test_a_stop_ends_the_wait_for_connections_nobody_answers(make: Callable[..., Any]) -> None:
    with socket.socket() as listener, ExitStack() as crowd:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):  # more than its queue holds: the system answers no others
            other = crowd.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(listener.getsockname())
        llm = make(
            base_url="http://{}:{}/v1".format(*listener.getsockname()), max_retries=0, timeout=60
        )
        stop, results, waits = Stop(), list[Any](), threading.Event()

        def work() -> None:
            obey(stop)
            waits.set()
            results.append(reply_of(llm))

        thread = threading.Thread(target=work)
        thread.start()
        waits.wait(5)
        time.sleep(0.3)  # connecting by now
        assert thread.is_alive()
        stop.set()
        thread.join(5)
        assert [type(result) for result in results] == [StoppedError]
        llm.close()


# ── messages ─────────────────────────────────────────────────────────────────


def test_a_server_that_is_not_running_is_reported_at_once(load: Load) -> None:
    with Loopback() as server:
        llm = load(server, max_retries=6)
    start = time.monotonic()
    message = failure(llm)
    assert message.startswith(f"'gpt' at {server.url} cannot be reached (")
    assert message.endswith("Start the server, or correct its address.")
    assert "tried" not in message, "it is asked once"
    assert time.monotonic() - start < 2


def test_a_redirect_is_not_followed_so_that_the_key_stays_here(serve: Serve) -> None:
    elsewhere, _ = serve()
    server, llm = serve(send_json({}, 307, location=elsewhere.url + "/chat/completions"))
    assert "redirects elsewhere (307)" in failure(llm)
    assert (len(server.bodies), len(elsewhere.bodies)) == (1, 0)


HTML = "<!DOCTYPE html><html><head><title>Bad gateway</title></head><body>…</body></html>"


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (send_json({"detail": "Not Found"}, 400), "(400: Not Found)"),
        (send_json({"message": "bad\n\x1b[31m  prompt"}, 400), "(400: bad [31m prompt)"),
        (send_json({"error": "plain"}, 400), "(400: plain)"),
        (send_json([1], 400), "(400: [1])"),
        (send_json({}, 400), "(400: {})"),
        (fail(400, "x" * 5000), f"(400: {'x' * 299}…)"),
        (send_text(HTML, 502, "text/html"), "(502: a web page titled 'Bad gateway')"),
        (fail(404, "none"), "does not know the model 'm', or this address (404: none)"),
    ],
)
def test_a_servers_own_words_are_quoted_in_one_line(
    serve: Serve, behaviour: Behaviour, words: str
) -> None:
    assert words in failure(serve(behaviour, max_retries=0)[1])


@pytest.mark.parametrize(
    ("value", "words"),
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
        ({"choices": [{"message": {"tool_calls": [{"function": {}}]}}]}, "malformed tool call"),
        ({"choices": [{"message": {"tool_calls": 3}}]}, "tool calls that are not a list"),
        ({"error": {"message": "out of luck"}}, "reported an error: out of luck"),
    ],
)
def test_wrong_shapes_of_json_are_named(serve: Serve, value: Any, words: str) -> None:
    assert words in failure(serve(send_json(value))[1])


def test_a_prompt_that_is_not_unicode_is_named(serve: Serve) -> None:
    server, llm = serve()
    assert "broken Unicode" in failure(llm, ask("a\ud800b"))
    assert server.bodies == []


# ── unusual failures ─────────────────────────────────────────────────────────


def raw(text: bytes) -> Behaviour:
    """Send exactly these bytes, and hang up."""

    def behave(handler: Handler) -> None:
        handler.wfile.write(text)
        handler.drop()

    return behave


def dripping(head: bytes, piece: bytes, pause: float = 0.03) -> Behaviour:
    """Begin well, then never end."""

    def behave(handler: Handler) -> None:
        handler.wfile.write(head)
        for _ in range(300):
            if handler.owner.closing.is_set():
                break
            handler.wfile.write(piece)
            handler.wait(pause)
        handler.drop()

    return behave


def flood_of_words(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 400 No\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")
    for _ in range(64):
        handler.wfile.write(b"no " * 2**18)
    handler.drop()


def packed(handler: Handler) -> None:
    handler.send(200, gzip.compress(json.dumps(completion()).encode()), content_encoding="gzip")


OK = b"HTTP/1.1 200 OK\r\n"
EVENTS = OK + b"Content-Type: text/event-stream\r\nConnection: close\r\n\r\n"
LATE = "gave no answer within 0.3 s. Check that the server is working, raise timeout"
json_text = partial(send_text, status=200, kind="application/json")
BROKEN: dict[str, tuple[Behaviour, str]] = {
    "silence": (hang(), LATE),
    "a body byte by byte": (drip, LATE),
    "headers that never end": (dripping(OK + b"X-Slow: ", b"x"), LATE),
    "a body that never ends": (dripping(OK + b"Connection: close\r\n\r\n", b" "), LATE),
    "a body without limit": (flood, "answered with more than 32 MB"),
    "no HTTP": (raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "something that is not HTTP"),
    "headers without limit": (
        raw(OK + b"X: " + b"y" * 2**18),
        "not HTTP (Receive buffer too long)",
    ),
    "an empty body": (json_text(""), "not JSON (nothing). Check that the address"),
    "rubbish": (json_text("%&!"), "not JSON (%&!). Check that the address"),
    "half of the JSON": (json_text(json.dumps(completion())[:60]), "not JSON"),
    "JSON too deep": (json_text("[" * 100_000), "not JSON ("),
    "half of the body": (drop_halfway, "dropped the connection"),
    "a web page": (send_text(HTML, 200, "text/html"), "not JSON (a web page titled 'Bad gateway')"),
    "an error with 200": (send_json({"error": {"message": "full"}}), "reported an error: full"),
    "a refusal without end": (flood_of_words, "refused the request (400: no no"),
    "a packed body": (packed, "compressed its answer without being asked (gzip)"),
    "nothing at all": (raw(b""), "dropped the connection"),
    "no content": (raw(b"HTTP/1.1 204 No Content\r\n\r\n"), "not JSON (nothing)"),
}
PIECE = json.dumps(chunk("")).encode()
BROKEN_STREAMS: dict[str, tuple[Behaviour, str]] = {
    "half a word": (raw(EVENTS + b"data: " + PIECE[:40]), "not JSON"),
    "half a character": (raw(EVENTS + b'data: {"choices": ["\xc3"]}\n\n'), "not JSON"),
    "signs of life alone": (dripping(EVENTS, b": still here\n\n"), LATE),
    "empty pieces": (dripping(EVENTS, b"data: " + PIECE + b"\n\n"), LATE),
    "nothing but the end": (raw(EVENTS), "broke off its answer after 0 characters"),
}


@pytest.mark.parametrize(
    ("name", "streaming"),
    [*itertools.product(BROKEN, (False, True)), *((name, True) for name in BROKEN_STREAMS)],
)
def test_what_is_broken_costs_a_sentence_in_time(serve: Serve, name: str, streaming: bool) -> None:
    behaviour, words = {**BROKEN, **BROKEN_STREAMS}[name]
    server, llm = serve(
        behaviour, timeout=1.0 if name == "a body without limit" else 0.3, max_retries=0
    )
    started = time.monotonic()
    message = stream_failure(llm)[1] if streaming else failure(llm)
    assert time.monotonic() - started < 3.0
    assert words in message
    assert message.startswith(f"'gpt' at {server.url} ")
    assert message.endswith(".") and "\n" not in message and len(message) < 600
    assert llm.status().in_flight == 0 and len(server.bodies) == 1
