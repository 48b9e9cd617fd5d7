"""One rate limiter per server, shared by all threads and all models at that address.

It limits the requests in flight and the rates per minute, and makes requests wait. A pause that the server asks for
(Retry-After, ``x-ratelimit-…``) delays all of them.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from rallebench.http.endpoint import Endpoint
from rallebench.http.failures import Failure, remainder

LONGEST_PAUSE = 120.0
"""Longest pause of all requests, in seconds; a longer one is reported as an error."""

CUT = 0.7
"""Factor by which the window shrinks when a server throttles (as in TCP CUBIC, RFC 9438). With one half, a stray 429 in a
hundred answers would cost a run a tenth of its time.
"""

MINUTE = 60.0


class Waiter(Protocol):
    """A client whose requests wait here; ``http.client.Server`` is one."""

    endpoint: Endpoint

    def waking(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``wake`` when ``check`` begins to raise, until the end of the block."""

    def check(self) -> None:
        """Raise an exception with the reason if the request must not wait any longer."""


class RequestWindow:
    """The number of requests that may be in flight: between 1 and ``most``, the user's setting, which is the initial
    value.

    Additive increase and multiplicative decrease, as in TCP. It neither waits nor locks.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.exact = float(most)
        self.throttled = 0
        self._cut_at = float("-inf")

    @property
    def size(self) -> int:
        """Number of requests that may be in flight now."""
        return max(1, int(self.exact + 1e-9))

    def allow(self, most: int) -> None:
        """Change the upper bound; a window at the old bound follows it."""
        if most:
            self.exact = float(most) if self.exact >= self.most else min(self.exact, float(most))
            self.most = most

    def grow(self, sent: float) -> None:
        """Widen the window after an answer to a request that was ``sent`` at that time into a full window."""
        if sent >= self._cut_at:
            # one more for each window of answers; a big window takes bigger steps
            self.exact = min(float(self.most), self.exact + max(1.0, self.most / 32) / self.exact)

    def throttle(self, sent: float, now: float) -> None:
        """Shrink after a 429, 503 or time-out, unless the request was sent before the last cut."""
        if sent >= self._cut_at:
            self.throttled += 1
            self.exact = max(1.0, self.exact * CUT)
            self._cut_at = now


class Rate:
    """Units per minute, spread evenly: after ``n`` units the next request waits ``n`` / rate minutes.

    Any minute exceeds the limit by one request at most (whose units were unknown before).
    """

    def __init__(self, per_minute: float | None = None) -> None:
        self.per_minute = per_minute
        self._free_at = 0.0

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may be sent."""
        return max(0.0, self._free_at - now) if self.per_minute else 0.0

    def take(self, units: float, now: float = 0.0) -> None:
        """Count a request of ``units``, sent now; without ``now``, correct the count (downwards if negative)."""
        if self.per_minute:
            self._free_at = max(now, self._free_at) + units * MINUTE / self.per_minute


@dataclass(frozen=True)
class Status:
    """The current limits: ``in_flight`` of ``window`` requests; the user's limit is ``most``.

    ``throttled``: number of times the window shrank; ``pause``: seconds that all requests wait.
    """

    window: int
    most: int
    in_flight: int
    throttled: int
    pause: float

    def __str__(self) -> str:
        """Return a note for the user; '' while no request is delayed.

        >>> print(Status(window=11, most=16, in_flight=11, throttled=3, pause=2.0))
        11 of 16 requests at once (the server was overloaded 3 times); all wait 2 s
        """
        times = f"{self.throttled} time{'s' * (self.throttled > 1)}"
        size = f"{self.window} of {self.most} requests at once (the server was overloaded {times})"
        pause = f"all wait {self.pause:.0f} s"
        return "; ".join([size] * (self.throttled > 0) + [pause] * (self.pause >= 0.5))


@dataclass
class Permit:
    """Permit for one request in flight with ``expected`` tokens; ``tokens`` may be set once the answer is there.

    ``number``: requests sent before this one; ``full``: True if this request fills the window.
    """

    expected: float
    number: int
    full: bool
    sent: float
    tokens: float | None = None


