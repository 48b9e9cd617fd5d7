"""The HTTP envelope: only well-formed messages of the page's script and calls of the endpoints reach Gradio;
anything else gets a 4xx.

Messages refused by a handler get a 400 as well (``app.refuse_problem``). Gradio's script drops the body of a 4xx
response. ``script/refusals.js`` forwards the sentence in it, so the page can show it, and programs get the status.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from rallebench.core.errors import ReadOnlyError, UsageError
from rallebench.core.numbers import plural
from rallebench.gui import messages
from rallebench.gui.login_guard import answer

log = logging.getLogger(__name__)

CALL, UPLOAD = "/gradio_api/component_server", "/gradio_api/upload"
TAKEN_BACK = frozenset({"/gradio_api/cancel"})
QUEUE = frozenset({"/gradio_api/queue/join", *TAKEN_BACK})
"""Addresses by which Gradio's client calls an endpoint and cancels a call."""
RUN = "/gradio_api/run/"
ENDPOINT = ("/gradio_api/call/", RUN)
"""Prefixes of an endpoint's own addresses, for programs without the client: in the queue, or answered at once."""
CHANGING = frozenset({CALL, UPLOAD, "/login", *QUEUE})
"""The addresses that accept input; Gradio's other addresses are not used."""

UNUSED = ("/gradio_api/proxy=", "/monitoring")
"""Prefixes of Gradio's addresses that the page does not use and that crash on unusual paths."""
LONGEST_NAME = 255
"""Maximum bytes of a path segment; no file system has longer names."""

MOST_BYTES = 4 * 2**20
"""Maximum bytes of a message: twice the longest text in its schema."""
DRAINED = 64 * 2**20
"""Maximum bytes of an overlong message to read and discard, so that the sender receives the refusal."""

FUNCTIONS: Mapping[str, type[messages.PageMessage]] = {
    "act": messages.ActMessage,
    "stop": messages.StopMessage,
    "list_rows": messages.RowsMessage,
    "more": messages.MoreMessage,
    "jobs": messages.PageMessage,
}
"""Server function → schema of its message."""


SessionHash = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,100}\z")]


class Envelope(BaseModel):
    """A call of a server function, as sent by Gradio's script."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    session_hash: SessionHash
    component_id: int
    fn_name: Annotated[str, StringConstraints(max_length=100)]
    data: Any


class EndpointCall(BaseModel):
    """A call of an endpoint at its own address; Gradio's client adds fields that only Gradio reads."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    data: Annotated[list[Any], Field(max_length=100)]


class DirectCall(EndpointCall):
    """A call of an endpoint that is answered at once: its arguments alone."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class QueuedCall(BaseModel):
    """A call in Gradio's queue, or its cancellation. ``fn_index``: the number of the endpoint."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    session_hash: SessionHash
    fn_index: int


Message = TypeVar("Message", bound=BaseModel)


