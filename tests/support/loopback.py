"""A chat-completions server on 127.0.0.1 that behaves, or misbehaves, as a test demands.

``with Loopback(a, b, c) as server``: the first request meets behaviour ``a``, the second ``b``, all later ones the last. A
behaviour is a function of the :class:`Handler`; the functions below make the usual ones. Every wait ends when the server
is closed, and no socket is waited for longer than ten seconds.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """One connection. ``body`` is the decoded request, ``server.owner`` the Loopback."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 10

    def setup(self) -> None:
        super().setup()
        self.owner: Loopback = self.server.owner
        self.owner.connections += 1

    def do_GET(self) -> None:
        self.body = {}
        self._behave()

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._behave()

    def _behave(self) -> None:
        behaviour, self.in_flight = self.owner.enter(self), 1
        try:
            behaviour(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            self.owner.leave(self)

    def wait(self, seconds: float) -> None:
        self.owner.closing.wait(seconds)

    def send(
        self, status: int, content: bytes, kind: str = "application/json", **headers: str
    ) -> None:
        """A whole response in one write; a header ``retry_after`` is sent as ``retry-after``.

        Once its body is written, it is no longer in flight: the client may send the next request at once.
        """
        lines = {"Content-Type": kind, "Content-Length": str(len(content))}
        self.start(
            status, {**lines, **{name.replace("_", "-"): value for name, value in headers.items()}}
        )
        self.owner.land(self)
        self.wfile.write(content)

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def drop(self) -> None:
        """Hang up at once, despite any promise."""
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Keep the test output clean."""


Behaviour = Callable[[Handler], None]


class Server(ThreadingHTTPServer):
    """A client that hangs up is part of the tests; any other error is shown."""

    daemon_threads = True
    request_queue_size = 64
    owner: Loopback

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Loopback:
    """The server; keeps ``bodies``, ``headers`` (names in lower case), ``paths`` and times in order of arrival."""

    def __init__(self, *behaviours: Behaviour) -> None:
        self.behaviours = behaviours or (answer(),)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        self.arrived: list[float] = []
        self.connections = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.answered = 0
        self.changed = threading.Condition()
        self.closing = threading.Event()
        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.owner = self
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    def __enter__(self) -> Loopback:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        with self.changed:
            self.changed.notify_all()
        self._server.shutdown()
        self._thread.join(5)
        self._server.socket.close()

    def enter(self, handler: Handler) -> Behaviour:
        with self.changed:
            number = len(self.bodies)
            self.bodies.append(handler.body)
            self.arrived.append(time.monotonic())
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            self.paths.append(handler.path)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            self.changed.notify_all()
        return self.behaviours[min(number, len(self.behaviours) - 1)]

    def land(self, handler: Handler) -> None:
        with self.changed:
            self.in_flight -= handler.in_flight
            handler.in_flight = 0
            self.changed.notify_all()

    def leave(self, handler: Handler) -> None:
        self.land(handler)
        with self.changed:
            self.answered += 1
            self.changed.notify_all()

    def until(self, condition: Callable[[], bool], seconds: float = 3.0) -> bool:
        """Wait for a condition on this server; False if it stays unmet."""
        with self.changed:
            return self.changed.wait_for(lambda: self.closing.is_set() or condition(), seconds)


# ── behaviours ───────────────────────────────────────────────────────────────


def completion(
    text: str | None = "fine", *, finish_reason: str = "stop", **message: Any
) -> dict[str, Any]:
    """A well-formed answer: 7 prompt tokens, 3 completion tokens."""
    return {
        "id": "x",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish_reason,
            }
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def send_json(value: Any, status: int = 200, **headers: str) -> Behaviour:
    return lambda handler: handler.send(status, json.dumps(value).encode(), **headers)


def send_text(text: str, status: int = 200, kind: str = "text/plain") -> Behaviour:
    return lambda handler: handler.send(status, text.encode(), kind)


def answer(text: str | None = "fine", **more: Any) -> Behaviour:
    return send_json(completion(text, **more))


def models(*names: str) -> Behaviour:
    """The list for ``GET /v1/models``."""
    return send_json(
        {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}
    )


def serving(*names: str, text: str = "fine") -> Behaviour:
    """Answer a GET with a list of models, a POST with an answer."""
    return lambda handler: (models(*names) if handler.command == "GET" else answer(text))(handler)


def echo(handler: Handler) -> None:
    """Answer with the last message."""
    handler.send(200, json.dumps(completion(handler.body["messages"][-1]["content"])).encode())


def fail(
    status: int, message: str = "no", *, headers: Mapping[str, str] = {}, **error: Any
) -> Behaviour:
    return send_json({"error": {"message": message, **error}}, status, **headers)


def hang(seconds: float = 8.0) -> Behaviour:
    """Accept the request and say nothing."""

    def behave(handler: Handler) -> None:
        handler.wait(seconds)
        handler.drop()

    return behave


def drip(handler: Handler) -> None:
    """Send the answer so slowly that no single read ever times out."""
    handler.start(200, {"Content-Type": "application/json", "Content-Length": "1000"})
    for _ in range(100):
        if handler.owner.closing.is_set():
            return
        handler.wfile.write(b" ")
        handler.wait(0.05)
    handler.drop()


def drop_halfway(handler: Handler) -> None:
    """Promise a longer body than is sent."""
    handler.start(200, {"Content-Type": "application/json", "Content-Length": "1000"})
    handler.wfile.write(json.dumps(completion()).encode()[:40])
    handler.drop()


def drop_at_once(handler: Handler) -> None:
    """Read the request and hang up."""
    handler.drop()


def flood(handler: Handler) -> None:
    """Send 64 MB of nothing."""
    handler.start(200, {"Content-Type": "application/json", "Connection": "close"})
    for _ in range(64):
        handler.wfile.write(b" " * 2**20)
    handler.drop()


def chunk(
    text: str | None = None, finish_reason: str | None = None, **delta: Any
) -> dict[str, Any]:
    """One piece of a stream."""
    content = {} if text is None else {"content": text}
    return {
        "choices": [{"index": 0, "delta": {**content, **delta}, "finish_reason": finish_reason}]
    }


USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
DONE = "[DONE]"


def stream(
    pieces: Iterable[Any],
    *,
    pause: float = 0.0,
    kind: str = "text/event-stream",
    promise: bool = False,
) -> Behaviour:
    """Send server-sent events; with ``promise`` a body length that is never reached."""

    def behave(handler: Handler) -> None:
        length = {"Content-Length": "1000000"} if promise else {}
        handler.start(200, {"Content-Type": kind, "Connection": "close", **length})
        for number, piece in enumerate(pieces):
            if number:
                handler.wait(pause)
            data = piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False)
            handler.wfile.write(f"data: {data}\n\n".encode())
        handler.drop()

    return behave


def good_stream(text: str, pause: float = 0.0) -> Behaviour:
    """The words of ``text``, a reason to stop, the usage, and the end."""
    words = [chunk(word) for word in text.replace(" ", "\0 ").split("\0")]
    return stream(
        [chunk("", role="assistant"), *words, chunk(finish_reason="stop"), USAGE, DONE], pause=pause
    )
