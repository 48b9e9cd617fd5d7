"""A chain as an OpenAI-compatible endpoint: other programs talk to it as to a model.

``GET /v1/models``, ``POST /v1/chat/completions`` (whole or streamed), ``GET /health``. The last user message is
the question, the earlier messages are the history; a system message is not used, since the chain has its own
prompts. A question that leans on the earlier ones is put so that it stands alone, as in Chat. An answer carries its sources,
what was searched for, and the passage that supports each sentence under ``rallebench``.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from rallebench.core.errors import UsageError
from rallebench.core.hosts import LOOPBACK, Access, HostGuard, HostRefusal, is_loopback
from rallebench.core.types import Chain, Episode, Message
from rallebench.services.conversations import Turn
from rallebench.services.steps import hit_to_json
from rallebench.services.workbench import Workbench

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

KEY_VARIABLE = "RALLEBENCH_API_KEY"
MAX_BODY_BYTES = 4 * 2**20
CLIENT_CLOSED = 499
"""The status, in no log but a proxy's, of a request whose client went away before the answer."""

Piece = TypeVar("Piece")
ROLES = frozenset({"user", "assistant", "system", "developer", "tool"})


class RequestError(Exception):
    """A request that is answered with ``status`` and one sentence."""

    def __init__(self, status: int, message: str, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status, self.message, self.kind = status, message, kind

    def body(self) -> dict[str, Any]:
        """The error as OpenAI's clients read it."""
        return {"error": {"message": self.message, "type": self.kind, "param": None, "code": None}}


def read_turn(body: Any, names: Mapping[str, Chain]) -> tuple[str, list[Message], str, bool]:
    """(name of the chain, history, question, whether to stream) of a request's JSON. Raises RequestError."""
    if not isinstance(body, dict):
        raise RequestError(400, "The body must be a JSON object with 'model' and 'messages'.")
    name = body.get("model") or next(iter(names))
    if not isinstance(name, str) or name not in names:
        raise RequestError(
            404, f"There is no chain {name!r} here; served: {', '.join(names)}.", "not_found_error"
        )
    if body.get("n") not in (None, 1):
        raise RequestError(400, "n must be 1: a chain gives one answer.")
    stream = body.get("stream")
    if not isinstance(stream, (bool, type(None))):
        raise RequestError(400, "'stream' must be true or false, without quotes.")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError(400, "'messages' must be a list with at least one user message.")
    turns = [_message(message, number) for number, message in enumerate(messages, 1)]
    spoken = [turn for turn in turns if turn.role in ("user", "assistant")]
    if not spoken or spoken[-1].role != "user" or not spoken[-1].content.strip():
        raise RequestError(400, "The last message must be a user's question.")
    return name, spoken[:-1], spoken[-1].content, bool(stream)


def _message(message: Any, number: int) -> Message:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str) or role not in ROLES:
        raise RequestError(400, f"Message {number} has no known role; give user or assistant.")
    content = message.get("content")
    if isinstance(content, list):
        parts = [
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
            for part in content
        ]
        if not all(isinstance(part, str) for part in parts):
            raise RequestError(
                400, f"Message {number} holds something other than text; a chain reads text only."
            )
        content = "".join(part for part in parts if part)
    if not isinstance(content, (str, type(None))):
        raise RequestError(400, f"Message {number}: 'content' must be text.")
    return Message(str(role), content or "")


def answer(
    workbench: Workbench, chain: Chain, history: list[Message], question: str
) -> Iterator[str | Turn]:
    """Pieces of the answer as they are written, then the turn. The pieces join to its answer."""
    turn = Turn(chain, question, tuple(history))
    with closing(workbench.asking.chat(chain, history, question)) as events:  # type: ignore[type-var]
        for event in events:
            piece = turn.take(event)
            if piece and not turn.error:
                yield piece
            if turn.episode is not None:
                turn.copies = bool(chain.llms) and workbench.asking.copies(chain.llms[-1])
                yield turn


