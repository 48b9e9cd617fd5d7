"""One server: size-limited answers, a Failure for each error, rate limits and retries.

``httpcore2`` manages the connections and the protocol. A general client adds cookies, redirects and typed fields,
which are not needed here and would cost more processor time than the rest of a request.
"""

from __future__ import annotations

import contextlib
import json
import random
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from rallebench.core.errors import BackendError, BusyError, MissingPackageError, UsageError
from rallebench.core.stopping import Stop, stop_of_thread
from rallebench.core.versions import optional
from rallebench.http.deadline import Deadline, Sockets
from rallebench.http.endpoint import MAX_PAUSE, Endpoint, account_headers, is_loopback, no_address
from rallebench.http.failures import (
    DROPPED,
    NOT_OPENAI,
    Failure,
    parse_json,
    short,
    timeout_failure,
    unloaded_error,
)
from rallebench.http.limiter import LONGEST_PAUSE, Permit, shared_limiter
from rallebench.http.reported import TOO_MANY_REQUESTS, status_failure

T = TypeVar("T")

CONNECT_SECONDS = 10.0
MAX_BODY_BYTES = 32 * 2**20
MAX_ERROR_BYTES = 2**16
DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
IDLE_SECONDS = 30.0
"""Seconds until an idle connection is closed."""


class Answer:
    """A response with its ``headers`` (lower-case names); the body has not been read yet.

    ``deadline`` applies to the whole answer; the reader of a stream extends it.
    """

    def __init__(self, response: Any, deadline: Deadline) -> None:
        self.status = int(response.status)
        self.headers: Mapping[str, str] = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in response.headers
        }
        self.deadline = deadline
        self._response = response
        self.pieces = self._limited_pieces()
        """Body in pieces; raises Failure after ``MAX_BODY_BYTES``."""

    def _limited_pieces(self) -> Iterator[bytes]:
        size = 0
        for piece in self._response.iter_stream():
            size += len(piece)
            if size > MAX_BODY_BYTES:
                raise Failure(f"answered with more than {MAX_BODY_BYTES // 2**20} MB", NOT_OPENAI)
            yield piece

    def read(self) -> bytes:
        """Return the whole body. Raises Failure as ``pieces`` does."""
        return b"".join(self.pieces)

    def beginning(self) -> bytes:
        """Return the first bytes of an error message."""
        start = b""
        for piece in self._response.iter_stream():
            start += piece
            if len(start) >= MAX_ERROR_BYTES:
                break
        return start[:MAX_ERROR_BYTES]


