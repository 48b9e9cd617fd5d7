"""The connections to one server: bounded answers, and a Failure for each error.

``httpcore2`` keeps the connections and speaks HTTP. The additions of a general client (cookies, redirects, models
of every field) are not needed here, and would cost more processor time than the rest of a request.
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
from rallebench.http.deadline import Deadline, Sockets
from rallebench.http.endpoint import Endpoint, account_headers, is_loopback, no_address
from rallebench.http.failures import (
    DROPPED,
    NOT_OPENAI,
    Failure,
    Refusal,
    failure_of,
    parsed,
    short,
    timed_out,
    unloaded,
)

CONNECT_SECONDS = 10.0
MAX_BODY_BYTES = 32 * 2**20
MAX_ERROR_BYTES = 2**16
DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
Refused = Callable[[Refusal, str], Failure]
IDLE_SECONDS = 30.0
"""An unused connection is closed after this time."""


class Answer:
    """A response whose ``headers`` (names in lower case) have come; the body follows.

    ``deadline`` is for the whole answer; the reader of a stream extends it.
    """

    def __init__(self, response: Any, deadline: Deadline) -> None:
        self.status = int(response.status)
        self.headers: Mapping[str, str] = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in response.headers
        }
        self.deadline = deadline
        self._response = response
        self.pieces = self._bounded()
        """The body, piece by piece; raises Failure after ``MAX_BODY_BYTES``."""

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
        """The first bytes of an error message."""
        start = b""
        for piece in self._response.iter_stream():
            start += piece
            if len(start) >= MAX_ERROR_BYTES:
                break
        return start[:MAX_ERROR_BYTES]


class Connection:
    """Keep-alive connections to one server. Thread-safe. ``closed`` is set by ``close``.

    ``lost`` holds the exceptions of a connection that breaks while an answer is read.
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
        self._sockets = Sockets(
            httpcore2.SyncBackend(), httpcore2.ReadTimeout, httpcore2.NetworkError
        )
        try:
            self._scheme, self._host, self._port, self._path, header = _parts(settings.base_url)
        except (ValueError, UnicodeError):
            raise no_address(name) from None
        self._headers = [(b"Host", header), *_headers(settings, key)]
        self._pool = _pool(httpcore2, settings.base_url, self._sockets)

    def close(self) -> None:
        """Break the connections, so that no thread waits for an answer any more."""
        self.closed.set()
        self._sockets.hang_up()
        with contextlib.suppress(Exception):  # a broken connection may complain
            self._pool.close()

    @contextlib.contextmanager
    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        refused: Refused | None = None,
    ) -> Iterator[Answer]:
        """Send ``body`` as JSON to ``path`` (``/chat/completions``) and yield the answer.

        Every error is a Failure; ``refused`` may make one of a status other than 2xx and the server's message.
        Raises BackendError once closed.
        """
        if self.closed.is_set():
            raise unloaded(self._name)
        try:
            content, headers = self._encoded(body)
            deadline = Deadline(self._settings.timeout)
            url = self._library.URL(
                scheme=self._scheme,
                host=self._host,
                port=self._port,
                target=self._path + path.encode("ascii"),
            )
            connect = min(self._settings.timeout, CONNECT_SECONDS)
            timeouts = {"connect": connect, "read": deadline, "write": deadline, "pool": deadline}
            with self._pool.stream(
                method, url, headers=headers, content=content, extensions={"timeout": timeouts}
            ) as response:
                self._reached = True
                answer = Answer(response, deadline)
                if not 200 <= answer.status < 300:
                    raise self._refusal(answer, refused)
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
            if (
                self.closed.is_set()
            ):  # the library did not expect a connection that was closed meanwhile
                raise unloaded(self._name) from None
            raise

    def document(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        refused: Refused | None = None,
    ) -> tuple[Any, Mapping[str, str]]:
        """The JSON of an answer, the key blotted out, and its headers; see ``request``."""
        with self.request(method, path, body, refused) as answer:
            text = answer.read()
        return parsed(text, self._key), answer.headers

    def _encoded(
        self, body: Mapping[str, Any] | None
    ) -> tuple[bytes | None, list[tuple[bytes, bytes]]]:
        if body is None:
            return None, self._headers
        try:
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            raise Failure(
                "was not asked: the text holds broken Unicode (half of a surrogate pair)",
                "Mend the text.",
            ) from None
        kind, length = b"application/json", b"%d" % len(content)
        more = [(b"Content-Type", kind), (b"Content-Length", length)]
        return content, [*self._headers, *more]

    def _refusal(self, answer: Answer, refused: Refused | None) -> Failure:
        text = answer.beginning()
        body: Any = text.decode("utf-8", "replace")
        with contextlib.suppress(ValueError, RecursionError):
            body = json.loads(text)
        refusal, message = Refusal(answer.status, answer.headers, body), short(body, self._key)
        if refused is not None:
            return refused(refusal, message)
        return failure_of(refusal, message, self._settings, self._key)

    def _or_closed(self, failure: Failure) -> Exception:
        return unloaded(self._name) if self.closed.is_set() else failure

    def _dropped(self, error: Exception) -> Failure:
        why = short(str(error), self._key, 120) or type(error).__name__
        if "CERTIFICATE_VERIFY_FAILED" in why:
            return Failure(
                f"shows a certificate that is not trusted ({why})",
                "Set SSL_CERT_FILE to the certificate of its issuer, or correct base_url.",
            )
        if isinstance(error, (self._library.ConnectError, self._library.ProxyError)):
            # A server that never answered is not running; a server that answered before may be restarting.
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
    """Scheme, host, port, path without a last slash, and the Host header, in bytes."""
    address = urlsplit(base_url)
    name = address.hostname or ""
    host = name.encode("ascii") if ":" in name else name.encode("idna")
    header = b"[" + host + b"]" if b":" in host else host
    path = quote(address.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
    if address.port is not None:
        header += b":%d" % address.port
    return address.scheme.encode("ascii"), host, address.port, path.encode("ascii"), header


def _headers(settings: Endpoint, key: str) -> list[tuple[bytes, bytes]]:
    # Answers are small: compression would cost more than it saves, and could unpack to any size.
    plain = {
        "Authorization": f"Bearer {key or 'none'}",
        "Accept": "application/json, text/event-stream",
        "Accept-Encoding": "identity",
        "User-Agent": "rallebench",
        **account_headers(settings.base_url),
    }
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in plain.items()]


def _pool(library: Any, base_url: str, sockets: Sockets) -> Any:
    """The connections. A loopback server is reached without a proxy; redirects are not followed, so that key and
    prompt stay with the host that the user named."""
    loopback = is_loopback(base_url)
    # Skip loading CA certificates for plain HTTP to this machine (saves 25 ms).
    plain = loopback and urlsplit(base_url).scheme == "http"
    proxy = None if loopback else _proxy(library, base_url)
    return library.ConnectionPool(
        ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if plain
        else library.default_ssl_context(),
        proxy=proxy,
        max_connections=None,
        keepalive_expiry=IDLE_SECONDS,
        network_backend=sockets,
    )


def _proxy(library: Any, base_url: str) -> Any:
    """The proxy for this server from the environment or the system, or None."""
    address, proxies = urlsplit(base_url), getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(address.netloc):
        return None
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        default_port = DEFAULT_PORTS[parts.scheme]
        port = parts.port or default_port
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
