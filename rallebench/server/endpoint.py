"""Serve a chain through an OpenAI-compatible endpoint, so that other programs can use it like a model.

``GET /v1/models`` and ``/v1/models/ID``, ``POST /v1/chat/completions`` (whole or streamed), ``GET /health``. The last
user message is the question, and the earlier messages are the history. System messages are ignored, because the chain
has its own prompts. A follow-up question is rewritten to stand alone, as in Chat. Under ``rallebench``, an answer
includes its sources, the search queries, and the passage that supports each sentence. ``completion_request`` lists
the supported fields; ``answering`` limits the number of requests.
"""

from __future__ import annotations

import json
import math
import socket
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from rallebench.core.errors import BusyError, RalleError, StoppedError
from rallebench.core.hosts import LOOPBACK, Access, HostGuard, HostRefusal
from rallebench.core.listening import WRONG_KEY, has_key, key_for, serve_until_interrupted
from rallebench.core.types import Chain, Episode, Generate
from rallebench.server.answering import RETRY_SECONDS, ChainQueue
from rallebench.server.completion_request import (
    CompletionRequest,
    RequestError,
    no_such_model,
    parse_body,
    read_request,
)
from rallebench.services.asking import Asking
from rallebench.services.conversations import Turn
from rallebench.views.answers import hit_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MAX_BODY_BYTES = 4 * 2**20
CLIENT_CLOSED = 499
"""Status if the client disconnects before the answer; visible only in a proxy's log."""

FINISH_REASONS: Mapping[str, str] = {
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "max_length": "length",
    "safety": "content_filter",
}
"""Other servers' finish reasons → OpenAI's."""


def answer(asking: Asking, request: CompletionRequest) -> Generator[str | Turn, None, None]:
    """Yield pieces of the answer as they are written, then the turn, whose answer is all pieces joined."""
    chain = request.chain
    turn = Turn(chain, request.question, request.history)
    running = asking.chat(chain, request.history, request.question)
    try:
        with closing(running) as events:  # type: ignore[type-var]
            for event in events:
                piece = turn.take(event)
                if piece and not turn.error:
                    yield piece
                if turn.episode is not None:
                    turn.copies = bool(chain.llms) and asking.copies(chain.llms[-1])
                    yield turn
    except StoppedError:
        raise
    except RalleError as error:  # the models could not be leased
        turn.error, turn.cause = str(error), error
        yield turn


def refusal(turn: Turn | None) -> RequestError:
    """Return the error of a turn without an answer: 429 if a model of the chain is busy, otherwise 500."""
    message = turn.error if turn else "The chain gave no answer."
    if turn is None or not isinstance(turn.cause, BusyError):
        return RequestError(500, message, "server_error")
    seconds = math.ceil(turn.cause.pause or RETRY_SECONDS)
    headers = {"Retry-After": str(max(1, seconds))}
    return RequestError(
        429, message, "rate_limit_error", code="rate_limit_exceeded", headers=headers
    )


def usage(episode: Episode) -> dict[str, int]:
    """Return the total tokens of all steps."""
    read = sum(step.reply.prompt_tokens for step in episode.steps)
    written = sum(step.reply.completion_tokens for step in episode.steps)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def sources(turn: Turn, episode: Episode) -> dict[str, Any]:
    """Return the retrieved passages (each once, best first), the search queries, and the supporting passage of each
    sentence.
    """
    hits = {hit.passage.doc_id: hit for hit in episode.hits}
    supports = [
        {
            "sentence": sentence.text.strip(),
            "doc_id": turn.sources[citation.number - 1].passage.doc_id,
            "support": citation.how,
            "place": citation.place,
        }
        for sentence in turn.cited_sentences
        for citation in sentence.citations
    ]
    listed = [hit_json(hit) for hit in hits.values()]
    return {"sources": listed, "searched_for": turn.standalone, "citations": supports}