class RateLimiter:
    """Thread-safe; first come, first served. The widest window and the lowest rates of all clients apply."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: weakref.WeakSet[Waiter] = weakref.WeakSet()
        self._queue: deque[threading.Event] = deque()
        self._window = RequestWindow(0)
        self._requests, self._tokens = Rate(), Rate()
        self._in_flight = self._started = 0
        self._mean_tokens = 0.0
        self._pause_until = 0.0

    def add(self, client: Waiter) -> None:
        with self._lock:
            self._clients.add(client)
            self._bounds()

    def remove(self, client: Waiter) -> None:
        """Remove a client and wake all waiting threads. A limiter without clients is not used again."""
        with _limiters_lock, self._lock:
            self._clients.discard(client)
            self._bounds()
            for waiting in self._queue:
                waiting.set()
            if not self._clients:
                for address in [key for key, value in _limiters.items() if value is self]:
                    del _limiters[address]

    def _bounds(self) -> None:
        ends = [client.endpoint for client in self._clients]
        requests = [end.requests_per_minute for end in ends if end.requests_per_minute]
        tokens = [end.tokens_per_minute for end in ends if end.tokens_per_minute]
        self._window.allow(max((end.concurrency for end in ends), default=0))
        self._requests.per_minute = min(requests, default=None)
        self._tokens.per_minute = min(tokens, default=None)

    def status(self) -> Status:
        """Return the current limits."""
        with self._lock:
            window, pause = self._window, max(0.0, self._pause_until - time.monotonic())
            return Status(window.size, window.most, self._in_flight, window.throttled, pause)

    # ── before a request ──

    def enter(self, client: Waiter, tokens: float, at_once: bool) -> Permit:
        """Wait until one more request may be sent.

        ``at_once``: a person is waiting, so only rates and pauses apply, not the window. See ``Server.check``.
        """
        called = threading.Event()
        with self._lock:
            if not at_once:
                self._queue.append(called)
        try:
            with client.waking(called.set):
                while True:
                    with self._lock:
                        called.clear()
                        client.check()
                        wait = self._wait(called, at_once)
                        if wait <= 0:
                            return self._start(tokens)
                    called.wait(None if wait == math.inf else wait)
        finally:
            with self._lock:
                if not at_once:
                    self._queue.remove(called)
                self._call_next()

    def _wait(self, called: threading.Event, at_once: bool) -> float:
        """Return the seconds until this request may be sent; infinite until its turn."""
        if not at_once and (self._queue[0] is not called or self._in_flight >= self._window.size):
            return math.inf
        now = time.monotonic()
        return max(self._pause_until - now, self._requests.wait(now), self._tokens.wait(now))

    def _start(self, tokens: float) -> Permit:
        now = time.monotonic()
        # the first estimate may be far too high (all of max_tokens); the mean of the answers is better
        tokens = min(tokens, 2 * self._mean_tokens) if self._mean_tokens else tokens
        self._requests.take(1, now)
        self._tokens.take(tokens, now)
        self._in_flight += 1
        self._started += 1
        return Permit(tokens, self._started, self._in_flight >= self._window.size, now)

    def _call_next(self) -> None:
        if self._queue:
            self._queue[0].set()

    # ── after a request ──

    def read_headers(self, headers: Mapping[str, str], permit: Permit) -> None:
        """Pause all requests if the requests in flight use up the server's remaining units."""
        for unit in ("requests", "tokens"):
            rest = remainder(headers, unit)
            with self._lock:
                size = 1.0 if unit == "requests" else max(1.0, self._mean_tokens)
                if rest and rest[0] < (self._started - permit.number + 1) * size:
                    self._pause(rest[1])

    def record_answer(self, permit: Permit) -> None:
        """Widen the window, and correct the estimated tokens."""
        with self._lock:
            if permit.full:
                self._window.grow(permit.sent)
            if permit.tokens is not None:
                share = 0.1 if self._mean_tokens else 1.0
                self._mean_tokens += share * (permit.tokens - self._mean_tokens)
                self._tokens.take(permit.tokens - permit.expected)

    def record_failure(self, permit: Permit, failure: Failure) -> None:
        """Shrink the window if the server throttles; apply the pause that it asks for."""
        self.read_headers(failure.headers, permit)
        with self._lock:
            if failure.throttled:
                self._window.throttle(permit.sent, time.monotonic())
            if failure.pause is not None:
                self._pause(failure.pause)

    def _pause(self, seconds: float) -> None:
        if seconds <= LONGEST_PAUSE:
            self._pause_until = max(self._pause_until, time.monotonic() + seconds)

    def leave(self) -> None:
        """Return a permit; call once for each permit."""
        with self._lock:
            self._in_flight -= 1
            self._call_next()


_limiters: weakref.WeakValueDictionary[tuple[str, str], RateLimiter] = weakref.WeakValueDictionary()
_limiters_lock = threading.Lock()


def shared_limiter(client: Waiter) -> RateLimiter:
    """Return the limiter of the client's server, whatever the path; it is dropped with its last client."""
    parts = urlsplit(client.endpoint.base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    address = (parts.scheme, f"{(parts.hostname or '').lower()}:{port}")
    with _limiters_lock:
        limiter = _limiters.setdefault(address, RateLimiter())
        limiter.add(client)
        return limiter
