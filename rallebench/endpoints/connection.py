"""The connections to one server: bounds its answers, and names what breaks.

The ``openai`` client builds and sends requests; its own retries and its reading of answers are not used.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from rallebench.endpoints import Endpoint
from rallebench.endpoints.addresses import is_loopback, is_openai, no_address
from rallebench.endpoints.failures import DROPPED, NOT_OPENAI, Failure, short, timed_out, unloaded
from rallebench.errors import MissingPackageError

CONNECT_SECONDS = 10.0
MAX_BODY_BYTES = 32 * 2**20


class Connection:
    """Keep-alive connections to one server. Thread-safe. ``closed`` is set by ``close``.

    ``client`` is the ``openai`` client; ``lost`` are the exceptions of a connection that breaks while an
    answer is read.
    """

    def __init__(self, name: str, settings: Endpoint, key: str) -> None:
        try:
            import httpx2
            import openai
        except ImportError:
            raise MissingPackageError("openai", f"and {name!r} needs it") from None
        self.closed = threading.Event()
        self._name, self._settings, self._key = name, settings, key
        self._reached = False
        self._status_error, self._connection_error = openai.APIStatusError, openai.APIConnectionError
        self._timeout_errors = (openai.APITimeoutError, httpx2.TimeoutException)
        # The client wraps what fails before the body, not what fails while it is read.
        self._dropped_errors = (openai.APIConnectionError, httpx2.HTTPError, OSError)
        self._not_connected = httpx2.ConnectError
        self.lost: tuple[type[Exception], ...] = (*self._timeout_errors, *self._dropped_errors)
        try:
            self.client = _openai_client(openai, settings, key)
        except (httpx2.InvalidURL, UnicodeError):
            raise no_address(name) from None

    def close(self) -> None:
        """Close the connections and wake what waits for another try."""
        self.closed.set()
        self.client.close()

    def pieces(self, response: Any, deadline: float) -> Iterator[bytes]:
        """The body as it comes; bounded in bytes, and in time where ``deadline`` is finite."""
        self._reached = True
        size = 0
        for piece in response.iter_bytes():
            size += len(piece)
            if size > MAX_BODY_BYTES:
                raise Failure(f"answered with more than {MAX_BODY_BYTES // 2**20} MB", NOT_OPENAI)
            if time.monotonic() > deadline:
                raise timed_out(self._settings.timeout)
            yield piece

    @contextlib.contextmanager
    def translated(self, refused: Callable[[Any, str], Failure]) -> Iterator[None]:
        """Turn the client's exceptions into Failure; ``refused`` makes one of a status other than 2xx and
        what the server said. Raises BackendError once closed."""
        if self.closed.is_set():
            raise unloaded(self._name)
        try:
            yield
        except self._status_error as error:
            self._reached = True
            raise refused(error, short(error.body, self._key)) from None
        except self._timeout_errors:
            raise timed_out(self._settings.timeout) from None
        except self._dropped_errors as error:
            raise self._dropped(error) from None
        except UnicodeEncodeError:
            raise Failure(
                "was not asked: the text holds broken Unicode (half of a surrogate pair)", "Mend the text."
            ) from None
        except RuntimeError:
            if self.closed.is_set():  # the client says so when it was closed meanwhile
                raise unloaded(self._name) from None
            raise

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


def _openai_client(openai: Any, settings: Endpoint, key: str) -> Any:
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