def finish_reason(turn: Turn) -> str:
    """Return the finish reason of the answering model, translated to OpenAI's words if possible."""
    replies = [step.reply for step in turn.steps if isinstance(step.request, Generate)]
    reason = replies[-1].finish_reason if replies else "stop"
    return FINISH_REASONS.get(reason.lower(), reason)


def whole(name: str, turn: Turn, episode: Episode) -> dict[str, Any]:
    """Return a chat completion."""
    message = {"role": "assistant", "content": episode.answer}
    choice = {"index": 0, "message": message, "logprobs": None}
    return {
        **_head(name, "chat.completion"),
        "choices": [{**choice, "finish_reason": finish_reason(turn)}],
        "usage": usage(episode),
        "rallebench": sources(turn, episode),
    }


def stream(
    request: CompletionRequest, pieces: Generator[str | Turn, None, None]
) -> Generator[str, None, None]:
    """Yield the server-sent events of a chat completion. An error midway is sent as an event too.

    Raises RequestError if a model is busy before writing anything, so that the client gets that status.
    """
    head = _head(request.name, "chat.completion.chunk")
    if request.include_usage:
        head["usage"] = None

    def event(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return f"data: {_json_text({**head, 'choices': [choice], **more})}\n\n"

    with closing(pieces):
        for number, piece in enumerate(pieces):
            if number == 0:
                if isinstance(piece, Turn) and isinstance(piece.cause, BusyError):
                    raise refusal(piece)
                yield event({"role": "assistant", "content": ""})
            if isinstance(piece, str):
                yield event({"content": piece})
            elif piece.error or piece.episode is None:
                yield f"data: {_json_text(refusal(piece).body())}\n\n"
            else:
                yield event({}, finish_reason(piece), rallebench=sources(piece, piece.episode))
                if request.include_usage:
                    last = {**head, "choices": [], "usage": usage(piece.episode)}
                    yield f"data: {_json_text(last)}\n\n"
    yield "data: [DONE]\n\n"


def _json_text(value: Any) -> str:
    """Return JSON that UTF-8 can encode: half of a surrogate pair, which some models write, stays escaped."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode("utf-8")


def _head(name: str, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": name,
    }


class _Routes:
    """Handlers of the routes. ``key``: see ``application``."""

    def __init__(self, asking: Asking, names: Mapping[str, Chain], key: str) -> None:
        self._asking, self._names, self._key = asking, names, key
        self._queues = {name: ChainQueue(name) for name in names}

    def _check_key(self, request: Request) -> None:
        if not has_key(request.headers.get("authorization", ""), self._key):
            raise RequestError(401, WRONG_KEY, "authentication_error")

    def close(self) -> None:
        """Stop all answers."""
        for queue in self._queues.values():
            queue.close()

    async def health(self, request: Request) -> Response:
        """Handle ``GET /health``, which needs no key."""
        return _json_response({"status": "ok"})

    async def models(self, request: Request) -> Response:
        """Handle ``GET /v1/models``."""
        self._check_key(request)
        return _json_response({"object": "list", "data": [_model(name) for name in self._names]})

    async def model(self, request: Request) -> Response:
        """Handle ``GET /v1/models/ID``."""
        self._check_key(request)
        name = request.path_params["name"]
        if name not in self._names:
            raise no_such_model(name, self._names)
        return _json_response(_model(name))

    async def completions(self, request: Request) -> Any:
        """Handle ``POST /v1/chat/completions``: return the whole answer, or an ASGI application that streams it."""
        self._check_key(request)
        completion = read_request(parse_body(await _body(request)), self._names)
        queue = self._queues[completion.name]

        def pieces() -> Generator[str | Turn, None, None]:
            return answer(self._asking, completion)

        if completion.stream:
            return _EventStream(queue, lambda: stream(completion, pieces()))
        turn: Turn | None = None

        async def keep(piece: str | Turn) -> None:
            nonlocal turn
            turn = piece if isinstance(piece, Turn) else None

        await queue.answer(request.receive, pieces, keep)
        if turn is None or turn.error or turn.episode is None:
            raise refusal(turn)
        return _json_response(whole(completion.name, turn, turn.episode))


class _EventStream:
    """An ASGI application that streams server-sent events. The response starts with the first event."""

    def __init__(self, queue: ChainQueue, write: Callable[[], Generator[str, None, None]]) -> None:
        self._queue, self._write = queue, write

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import ClientDisconnect

        begun = False

        async def take(text: str) -> None:
            nonlocal begun
            if not begun:
                headers = [
                    (b"content-type", b"text/event-stream; charset=utf-8"),
                    (b"cache-control", b"no-cache"),
                ]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                begun = True
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})

        try:
            await self._queue.answer(receive, self._write, take)
        except (ClientDisconnect, RequestError) as error:
            if not begun:
                raise
            if isinstance(error, RequestError):
                await take(f"data: {_json_text(error.body())}\n\n")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "rallebench"}


def _json_response(value: Any, status: int = 200, headers: Any = None) -> Response:
    from starlette.responses import Response

    return Response(_json_text(value), status, headers, "application/json")


async def _request_error(request: Request, error: Any) -> Response:
    return _json_response(error.body(), error.status, error.headers)


async def _fault(request: Request, error: Exception) -> Response:
    """Respond to a bug; its traceback is printed in the server's terminal."""
    message = f"Internal error, please report it: {type(error).__name__}."
    return _json_response(RequestError(500, message, "server_error").body(), 500)


async def _not_served(request: Request, error: Any) -> Response:
    """Respond in JSON to an unknown path or method, as OpenAI's clients expect."""
    message = f"{request.method} {request.url.path} is not served; POST /v1/chat/completions or GET /v1/models."
    body = RequestError(error.status_code, message).body()
    return _json_response(body, error.status_code, error.headers)


async def _client_closed(request: Request, error: Any) -> Response:
    """Respond to a client that disconnected while sending or waiting; the response is never read."""
    from starlette.responses import Response

    return Response(status_code=CLIENT_CLOSED)


def application(
    asking: Asking, names: Mapping[str, Chain], key: str = "", access: Access = LOOPBACK
) -> Any:
    """Return the ASGI application; its ``state.stop_answers()`` stops all answers.

    ``key``: the bearer token that requests must send; '' allows requests without one.

    If a client disconnects, its answer stops and nothing more is generated.
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import ClientDisconnect
    from starlette.routing import Route

    routes = _Routes(asking, names, key)
    served = Starlette(
        routes=[
            Route("/health", routes.health),
            Route("/v1/models", routes.models),
            Route("/v1/models/{name:path}", routes.model),
            Route("/v1/chat/completions", routes.completions, methods=["POST"]),
        ],
        exception_handlers={
            RequestError: _request_error,
            HTTPException: _not_served,
            ClientDisconnect: _client_closed,
            Exception: _fault,
        },
        middleware=[Middleware(HostGuard, access=access, refused=_refused_host)],
    )
    served.state.stop_answers = routes.close
    return served


def _refused_host(refusal: HostRefusal) -> tuple[str, bytes]:
    """Return a refused Host or Origin header as an error in OpenAI's format."""
    body = RequestError(refusal.status, refusal.message).body()
    return "application/json", _json_text(body).encode()


async def _body(request: Request) -> bytes:
    # Browsers let other sites' pages send text/plain without a preflight request, but not JSON.
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise RequestError(415, "Send JSON with the header Content-Type: application/json.")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise RequestError(413, f"The request is longer than {MAX_BODY_BYTES // 2**20} MB.")
    return bytes(body)


def serve(
    asking: Asking,
    names: Mapping[str, Chain],
    host: str,
    listening: socket.socket,
    access: Access = LOOPBACK,
) -> None:
    """Serve on a socket until interrupted, then close it. Raises UsageError if ``host`` needs a key."""
    app = application(asking, names, key_for(host), access)
    serve_until_interrupted(app, listening, app.state.stop_answers)
