"""Servers that are broken in their own way: each costs one sentence, and nothing is left behind."""

from __future__ import annotations

import gzip
import itertools
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from loopback import (
    Behaviour,
    Handler,
    Loopback,
    answer,
    chunk,
    completion,
    drop_halfway,
    send_json,
    send_text,
    stream,
)

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.types import Generate, Message
from rallebench.llms import LLMS

KEY = "sk-verysecret0123456789"
WHO = Generate("gpt", (Message("user", "Who?"),))


def raw(text: bytes) -> Behaviour:
    """Say this, byte for byte, and hang up."""

    def behave(handler: Handler) -> None:
        handler.wfile.write(text)
        handler.drop()

    return behave


def dripping(head: bytes, piece: bytes, pause: float = 0.03) -> Behaviour:
    """Begin well, then go on and on."""

    def behave(handler: Handler) -> None:
        handler.wfile.write(head)
        for _ in range(300):
            if handler.owner.closing.is_set():
                break
            handler.wfile.write(piece)
            handler.wait(pause)
        handler.drop()

    return behave


EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
HEADERS = b"HTTP/1.1 200 OK\r\nX-Slow: "


def flood_of_words(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 400 No\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")
    for _ in range(64):
        handler.wfile.write(b"no " * 2**18)
    handler.drop()


def packed(handler: Handler) -> None:
    handler.send(200, gzip.compress(json.dumps(completion()).encode()), content_encoding="gzip")


BROKEN: dict[str, tuple[Behaviour, str]] = {
    "headers that never end": (dripping(HEADERS, b"x"), "gave no answer within 0.3 s"),
    "a body that never ends": (
        dripping(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b" "),
        "gave no answer within 0.3 s",
    ),
    "no HTTP": (raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "something that is not HTTP"),
    "headers without limit": (
        raw(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 2**18),
        "not HTTP (Receive buffer too long)",
    ),
    "an empty body": (send_text("", 200, "application/json"), "not JSON (nothing)"),
    "half of the JSON": (
        send_text(json.dumps(completion())[:60], 200, "application/json"),
        "not JSON",
    ),
    "half of the body": (drop_halfway, "dropped the connection"),
    "a web page": (
        send_text("<html><title>Log in</title></html>", 200, "text/html"),
        "a web page titled 'Log in'",
    ),
    "an error with 200": (
        send_json({"error": {"message": "overloaded"}}),
        "reported an error: overloaded",
    ),
    "a refusal without end": (flood_of_words, "refused the request (400: no no"),
    "a packed body": (packed, "packed its answer unasked (gzip)"),
    "nothing at all": (raw(b""), "dropped the connection"),
    "no content": (raw(b"HTTP/1.1 204 No Content\r\n\r\n"), "not JSON (nothing)"),
}
BROKEN_STREAMS: dict[str, tuple[Behaviour, str]] = {
    "half a word": (raw(EVENTS + b'data: {"choices": [{"delta": {"content": "Ad'), "not JSON"),
    "half a character": (
        raw(EVENTS + b'data: {"choices": [{"delta": {"content": "\xc3"}}]}\n\n'),
        "not JSON",
    ),
    "signs of life alone": (dripping(EVENTS, b": still here\n\n"), "gave no answer within 0.3 s"),
    "empty pieces": (
        dripping(EVENTS, b'data: {"choices": [{"delta": {"content": ""}}]}\n\n'),
        "gave no answer within 0.3 s",
    ),
    "nothing but the end": (raw(EVENTS), "broke off its answer after 0 characters"),
}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, load: Callable[..., Any]) -> Callable[..., Any]:
    """A backend that gives up at once."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return partial(load, timeout=0.3, max_retries=0)


@pytest.mark.parametrize(
    ("name", "streaming"),
    [*itertools.product(BROKEN, (False, True)), *((name, True) for name in BROKEN_STREAMS)],
)
def test_what_is_broken_is_said_in_one_sentence_in_time(
    load: Any, name: str, streaming: bool
) -> None:
    behaviour, said = {**BROKEN, **BROKEN_STREAMS}[name]
    with Loopback(behaviour) as server:
        llm = load(server)
        started = time.monotonic()
        if streaming:
            with pytest.raises(BackendError) as caught:
                list(llm.stream(WHO))
            message = str(caught.value)
        else:
            (error,) = llm.generate([WHO])
            assert isinstance(error, BackendError), error
            message = str(error)
        assert time.monotonic() - started < 3.0
        assert said in message
        assert message.startswith(f"'gpt' at {server.url} ")
        assert message.endswith(".") and "\n" not in message and len(message) < 600
        assert llm.status().in_flight == 0


def test_an_answer_under_a_wrong_content_type_is_an_answer(load: Any) -> None:
    with Loopback(send_text(json.dumps(completion("Ada")), 200, "text/html")) as server:
        llm = load(server)
        assert llm.generate([WHO])[0].text == "Ada"
    pieces = [chunk("Ad"), chunk("a", "stop"), "[DONE]"]
    with Loopback(stream(pieces, kind="application/json")) as server:
        llm = load(server)
        assert llm.generate([WHO])[0].text == "Ada"  # nor was a stream asked for
        assert "".join(piece for piece in llm.stream(WHO) if isinstance(piece, str)) == "Ada"


def test_a_stream_that_thinks_before_it_speaks_is_waited_for(load: Any) -> None:
    thoughts = [chunk(reasoning_content="hm") for _ in range(6)]
    with Loopback(stream([*thoughts, chunk("Ada", "stop")], pause=0.1)) as server:
        *_, reply = load(server).stream(WHO)
        assert reply.text == "Ada"


def test_a_server_that_answers_with_the_key_is_not_quoted(load: Any) -> None:
    def tell(handler: Handler) -> None:
        answer(f"You are {handler.headers['Authorization']}.")(handler)

    with Loopback(tell) as server:
        (reply,) = load(server).generate([WHO])
    assert reply.text == "You are Bearer ***."


def test_a_stream_that_nobody_reads_on_gives_its_room_back(load: Any) -> None:
    with Loopback(stream([chunk(str(n)) for n in range(100)], pause=0.02)) as server:
        llm = load(server)
        pieces = llm.stream(WHO)
        assert next(pieces) == "0"
        assert llm.status().in_flight == 1
        pieces.close()
        assert llm.status().in_flight == 0


@pytest.mark.parametrize("proxy", ["http://me:secret@host:port", "gopher://host:1"])
def test_a_proxy_that_is_no_address_is_named_without_what_it_holds(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(
        UsageError, match=r"names for models\.example is not an address; correct http_proxy"
    ) as caught:
        LLMS["openai_compatible"]("gpt", model="m", base_url="http://models.example/v1")
    assert "secret" not in str(caught.value)