class Server:
    """Keep-alive connections to one server, its limits, and retries. Thread-safe. ``close`` sets ``closed``.

    ``lost``: exceptions that mean that a connection broke while an answer was read.
    """

    def __init__(self, name: str, endpoint: Endpoint, key: str) -> None:
        httpcore2 = optional("httpcore2", "httpcore2", f"and {name!r} needs it")
        self.closed = Stop()
        self.name, self.endpoint, self.key = name, endpoint, key
        self._troubles: WeakKeyDictionary[Stop, str] = WeakKeyDictionary()
        self._reached = False
        self._library = httpcore2
        self.lost: tuple[type[Exception], ...] = (
            httpcore2.TimeoutException,
            httpcore2.NetworkError,
            httpcore2.ProtocolError,
            httpcore2.ProxyError,
            OSError,
        )
        try:
            self._address, self._path, host = _parts(endpoint.base_url)
        except (ValueError, UnicodeError):
            raise no_address(name) from None
        self._headers = [(b"Host", host), *_headers(endpoint, key)]
        # A loopback server is reached without a proxy. Plain HTTP to this machine loads no CA certificates (saves 25
        # ms). Redirects are not followed, so that key and prompt stay with the host chosen by the user.
        loopback = is_loopback(endpoint.base_url)
        plain = loopback and self._address["scheme"] == b"http"
        self._pool = httpcore2.ConnectionPool(
            ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if plain
            else httpcore2.default_ssl_context(),
            proxy=None if loopback else _proxy(httpcore2, endpoint.base_url),
            max_connections=None,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=Sockets(httpcore2.SyncBackend(), httpcore2.ReadTimeout),
        )
        self.limiter = shared_limiter(self)

    def close(self) -> None:
        """Break the connections and release every waiting thread: for an answer, a permit or a retry."""
        self.closed.set()
        with contextlib.suppress(Exception):  # a broken connection may complain
            self._pool.close()
        self.limiter.remove(self)

    def check(self) -> None:
        """Raise BackendError once closed, StoppedError once this thread's work is stopped."""
        if self.closed.is_set():
            raise unloaded_error(self.name)
        stop_of_thread().check()

    @contextlib.contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Call ``wake`` when ``check`` begins to raise, until the end of the block."""
        with self.closed.waking(wake), stop_of_thread().waking(wake):
            yield

    @contextlib.contextmanager
    def request(
        self, method: str, path: str, body: Mapping[str, Any] | None, timeout: float | None = None
    ) -> Iterator[Answer]:
        """Send ``body`` as JSON to ``path`` (``/chat/completions``; from the server's root with two slashes) and yield
        the answer. Every error is a Failure. See ``check``."""
        seconds = timeout or self.endpoint.timeout
        failure: Exception
        try:
            self.check()
            content, headers = self._encode(body)
            deadline, connect = Deadline(seconds), Deadline(min(seconds, CONNECT_SECONDS))
            base = self._path.removesuffix(b"/v1") if path.startswith("//") else self._path
            target = base + path.replace("//", "/").encode("ascii")
            timeouts = {"connect": connect, "read": deadline, "write": deadline, "pool": deadline}
            with (
                self.waking(deadline.hang_up),
                self.waking(connect.hang_up),
                self._pool.stream(
                    method,
                    self._library.URL(**self._address, target=target),
                    headers=headers,
                    content=content,
                    extensions={"timeout": timeouts},
                ) as response,
            ):
                self._reached = True
                answer = Answer(response, deadline)
                if not 200 <= answer.status < 300:
                    text = answer.beginning()
                    raise status_failure(
                        answer.status, answer.headers, text, self.endpoint, self.key
                    )
                if (coding := answer.headers.get("content-encoding", "identity")) != "identity":
                    raise Failure(
                        f"compressed its answer without being asked ({short(coding, self.key, 40)})",
                        NOT_OPENAI,
                    )
                yield answer
                return
        except Failure as error:
            failure = error
        except self._library.TimeoutException:
            failure = timeout_failure(seconds)
        except self.lost as error:
            failure = self._connection_failure(error)
        except RuntimeError as error:  # the library did not expect a connection closed meanwhile
            failure = error
        self.check()
        raise failure

    def document(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> tuple[Any, Mapping[str, str]]:
        """Return the JSON of an answer, with the key redacted, and its headers; see ``request``."""
        with self.request(method, path, body, timeout) as answer:
            text = answer.read()
        return parse_json(text, self.key), answer.headers

    def attempts(
        self, attempt: Callable[[Permit], Iterator[T]], tokens: float = 0.0, at_once: bool = False
    ) -> Iterator[T]:
        """Yield from ``attempt``; after a Failure retry, if that can help and nothing was yielded yet.

        Each attempt takes a permit for about ``tokens`` tokens; the pauses between attempts hold none. ``at_once``: see
        :meth:`RateLimiter.enter`. Raises BackendError after the last attempt; see ``check``.
        """
        tries, work = 0, stop_of_thread().work
        while True:
            begun = False
            permit = self.limiter.enter(self, tokens, at_once)
            try:
                for piece in attempt(permit):
                    if not begun:
                        begun = True
                        self._troubles.pop(work, None)
                    yield piece
                self.limiter.record_answer(permit)
                return
            except Failure as error:
                failure = error
                self.limiter.record_failure(permit, failure)
            finally:
                self.limiter.leave()
            if failure.at_once and not begun:
                continue
            tries += 1
            self.check()  # then closing the connection caused the failure
            most = self.endpoint.max_retries
            allowed = (
                0 if begun else min(most, most if failure.retries is None else failure.retries)
            )
            if tries > allowed or _is_too_long(failure.pause):
                self._troubles.pop(work, None)
                sentence = self._sentence(failure, tries, begun)
                if failure.status == TOO_MANY_REQUESTS and failure.throttled:
                    raise BusyError(sentence, failure.pause)
                raise BackendError(sentence)
            self._troubles[work] = f"{self.name!r} {failure.fault}; retrying"
            ours = min(MAX_PAUSE, self.endpoint.backoff * 2.0 ** (tries - 1))
            # jitter, so that many throttled threads do not return together
            awake = threading.Event()
            with self.waking(awake.set):
                awake.wait((failure.pause or 0.0) + ours * random.uniform(0.5, 1.0))
            self.check()

    def trouble(self, work: Stop) -> str:
        """Return the reason why a request of this work is being retried; "" if none is."""
        return self._troubles.get(work.work, "")

    def _encode(
        self, body: Mapping[str, Any] | None
    ) -> tuple[bytes | None, list[tuple[bytes, bytes]]]:
        if body is None:
            return None, self._headers
        try:
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            raise Failure(
                "was not asked: the text contains broken Unicode (half of a surrogate pair)",
                "Correct the text.",
            ) from None
        kind, length = b"application/json", b"%d" % len(content)
        more = [(b"Content-Type", kind), (b"Content-Length", length)]
        return content, [*self._headers, *more]

    def _connection_failure(self, error: Exception) -> Failure:
        why = short(str(error), self.key, 120) or type(error).__name__
        if "CERTIFICATE_VERIFY_FAILED" in why:
            return Failure(
                f"shows a certificate that is not trusted ({why})",
                "Set SSL_CERT_FILE to the certificate of its issuer, or correct the address.",
            )
        if isinstance(error, (self._library.ConnectError, self._library.ProxyError)):
            # A server that never answered is not running; one that answered before may be restarting.
            return Failure(
                f"cannot be reached ({why})",
                "Start the server, or correct its address.",
                retries=None if self._reached else 0,
            )
        if isinstance(error, self._library.RemoteProtocolError) and (
            "illegal" in why or "too long" in why
        ):
            return Failure(f"answered with something that is not HTTP ({why})", NOT_OPENAI)
        return Failure(f"dropped the connection ({why})", DROPPED, retries=None)

    def _sentence(self, failure: Failure, tries: int, begun: bool) -> str:
        often = f" (tried {tries} times)" if tries > 1 else ""
        wait = f" and asks to wait {failure.pause:.0f} s" if _is_too_long(failure.pause) else ""
        lost = " The text received so far is incomplete and was not kept." if begun else ""
        server = f"{self.name!r} at {self.endpoint.base_url}"
        return f"{server} {failure.fault}{wait}{often}.{lost} {failure.mend}".rstrip()


def _is_too_long(pause: float | None) -> bool:
    return pause is not None and pause > LONGEST_PAUSE


def _parts(base_url: str) -> tuple[dict[str, Any], bytes, bytes]:
    """Return scheme, host and port; the path without a last slash; and the Host header, in bytes."""
    address = urlsplit(base_url)
    name = address.hostname or ""
    host = name.encode("ascii") if ":" in name else name.encode("idna")
    header = b"[" + host + b"]" if b":" in host else host
    path = quote(address.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
    if address.port is not None:
        header += b":%d" % address.port
    url = {"scheme": address.scheme.encode("ascii"), "host": host, "port": address.port}
    return url, path.encode("ascii"), header


def _headers(settings: Endpoint, key: str) -> list[tuple[bytes, bytes]]:
    # answers are small: compression would cost more than it saves, and could unpack to any size
    plain = {
        "Authorization": f"Bearer {key or 'none'}",
        "Accept": "application/json, text/event-stream",
        "Accept-Encoding": "identity",
        "User-Agent": "rallebench",
        **account_headers(settings.base_url),
    }
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in plain.items()]


def _proxy(library: Any, base_url: str) -> Any:
    """Return the proxy for this server from the environment or the system, or None."""
    address, proxies = urlsplit(base_url), getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(address.netloc):
        return None
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        default_port = DEFAULT_PORTS[parts.scheme]
        port = parts.port or default_port
        host = (parts.hostname or "").encode("idna")
    except (KeyError, ValueError):  # not echoed: it may contain a password
        raise UsageError(
            f"The proxy for {address.netloc} in the environment is not an address; correct "
            f"{address.scheme}_proxy or all_proxy, or add the server to no_proxy."
        ) from None
    if parts.scheme.startswith("socks") and find_spec("socksio") is None:
        raise MissingPackageError("socksio", "and the proxy in the environment needs it")
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return library.Proxy(
        library.URL(scheme=parts.scheme, host=host, port=port, target="/"), auth=auth
    )
