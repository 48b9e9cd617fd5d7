"""The login of the page: addresses that are open without it, and a limit on failed attempts."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any

OPEN_PATHS = frozenset({"/", "/login", "/theme.css", "/favicon.ico", "/gradio_api/startup-events"})
OPEN_FOLDERS = ("/assets/", "/static/", "/vendor/")
"""Everything that is open without a login. This is the login page (Gradio's page without its contents) with its
scripts, styles and images, and the address that Gradio requests to check that its server is running.
"""

TRIES, LOCKED = 5, 60.0
"""Failed attempts in a row before an address is locked, and seconds for which it is locked."""
SLOWEST = 4.0
"""Maximum delay in seconds of the response to a wrong password. The first delay is 0.25 s, and each later one is
twice as long.
"""
ADDRESSES = 10_000
"""Addresses to remember; beyond that, the one with the oldest attempt is forgotten."""


class Credentials:
    """The only user and password. Both are always compared, by digests of equal length, so that timing reveals
    nothing.
    """

    def __init__(self, user: str, password: str) -> None:
        self._key = secrets.token_bytes(32)
        self._user, self._password = self._digest(user), self._digest(password)

    def __call__(self, user: str, password: str) -> bool:
        """Return whether both user and password are right."""
        is_user = hmac.compare_digest(self._digest(user), self._user)
        is_password = hmac.compare_digest(self._digest(password), self._password)
        return is_user and is_password

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")


@dataclass
class Tries:
    """The failed or pending attempts of an address, the time of the latest, and the end of its lock."""

    count: int = 0
    last: float = 0.0
    until: float = 0.0


class Throttle:
    """Failed logins per address. An attempt counts from its start, so parallel attempts cannot evade the limit."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tries: OrderedDict[str, Tries] = OrderedDict()

    def begin(self, address: str) -> float:
        """Count an attempt. Return the remaining seconds of the address's lock, or 0 if the attempt is allowed."""
        now, tries = self._clock(), self._tries.setdefault(network(address), Tries())
        self._tries.move_to_end(network(address))
        while len(self._tries) > ADDRESSES:
            self._tries.popitem(last=False)
        if now < tries.until:
            return tries.until - now
        if tries.until or now - tries.last > LOCKED:
            tries.count, tries.until = 0, 0.0
        if tries.count >= TRIES:  # pending attempts have reached the limit
            return LOCKED
        tries.count, tries.last = tries.count + 1, now
        return 0.0

    def end(self, address: str, *, right: bool) -> float:
        """Record the result of an attempt. Return the seconds by which to delay the response."""
        tries = self._tries.get(network(address), Tries())
        if right:
            self._tries.pop(network(address), None)
            return 0.0
        if tries.count >= TRIES:
            tries.until = self._clock() + LOCKED
        return min(SLOWEST, 0.125 * 2.0**tries.count)


def network(address: str) -> str:
    """Return the network that identifies a visitor: an IPv6 visitor owns a whole /64.

    >>> network("192.0.2.7"), network("2001:db8::1:2"), network("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.IPv6Network((parsed, 64), strict=False))
    return str(parsed)


class LoginGuard:
    """ASGI middleware: without a login, only ``OPEN_PATHS`` and ``OPEN_FOLDERS`` respond, and failed logins are
    slowed down.

    The address is taken from the connection. A proxy's header is trusted only if the server's FORWARDED_ALLOW_IPS
    names the proxy.
    """

    def __init__(
        self,
        app: Callable[..., Awaitable[None]],
        throttle: Throttle | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._app, self._sleep = app, sleep
        self._throttle = throttle or Throttle()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse the request or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket" and not is_known(scope):
            await send({"type": "websocket.close", "code": 1008, "reason": "Log in first."})
        elif scope["type"] == "http" and scope["path"].rstrip("/") == "/login":
            await self._log_in(scope, receive, send)
        elif scope["type"] == "http" and not is_open(scope) and not is_known(scope):
            await answer(send, 401, "This page needs a login; open its address in a browser.")
        else:
            await self._app(scope, receive, send)

    async def _log_in(self, scope: Any, receive: Any, send: Any) -> None:
        address = (scope.get("client") or ("", 0))[0]
        locked = self._throttle.begin(address)
        if locked:
            seconds = max(1, round(locked))
            words = f"Too many wrong passwords from this address; try again in {seconds} s."
            await answer(send, 429, words, [(b"retry-after", str(seconds).encode())])
            return
        is_answered = False

        async def send_late(message: Any) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.start":
                is_answered = True
                await self._sleep(self._throttle.end(address, right=message["status"] < 400))
            await send(message)

        try:
            await self._app(scope, receive, send_late)
        finally:
            if not is_answered:
                self._throttle.end(address, right=False)


def is_open(scope: Any) -> bool:
    """Return whether a request needs no login."""
    reads = scope["method"] in ("GET", "HEAD")
    path = scope["path"]
    return reads and (path in OPEN_PATHS or path.startswith(OPEN_FOLDERS))


def is_known(scope: Any) -> bool:
    """Return whether a request has a login cookie that Gradio knows."""
    app = scope.get("app")
    tokens, name = getattr(app, "tokens", {}), getattr(app, "cookie_id", "")
    for header, value in scope["headers"]:
        if header == b"cookie":
            try:
                cookies = SimpleCookie(value.decode("latin-1"))
            except CookieError:
                continue
            sent = (cookies.get(f"access-token-{kind}{name}") for kind in ("", "unsecure-"))
            if any(cookie is not None and cookie.value in tokens for cookie in sent):
                return True
    return False


async def answer(
    send: Any, status: int, words: str, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send one sentence as JSON."""
    body = json.dumps({"detail": {"error": words, "auth_message": words}}).encode()
    fields = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": [*fields, *(headers or [])],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})