def usage(episode: Episode) -> dict[str, int]:
    """Tokens of all steps."""
    read = sum(step.reply.prompt_tokens for step in episode.steps)
    written = sum(step.reply.completion_tokens for step in episode.steps)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def sources(turn: Turn, episode: Episode) -> dict[str, Any]:
    """The retrieved passages, each once, best first; what was searched for; and which sentence which passage supports."""
    hits = {hit.passage.doc_id: hit for hit in episode.hits}
    supports = [
        {
            "sentence": sentence.text.strip(),
            "doc_id": turn.sources[citation.number - 1].passage.doc_id,
            "support": citation.how,
            "place": citation.place,
        }
        for sentence in turn.cited
        for citation in sentence.citations
    ]
    listed = [hit_to_json(hit) for hit in hits.values()]
    return {"sources": listed, "searched_for": turn.standalone, "citations": supports}


def whole(name: str, turn: Turn, episode: Episode) -> dict[str, Any]:
    """A chat completion."""
    message = {"role": "assistant", "content": episode.answer}
    return {
        **_head(name, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": usage(episode),
        "rallebench": sources(turn, episode),
    }


def streamed(name: str, pieces: Iterator[str | Turn]) -> Iterator[str]:
    """Server-sent events of a chat completion; an error in the middle is one, too."""
    head = _head(name, "chat.completion.chunk")

    def event(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {_json_text({**head, 'choices': [choice], **more})}\n\n"

    with closing(pieces):  # type: ignore[type-var]
        yield event({"role": "assistant", "content": ""})
        for piece in pieces:
            if isinstance(piece, str):
                yield event({"content": piece})
            elif piece.error or piece.episode is None:
                yield f"data: {_json_text(RequestError(500, piece.error, 'server_error').body())}\n\n"
            else:
                more = {"usage": usage(piece.episode), "rallebench": sources(piece, piece.episode)}
                yield event({}, "stop", **more)
    yield "data: [DONE]\n\n"


def _json_text(value: Any) -> str:
    """JSON that UTF-8 can hold: half a surrogate pair, which some models write, stays an escape."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode("utf-8")


def _head(name: str, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": name,
    }


class _Routes:
    """The requests that are served, each by a method. ``key`` as in ``application``."""

    def __init__(self, workbench: Workbench, names: Mapping[str, Chain], key: str) -> None:
        self._workbench, self._names, self._key = workbench, names, key

    def _check_key(self, request: Request) -> None:
        token = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if self._key and not hmac.compare_digest(token.encode(), self._key.encode()):
            raise RequestError(
                401,
                f"The key is wrong; send the one of {KEY_VARIABLE} as a bearer token.",
                "authentication_error",
            )

    async def health(self, request: Request) -> Response:
        """``GET /health``, also without the key."""
        return _json_response({"status": "ok"})

    async def models(self, request: Request) -> Response:
        """``GET /v1/models``."""
        self._check_key(request)
        data = [
            {"id": name, "object": "model", "created": 0, "owned_by": "rallebench"}
            for name in self._names
        ]
        return _json_response({"object": "list", "data": data})

    async def completions(self, request: Request) -> Response:
        """``POST /v1/chat/completions``."""
        from starlette.requests import ClientDisconnect
        from starlette.responses import StreamingResponse

        self._check_key(request)
        name, history, question, stream = read_turn(await _json(request), self._names)
        pieces = answer(self._workbench, self._names[name], history, question)
        if stream:
            return StreamingResponse(
                _while_connected(request, streamed(name, pieces)), media_type="text/event-stream"
            )
        turn = None
        async for piece in _while_connected(request, pieces):
            turn = piece if isinstance(piece, Turn) else None
        if turn is None or turn.episode is None:
            raise ClientDisconnect
        if turn.error:
            raise RequestError(500, turn.error, "server_error")
        return _json_response(whole(name, turn, turn.episode))


def _json_response(value: Any, status: int = 200, headers: Any = None) -> Response:
    from starlette.responses import Response

    return Response(_json_text(value), status, headers, "application/json")


async def _request_error(request: Request, error: Any) -> Response:
    return _json_response(error.body(), error.status)


async def _not_served(request: Request, error: Any) -> Response:
    """A path or a method that is not served: OpenAI's clients read JSON here, too."""
    message = f"{request.method} {request.url.path} is not served; POST /v1/chat/completions or GET /v1/models."
    body = RequestError(error.status_code, message).body()
    return _json_response(body, error.status_code, error.headers)


async def _client_closed(request: Request, error: Any) -> Response:
    """The client went away while it sent its request or waited: no client reads this."""
    from starlette.responses import Response

    return Response(status_code=CLIENT_CLOSED)


def application(
    workbench: Workbench, names: Mapping[str, Chain], key: str = "", access: Access = LOOPBACK
) -> Any:
    """The ASGI application. ``key``: what the Authorization header must bear, '' = anyone may ask.

    A client that goes away ends its answer: no further piece of it is generated.
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import ClientDisconnect
    from starlette.routing import Route

    routes = _Routes(workbench, names, key)
    return Starlette(
        routes=[
            Route("/health", routes.health),
            Route("/v1/models", routes.models),
            Route("/v1/chat/completions", routes.completions, methods=["POST"]),
        ],
        exception_handlers={
            RequestError: _request_error,
            HTTPException: _not_served,
            ClientDisconnect: _client_closed,
        },
        middleware=[Middleware(HostGuard, access=access, refused=_refused_host)],
    )


def _refused_host(refusal: HostRefusal) -> tuple[str, bytes]:
    """A refusal of the Host or Origin, as OpenAI's clients read it."""
    body = RequestError(refusal.status, refusal.message).body()
    return "application/json", _json_text(body).encode()


async def _while_connected(request: Request, pieces: Iterator[Piece]) -> AsyncIterator[Piece]:
    """The pieces, each made in a thread, until the client goes away; the iterator is closed in any case."""
    import anyio
    from starlette.concurrency import run_in_threadpool

    try:
        while not await request.is_disconnected():
            piece = await run_in_threadpool(next, pieces, None)
            if piece is None:
                break
            yield piece
    finally:
        with anyio.CancelScope(shield=True):
            await run_in_threadpool(pieces.close)  # type: ignore[attr-defined]


async def _json(request: Request) -> Any:
    # A page of another site may send text/plain without asking the browser's leave, JSON it may not.
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise RequestError(415, "Send JSON with the header Content-Type: application/json.")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise RequestError(413, f"The request is longer than {MAX_BODY_BYTES // 2**20} MB.")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise RequestError(400, "The body is no valid JSON.") from None


def key_for(host: str) -> str:
    """The key of the environment. Raises UsageError where others could ask without one."""
    key = os.environ.get(KEY_VARIABLE, "")
    if not key and not is_loopback(host):
        raise UsageError(
            f"Binding {host} lets others ask: set {KEY_VARIABLE} to a key that they must send, or bind 127.0.0.1."
        )
    return key


def listening_on(host: str, port: int) -> socket.socket:
    """The socket to answer at; before anything is loaded, so that a taken port costs no time. Raises UsageError."""
    key_for(host)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host.strip("[]"), port), family=family)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        reason = (
            os.strerror(number)
            if number and number > 0 and not isinstance(error, socket.gaierror)
            else str(error)
        )
        raise UsageError(
            f"{host}:{port} cannot be listened on ({reason}); choose another port or host."
        ) from None


def serve(
    workbench: Workbench,
    names: Mapping[str, Chain],
    host: str,
    listening: socket.socket,
    access: Access = LOOPBACK,
) -> None:
    """Answer at a socket until interrupted; it is closed then. Raises UsageError where ``host`` needs a key."""
    import uvicorn

    key = key_for(host)
    with listening:
        app = application(workbench, names, key, access)
        # uvicorn's own logging set-up closes the handlers of other libraries, and with them what they write to.
        quiet = uvicorn.Config(app, log_config=None, log_level="warning", access_log=False)
        uvicorn.Server(quiet).run(sockets=[listening])
