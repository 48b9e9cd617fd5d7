"""What the page may load, told to the browser with every answer: a second wall behind everything that is escaped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

CONTENT_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; media-src 'self' data: blob:; worker-src 'self' blob:; "
    "object-src 'none'; frame-src 'none'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'"
)
"""Its own server's files alone. Gradio writes scripts and styles into the page and compiles code from text; plots
and downloads are data: and blob: addresses."""

HEADERS = {"Content-Security-Policy": CONTENT_POLICY}

BASE = b'<base href="./" />'
"""Gradio's template says where relative addresses begin, which is where they begin without it; the policy forbids
such an element, and a browser would report it."""


class WithoutBase:
    """An ASGI application whose HTML pages lose ``BASE``; blanks take its place, so the length stays."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on; look at the answer's body if it is HTML."""
        is_html = False

        async def send_without_base(message: Any) -> None:
            nonlocal is_html
            if message["type"] == "http.response.start":
                is_html = (
                    dict(message["headers"]).get(b"content-type", b"").startswith(b"text/html")
                )
            elif is_html and BASE in message.get("body", b""):
                message = {**message, "body": message["body"].replace(BASE, b" " * len(BASE), 1)}
            await send(message)

        await self._app(scope, receive, send_without_base)
