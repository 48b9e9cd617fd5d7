"""The socket of a server, the key that its clients must send, and its life until it is interrupted."""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.hosts import is_loopback

KEY_VARIABLE = "RALLEBENCH_API_KEY"
WRONG_KEY = f"The key is wrong; send the one of {KEY_VARIABLE} as a bearer token."
GRACE_SECONDS = 5
"""Seconds granted to running answers when a server is interrupted."""


def key_for(host: str) -> str:
    """Return the key from the environment. Raises UsageError if other machines could send requests without one."""
    key = os.environ.get(KEY_VARIABLE, "")
    if not key and not is_loopback(host):
        raise UsageError(
            f"Binding {host} lets others ask: set {KEY_VARIABLE} to a key that they must send, or bind 127.0.0.1."
        )
    return key


def listening_on(host: str, port: int) -> socket.socket:
    """Return the listening socket. It is opened before loading, so that a port in use is reported at once. Raises
    UsageError.
    """
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


def has_key(authorization: str, key: str) -> bool:
    """Return whether an ``Authorization`` header carries the key; without a key, everyone does.

    >>> has_key("Bearer secret", "secret"), has_key("Bearer other", "secret"), has_key("", "")
    (True, False, True)
    """
    token = authorization.removeprefix("Bearer ").strip()
    return not key or hmac.compare_digest(token.encode(), key.encode())


class KeyGuard:
    """An ASGI application behind a key: a request without it gets a 401. '' lets every request through."""

    def __init__(self, app: Callable[..., Awaitable[None]], key: str) -> None:
        self._app, self._key = app, key

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse the request, or pass it on."""
        from starlette.datastructures import Headers
        from starlette.responses import PlainTextResponse

        app = self._app
        if scope["type"] == "http":
            authorization = Headers(scope=scope).get("authorization", "")
            if not has_key(authorization, self._key):
                app = PlainTextResponse(WRONG_KEY, 401, {"WWW-Authenticate": "Bearer"})
        await app(scope, receive, send)


def serve_until_interrupted(
    app: Callable[..., Awaitable[None]], listening: socket.socket, end_work: Callable[[], object]
) -> None:
    """Serve an ASGI application on a socket, then close it. ``end_work``: called GRACE_SECONDS after the interrupt, to
    end the requests that still run.
    """
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            asyncio.get_running_loop().call_later(GRACE_SECONDS, end_work)
            await super().shutdown(sockets)

    with listening:
        # uvicorn's own logging setup closes other libraries' handlers, together with their streams.
        quiet = uvicorn.Config(app, log_config=None, log_level="warning", access_log=False)
        Server(quiet).run(sockets=[listening])
