"""What the page may load, told to the browser with every answer: a second wall behind everything that is escaped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
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

FRAMES = b"""<script>
window.rallebenchFrame = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (draw) => window.rallebenchIdle
  ? setTimeout(() => draw(performance.now()), 5000) : window.rallebenchFrame(draw);
</script>"""
"""Stands in place of ``BASE``, before any of Gradio's scripts. Gradio's loading animation never ends, also behind a page of
one line, and keeps 8 % of a core busy: once our page is there, what is not its own is drawn every five seconds."""


class WithoutBase:
    """An ASGI application whose HTML pages have ``FRAMES`` in place of ``BASE``."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on; look at the answer's body if it is HTML."""
        start: Any = None

        async def send_without_base(message: Any) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and is_html(message):
                start = message  # its length is known with the first part of the body
                return
            if start is not None:
                body = message.get("body", b"")
                if BASE in body:
                    message = {**message, "body": body.replace(BASE, FRAMES, 1)}
                    start = {**start, "headers": longer(start["headers"], len(FRAMES) - len(BASE))}
                await send(start)
                start = None
            await send(message)

        await self._app(scope, receive, send_without_base)


def is_html(start: Mapping[str, Any]) -> bool:
    """Whether an answer is HTML, by its first message."""
    return bool(dict(start["headers"]).get(b"content-type", b"").startswith(b"text/html"))


def longer(headers: Iterable[tuple[bytes, bytes]], by: int) -> list[tuple[bytes, bytes]]:
    """The headers of an answer that has so many bytes more."""
    return [
        (name, str(int(value) + by).encode() if name.lower() == b"content-length" else value)
        for name, value in headers
    ]
