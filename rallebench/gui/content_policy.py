"""The content security policy of the page: a second layer of protection in addition to escaping."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-eval' {scripts}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; media-src 'self' data: blob:; worker-src 'self' blob:; "
    "object-src 'none'; frame-src 'none'; frame-ancestors {frames}; form-action 'self'; base-uri 'none'"
)
"""Allows only files from its own server; plots and downloads use data: and blob: addresses. Of the scripts inside
the page, only those written by the server into the same response run. Gradio compiles the page's script from text,
hence 'unsafe-eval', and inserts styles into the page.
"""

BASE = b'<base href="./" />'
"""The base of relative addresses in Gradio's template, equal to the default. The policy forbids this element, so a
browser would report a violation.
"""

FRAMES = b"""<script>
window.rallebenchFrame = window.requestAnimationFrame.bind(window);
let inside = false;
window.requestAnimationFrame = (draw) => {
  const run = (time) => { inside = true; try { draw(time); } finally { inside = false; } };
  return window.rallebenchIdle && inside
    ? setTimeout(() => run(performance.now()), 5000) : window.rallebenchFrame(run);
};
</script>"""
"""Replaces ``BASE`` and runs before any of Gradio's scripts.

Gradio's loading animation never ends, not even behind a one-line page, and uses 8 % of a core. Once our page is
loaded, animation frames requested by other code run only every five seconds.
"""

REFUSALS = (
    b"<script>\n%s</script>" % (Path(__file__).parent / "script" / "refusals.js").read_bytes()
)
"""Inserted after ``FRAMES``, also on the login page."""

_SCRIPT = re.compile(rb"<script(?=[\s>])")
"""Start of a script in Gradio's template. Its configuration contains our HTML, but with ``<`` escaped."""

_LOGIN = re.compile(rb"window\.gradio_config = \{\s*.auth_required.\s*:\s*true")
"""The configuration in Gradio's template, if the visitor has to log in."""


class ContentPolicy:
    """ASGI middleware that sends the policy with every response and adds a nonce to the scripts of HTML pages.

    ``frames``: other sites whose pages may show this one in a frame; ``login``: the style sheets of the login page.
    """

    def __init__(
        self, app: Callable[..., Awaitable[None]], frames: Sequence[str] = (), login: str = ""
    ) -> None:
        self._app, self._frames, self._login = app, frames, login.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on, and rewrite the response body if it is HTML."""
        nonce = secrets.token_urlsafe(16)
        start: Any = None

        async def send_with_policy(message: Any) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                message = {
                    **message,
                    "headers": [*message.get("headers", ()), header(nonce, self._frames)],
                }
                if is_html(message):
                    start = message  # the first part of the body changes the length
                    return
            elif start is not None:
                body = message.get("body", b"")
                message = {**message, "body": with_nonces(body, nonce, self._login)}
                by = len(message["body"]) - len(body)
                await send({**start, "headers": longer(start["headers"], by)})
                start = None
            await send(message)

        await self._app(scope, receive, send_with_policy)


def header(nonce: str, frames: Sequence[str] = ()) -> tuple[bytes, bytes]:
    """Return the policy for a response whose scripts have this nonce. ``frames``: sites that may show the page in a
    frame.
    """
    policy = POLICY.format(scripts=f"'nonce-{nonce}'", frames=" ".join(frames) or "'none'")
    return b"content-security-policy", policy.encode()


def with_nonces(body: bytes, nonce: str, login: bytes = b"") -> bytes:
    """Return the first part of Gradio's page with nonces, and with ``FRAMES`` and ``REFUSALS`` in place of ``BASE``.

    ``login``: the style sheets to add if it is the login page.
    """
    added = FRAMES + REFUSALS + (login if _LOGIN.search(body) else b"")
    return _SCRIPT.sub(b'<script nonce="%s"' % nonce.encode(), body.replace(BASE, added, 1))


def is_html(start: Mapping[str, Any]) -> bool:
    """Return whether the first message of a response announces HTML."""
    return bool(dict(start["headers"]).get(b"content-type", b"").startswith(b"text/html"))


def longer(headers: Iterable[tuple[bytes, bytes]], by: int) -> list[tuple[bytes, bytes]]:
    """Return the headers with the content length increased by ``by`` bytes."""
    return [
        (name, str(int(value) + by).encode() if name.lower() == b"content-length" else value)
        for name, value in headers
    ]
