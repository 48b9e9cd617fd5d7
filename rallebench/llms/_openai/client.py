"""The connections to one server: sends a request, bounds its answer, and names what breaks.

The ``openai`` client builds and sends; its own retries and its reading of answers are not used.
"""

from __future__ import annotations

import contextlib
import math
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from rallebench.errors import MissingPackageError
from rallebench.llms._openai.addresses import is_loopback, is_openai, no_address
from rallebench.llms._openai.failures import DROPPED, NOT_OPENAI, Failure, refused, short, timed_out, unloaded
from rallebench.llms._openai.replies import parsed, reply_of
from rallebench.llms._openai.requests import Dialect
from rallebench.llms._openai.settings import Settings
from rallebench.llms._openai.streams import looks_like_events, read_stream
from rallebench.types import Reply

CONNECT_SECONDS = 10.0
MAX_BODY_BYTES = 32 * 2**20


class Client:
    """Asks one server, once per call of ``ask``. Thread-safe. ``closed`` is set by ``close``."""

    def __init__(self, name: str, settings: Settings, key: str) -> None:
        try:
            import httpx2
            import openai
        except ImportError:
            raise MissingPackageError("openai", f"and {name!r} needs it") from None
        self.closed = threading.Event()
        self._name, self._settings, self._key = name, settings, key
        self._dialect = Dialect(settings.max_tokens_field)
        self._reached = False
        self._status_error, self._connection_error = openai.APIStatusError, openai.APIConnectionError
        self._timeout_errors = (openai.APITimeoutError, httpx2.TimeoutException)
        # The client wraps what fails before the body, not what fails while it is read.
        self._dropped_errors = (openai.APIConnectionError, httpx2.HTTPError, OSError)
        self._not_connected = httpx2.ConnectError
        try:
            self._openai = _openai_client(openai, settings, key)
        except (httpx2.InvalidURL, UnicodeError):
            raise no_address(name) from None

    def close(self) -> None:
        """Close the connections and wake what waits for another try."""
        self.closed.set()
        self._openai.close()

    def ask(self, body: Mapping[str, Any], stream: bool) -> Iterator[str | Reply]:
        """One request: pieces of text if ``stream``, then the Reply. Raises Failure, or BackendError
        once closed. A server that answers a streaming request as a whole is understood, too."""
        if self.closed.is_set():
            raise unloaded(self._name)
        sent = self._dialect.fit(body, stream)
        start = time.monotonic()
        with self._translated(sent), self._send(sent, stream) as response:
            self._reached = True
            kind = response.headers.get("content-type", "").lower()
            if stream and "event-stream" in kind:
                yield from self._read_stream(self._pieces(response, math.inf), start)
                return
            whole = b"".join(self._pieces(response, start + self._settings.timeout))
            if stream and looks_like_events(whole):
                yield from self._read_stream(iter([whole]), start)
                return
            reply = reply_of(parsed(whole, self._key), self._key)
            if stream and reply.text:
                yield reply.text
            yield reply

    def _send(self, sent: Mapping[str, Any], stream: bool) -> Any:
        extra = {name: value for name, value in sent.items() if name not in ("model", "messages")}
        return self._openai.chat.completions.with_streaming_response.create(
            model=sent["model"], messages=sent["messages"], stream=stream, extra_body=extra
        )

    def _pieces(self, response: Any, deadline: float) -> Iterator[bytes]:
        """The body as it comes; bounded in bytes, and in time where ``deadline`` is finite."""
        size = 0
        for piece in response.iter_bytes():
            size += len(piece)
            if size > MAX_BODY_BYTES:
                raise Failure(f"answered with more than {MAX_BODY_BYTES // 2**20} MB", NOT_OPENAI)
            if time.monotonic() > deadline:
                raise timed_out(self._settings.timeout)
            yield piece

    def _read_stream(self, body: Iterator[bytes], start: float) -> Iterator[str | Reply]:
        return read_stream(body, start, self._key, (*self._timeout_errors, *self._dropped_errors))

    @contextlib.contextmanager
    def _translated(self, sent: Mapping[str, Any]) -> Iterator[None]:
        """Turn the client's exceptions into Failure."""
        try:
            yield
        except self._status_error as error:
            self._reached = True
            raise self._refused(error, sent) from None
        except self._timeout_errors:
            raise timed_out(self._settings.timeout) from None
        except self._dropped_errors as error:
            raise self._dropped(error) from None
        except UnicodeEncodeError:
            raise Failure(
                "was not asked: the prompt holds broken Unicode (half of a surrogate pair)", "Mend the text."
            ) from None
        except RuntimeError:
            if self.closed.is_set():  # the client says so when it was closed meanwhile
                raise unloaded(self._name) from None
            raise

    def _refused(self, error: Any, sent: Mapping[str, Any]) -> Failure:
        """A status other than 2xx: asked differently where that helps."""
        said = short(error.body, self._key)
        if int(error.status_code) in (400, 422) and self._dialect.learn(said, sent):
            return Failure("asks for other fields", at_once=True)
        return refused(error, said, self._settings, self._key)

    def _dropped(self, error: Exception) -> Failure:
        cause = error.__cause__ if isinstance(error, self._connection_error) and error.__cause__ else error
        why = short(str(cause), self._key, 120) or type(cause).__name__
        if isinstance(cause, self._not_connected):
            # A server that never answered is not running; one that did may be starting again.
            return Failure(
                f"cannot be reached ({why})",
                "Start the server, or correct base_url.",
                retries=None if self._reached else 0,
            )
        return Failure(f"dropped the connection ({why})", DROPPED, retries=None)


def _openai_client(openai: Any, settings: Settings, key: str) -> Any:
    """One keep-alive client. Proxies of the environment never stand before a loopback server;
    redirects are refused, so that key and prompt stay with the host the user named."""
    loopback = is_loopback(settings.base_url)
    timeout = openai.Timeout(settings.timeout, connect=min(settings.timeout, CONNECT_SECONDS))
    # Reading the certificates takes 25 ms that plain HTTP to oneself can do without: trust nobody.
    plain = loopback and urlsplit(settings.base_url).scheme == "http"
    client = openai.OpenAI(
        api_key=key or "none",
        base_url=settings.base_url,
        timeout=timeout,
        max_retries=0,
        # Named here so that OPENAI_CUSTOM_HEADERS cannot send another key in its place.
        default_headers={"Authorization": f"Bearer {key or 'none'}"},
        http_client=openai.DefaultHttpxClient(
            timeout=timeout,
            follow_redirects=False,
            trust_env=not loopback,
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
        ),
    )
    if not is_openai(settings.base_url):
        client.organization = client.project = None  # read from the environment, and meant for OpenAI
    return client
