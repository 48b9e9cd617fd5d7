"""The connections to one server: bounds its answers, and names what breaks.

``httpcore2`` keeps the connections and speaks HTTP. What a general client adds to that (cookies, redirects,
models of every field) is not wanted here, and costs more of the processor than all the rest of a request.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from rallebench.core.errors import MissingPackageError, UsageError
from rallebench.http import Endpoint
from rallebench.http.account import account_headers
from rallebench.http.addresses import is_loopback, no_address
from rallebench.http.deadline import Lines, Until
from rallebench.http.failures import (
    DROPPED,
    NOT_OPENAI,
    Failure,
    Refusal,
    short,
    timed_out,
    unloaded,
)

CONNECT_SECONDS = 10.0
MAX_BODY_BYTES = 32 * 2**20
MAX_ERROR_BYTES = 2**16
DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
IDLE_SECONDS = 30.0
"""A connection that nobody used for so long is closed."""


class Answer:
    """A response on its way: its ``headers`` (names in lower case) are there, its body comes.

    ``until`` says when it is due as a whole; whoever reads a stream moves that on.
    """

    def __init__(self, response: Any, until: Until) -> None:
        self.status = int(response.status)
        self.headers: Mapping[str, str] = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in response.headers
        }
        self.until = until
        self._response = response
        self.pieces = self._bounded()
        """The body as it comes; raises Failure for more than ``MAX_BODY_BYTES``."""

    def _bounded(self) -> Iterator[bytes]:
        size = 0
        for piece in self._response.iter_stream():
            size += len(piece)
            if size > MAX_BODY_BYTES:
                raise Failure(f"answered with more than {MAX_BODY_BYTES // 2**20} MB", NOT_OPENAI)
            yield piece

    def read(self) -> bytes:
        """The whole body."""
        return b"".join(self.pieces)

    def beginning(self) -> bytes:
        """The first bytes of a body that only says what is wrong."""
        start = b""
        for piece in self._response.iter_stream():
            start += piece
            if len(start) >= MAX_ERROR_BYTES:
                break
        return start[:MAX_ERROR_BYTES]


class Connection:
    """Keep-alive connections to one server. Thread-safe. ``closed`` is set by ``close``.

    ``lost`` are the exceptions of a connection that breaks while an answer is read.
    """

    def __init__(self, name: str, settings: Endpoint, key: str) -> None:
        try:
            import httpcore2
        except ImportError:
            raise MissingPackageError("httpcore2", f"and {name!r} needs it") from None
        self.closed = threading.Event()
        self._name, self._settings, self._key = name, settings, key
        self._reached = False
        self._library = httpcore2
        self._late = httpcore2.TimeoutException
        self.lost: tuple[type[Exception], ...] = (
            httpcore2.TimeoutException,
            httpcore2.NetworkError,
            httpcore2.ProtocolError,
            httpcore2.ProxyError,
            OSError,
        )
        self._lines = Lines(httpcore2.SyncBackend(), httpcore2.ReadTimeout, httpcore2.NetworkError)
        try:
            self._scheme, self._host, self._port, self._path, shown = _parts(settings.base_url)
        except (ValueError, UnicodeError):
            raise no_address(name) from None
        self._headers = [(b"Host", shown), *_headers(settings, key)]
        self._pool = _pool(httpcore2, settings.base_url, self._lines)

    def close(self) -> None:
        """Break the connections, so that nobody waits for an answer any more."""
        self.closed.set()
        self._lines.hang_up()
        with contextlib.suppress(Exception):  # what was broken off may complain
            self._pool.close()

    @contextlib.contextmanager
    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        refused: Callable[[Refusal, str], Failure],
    ) -> Iterator[Answer]:
        """Ask for ``path`` (``/chat/completions``) with ``body`` as JSON, and give the answer while it is read.

        Whatever breaks is a Failure; ``refused`` makes one of a status other than 2xx and what the server
        said. Raises BackendError once closed.
        """
        if self.closed.is_set():
            raise unloaded(self._name)
        try:
            sent, headers = self._sent(body)
            until = Until(self._settings.timeout)
            url = self._library.URL(
                scheme=self._scheme,
                host=self._host,
                port=self._port,
                target=self._path + path.encode("ascii"),
            )
            connect = min(self._settings.timeout, CONNECT_SECONDS)
            timeouts = {"connect": connect, "read": until, "write": until, "pool": until}
            with self._pool.stream(
                method, url, headers=headers, content=sent, extensions={"timeout": timeouts}
            ) as response:
                self._reached = True
                answer = Answer(response, until)
                if not 200 <= answer.status < 300:
                    raise self._turned_away(answer, refused)
                if (coding := answer.headers.get("content-encoding", "identity")) != "identity":
                    raise Failure(
                        f"packed its answer unasked ({short(coding, self._key, 40)})", NOT_OPENAI
                    )
                yield answer
        except Failure:
            if self.closed.is_set():
                raise unloaded(self._name) from None
            raise
        except self._late:
            raise self._or_closed(timed_out(self._settings.timeout)) from None
        except self.lost as error:
            raise self._or_closed(self._dropped(error)) from None
        except RuntimeError:
            if self.closed.is_set():  # the library is surprised by what was closed meanwhile
                raise unloaded(self._name) from None
            raise

    def _sent(
        self, body: Mapping[str, Any] | None
    ) -> tuple[bytes | None, list[tuple[bytes, bytes]]]:
        if body is None:
            return None, self._headers
        try:
            sent = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            raise Failure(
                "was not asked: the text holds broken Unicode (half of a surrogate pair)",
                "Mend the text.",
            ) from None
        kind, length = (
            (b"Content-Type", b"application/json"),
            (b"Content-Length", b"%d" % len(sent)),
        )
        return sent, [*self._headers, kind, length]

    def _turned_away(self, answer: Answer, refused: Callable[[Refusal, str], Failure]) -> Failure:
        text = answer.beginning()
        body: Any = text.decode("utf-8", "replace")
        with contextlib.suppress(ValueError, RecursionError):
            body = json.loads(text)
        return refused(Refusal(answer.status, answer.headers, body), short(body, self._key))

    def _or_closed(self, failure: Failure) -> Exception:
        return unloaded(self._name) if self.closed.is_set() else failure

    def _dropped(self, error: Exception) -> Failure:
        why = short(str(error), self._key, 120) or type(error).__name__
        if "CERTIFICATE_VERIFY_FAILED" in why:
            return Failure(
                f"shows a certificate that is not trusted ({why})",
                "Set SSL_CERT_FILE to the certificate of whoever signed it, or correct base_url.",
            )
        if isinstance(error, (self._library.ConnectError, self._library.ProxyError)):
            # A server that never answered is not running; one that did may be starting again.
            return Failure(
                f"cannot be reached ({why})",
                "Start the server, or correct base_url.",
                retries=None if self._reached else 0,
            )
        if isinstance(error, self._library.RemoteProtocolError) and (
            "illegal" in why or "too long" in why
        ):
            return Failure(f"answered with something that is not HTTP ({why})", NOT_OPENAI)
        return Failure(f"dropped the connection ({why})", DROPPED, retries=None)


def _parts(base_url: str) -> tuple[bytes, bytes, int | None, bytes, bytes]:
    """Scheme, host, port, path without a last slash, and the Host header, as they are sent."""
    address = urlsplit(base_url)
    name = address.hostname or ""
    host = name.encode("ascii") if ":" in name else name.encode("idna")
    shown = b"[" + host + b"]" if b":" in host else host
    path = quote(address.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
    if address.port is not None:
        shown += b":%d" % address.port
    return address.scheme.encode("ascii"), host, address.port, path.encode("ascii"), shown


def _headers(settings: Endpoint, key: str) -> list[tuple[bytes, bytes]]:
    # Answers are small: packing them would cost more than it saves, and a packed one may unpack to anything.
    plain = {
        "Authorization": f"Bearer {key or 'none'}",
        "Accept": "application/json, text/event-stream",
        "Accept-Encoding": "identity",
        "User-Agent": "rallebench",
        **account_headers(settings.base_url),
    }
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in plain.items()]


def _pool(library: Any, base_url: str, lines: Lines) -> Any:
    """Proxies of the environment never stand before a loopback server. Redirects are not followed, so that
    key and prompt stay with the host the user named."""
    loopback = is_loopback(base_url)
    # Reading the certificates takes 25 ms that plain HTTP to oneself can do without: trust nobody.
    plain = loopback and urlsplit(base_url).scheme == "http"
    proxy = None if loopback else _proxy(library, base_url)
    return library.ConnectionPool(
        ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if plain
        else library.default_ssl_context(),
        proxy=proxy,
        max_connections=None,
        keepalive_expiry=IDLE_SECONDS,
        network_backend=lines,
    )


def _proxy(library: Any, base_url: str) -> Any:
    """The proxy that the environment (or the system) names for this server, or None."""
    address, proxies = urlsplit(base_url), getproxies()
    named = proxies.get(address.scheme) or proxies.get("all")
    if not named or proxy_bypass(address.netloc):
        return None
    try:
        parts = urlsplit(named if "://" in named else f"http://{named}")
        usual = DEFAULT_PORTS[parts.scheme]
        port = parts.port or usual
        host = (parts.hostname or "").encode("idna")
    except (KeyError, ValueError):  # not echoed: it may hold a password
        raise UsageError(
            f"The proxy that the environment names for {address.netloc} is not an address; correct "
            f"{address.scheme}_proxy or all_proxy, or add the server to no_proxy."
        ) from None
    if parts.scheme.startswith("socks") and find_spec("socksio") is None:
        raise MissingPackageError("socksio", "and the proxy that the environment names needs it")
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return library.Proxy(
        library.URL(scheme=parts.scheme, host=host, port=port, target="/"), auth=auth
    )