class RefusedRequest(Exception):
    """A request to refuse with a status and one sentence."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


class EnvelopeGuard:
    """ASGI middleware that refuses malformed messages, malformed uploads, and addresses that the page does not use.

    ``takes_files``: permit uploads.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], *, takes_files: bool = True) -> None:
        self._app, self._takes_files = app, takes_files

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse the request or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].rstrip("/")
        is_reading = scope["method"] in ("GET", "HEAD", "OPTIONS")
        try:
            calls_endpoint = path in QUEUE or path.startswith(ENDPOINT)
            if not (is_readable(path) if is_reading else path in CHANGING or calls_endpoint):
                raise RefusedRequest(404, "The page has no such address.")
            if is_reading:
                await self._app(scope, receive, send)
            elif path == CALL and scope["method"] == "POST":
                body = await read_body(scope, receive)
                check_call(body, components(scope))
                await self._app(scope, repeating(body, receive), send)
            elif calls_endpoint:
                body = await read_body(scope, receive)
                check_endpoint(path, body, endpoints(scope))
                await self._app(scope, repeating(body, receive), send)
            elif path == UPLOAD:
                await self._upload(scope, receive, send)
            else:
                await self._app(scope, receive, send)
        except RefusedRequest as refusal:
            await answer(send, refusal.status, refusal.words)

    async def _upload(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass an upload on. Raises RefusedRequest if Gradio could not read it, or the page takes no files."""
        if not self._takes_files:
            raise RefusedRequest(403, str(ReadOnlyError()))
        is_answered = False

        async def noting(message: Any) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except OSError as error:
            if is_answered:
                raise
            log.warning("An upload could not be stored.", exc_info=error)
            reason = error.strerror or type(error).__name__
            raise RefusedRequest(507, f"The files could not be stored ({reason}).") from None
        except Exception as error:
            if is_answered:
                raise
            log.debug("An upload could not be read.", exc_info=error)
            raise RefusedRequest(400, "The upload is not a form with named files.") from None


def is_readable(path: str) -> bool:
    """Return whether an address can belong to a resource of the page."""
    names = path.encode("utf-8", "replace").split(b"/")
    return not path.startswith(UNUSED) and all(len(name) <= LONGEST_NAME for name in names)


async def read_body(scope: Any, receive: Any) -> bytes:
    """Read the JSON body of a message. Raises RefusedRequest."""
    fields = dict(scope["headers"])
    kind = fields.get(b"content-type", b"").partition(b";")[0].strip().lower()
    body, length, more = bytearray(), 0, True
    while more:
        part = await receive()
        if part["type"] == "http.disconnect":
            raise RefusedRequest(400, "The message ended early.")
        length += len(part.get("body", b""))
        if length <= MOST_BYTES:
            body += part.get("body", b"")
        more = part.get("more_body", False) and length <= DRAINED
    if kind != b"application/json":
        raise RefusedRequest(415, "A message is JSON; send it as application/json.")
    if length > MOST_BYTES:
        raise RefusedRequest(413, f"A message has at most {MOST_BYTES // 2**20} MiB.")
    return bytes(body)


def repeating(body: bytes, receive: Any) -> Callable[[], Awaitable[Any]]:
    """Return a ``receive`` that replays an already read body."""
    is_first = True

    async def receive_again() -> Any:
        nonlocal is_first
        if is_first:
            is_first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return receive_again


def gradio_app(scope: Any) -> Any:
    """Return the ``gr.Blocks`` addressed by a request."""
    return scope["app"].get_blocks()


def components(scope: Any) -> frozenset[int]:
    """Return the numbers of the page's components."""
    return frozenset(gradio_app(scope).blocks)


def check_call(body: bytes, known: frozenset[int]) -> None:
    """Raise RefusedRequest unless the body is a message of the page's script to a function of a known component."""
    envelope = read_message(Envelope, body)
    if envelope.component_id not in known:
        raise RefusedRequest(404, f"There is no component {str(envelope.component_id)[:60]}.")
    if envelope.fn_name not in FUNCTIONS:
        raise RefusedRequest(404, f"There is no function {envelope.fn_name[:60]!r}.")
    try:
        messages.read(FUNCTIONS[envelope.fn_name], envelope.data)
    except UsageError as error:
        raise RefusedRequest(422, str(error)) from None


@dataclass(frozen=True, slots=True)
class EndpointShape:
    """Name and number of arguments of an endpoint."""

    name: str
    arguments: int


def endpoints(scope: Any) -> Mapping[int, EndpointShape]:
    """Return number → endpoint."""
    functions = gradio_app(scope).fns
    return {
        number: EndpointShape(f.api_name, len(f.inputs))
        for number, f in functions.items()
        if isinstance(f.api_name, str)
    }


def check_endpoint(path: str, body: bytes, known: Mapping[int, EndpointShape]) -> None:
    """Raise RefusedRequest unless the body is a call of a known endpoint."""
    if path.startswith(ENDPOINT):
        name = path.rpartition("/")[2]
        endpoint = next(
            (e for e in known.values() if path in (f"{p}{e.name}" for p in ENDPOINT)), None
        )
    else:
        name = str(read_message(QueuedCall, body).fn_index)
        endpoint = known.get(int(name))
    if endpoint is None:
        raise RefusedRequest(404, f"There is no endpoint {name[:60]!r}.")
    if path in TAKEN_BACK:
        return
    shape: type[EndpointCall] = DirectCall if path.startswith(RUN) else EndpointCall
    count = len(read_message(shape, body).data)
    if count != endpoint.arguments:
        words = plural(endpoint.arguments, "argument")
        raise RefusedRequest(
            422, f"The endpoint {endpoint.name} takes {words} in data, not {count}."
        )


def read_message(shape: type[Message], body: bytes) -> Message:
    """Parse a message of this shape. Raises RefusedRequest that names the first wrong field."""
    try:
        return shape.model_validate(read_json(body))
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in wrong["loc"])[:80] or "the whole"
        raise RefusedRequest(422, f"The call is wrong at {place} ({wrong['msg']}).") from None


def read_json(body: bytes) -> Any:
    """Parse a JSON message. Raises RefusedRequest."""
    try:
        return json.loads(body.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise RefusedRequest(400, "The message is not valid JSON, or nested too deeply.") from None


def _refuse(constant: str) -> None:
    """Refuse NaN and infinite numbers, which JSON does not allow."""
    raise ValueError(f"{constant} is not valid JSON")
