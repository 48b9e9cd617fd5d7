"""One rate limiter per server, shared by all threads and all models at that address.

It holds the window of requests in flight and the rates per minute, and makes requests wait. A pause that the
server asks for (Retry-After, ``x-ratelimit-…``) holds back all of them.
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
"""Seconds: the longest pause that holds back all requests. A longer one is reported as an error."""

CUT = 0.7
"""The share of the window that remains when a server throttles (TCP CUBIC's factor, RFC 9438). With a half, a
stray 429 in a hundred answers would cost a run a tenth of its time."""

MINUTE = 60.0


class Waiter(Protocol):
    """A client whose requests wait here; ``http.client.Server`` is one."""

    endpoint: Endpoint

    def waking(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``wake`` when ``check`` begins to raise, until the end of the block."""

    def check(self) -> None:
        """Raise the reason if the request must not wait any longer."""


class RequestWindow:
    """The number of requests that may be in flight: from 1 to ``most``, the user's setting and the start.

    Additive increase and multiplicative decrease, as in TCP. Nothing here waits or locks.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.exact = float(most)
        self.throttled = 0
        self._cut_at = float("-inf")

    @property
    def size(self) -> int:
        """The number of requests that may be in flight now."""
        return max(1, int(self.exact + 1e-9))

    def allow(self, most: int) -> None:
        """Change the upper bound; a window at the old bound follows it."""
        if most:
            self.exact = float(most) if self.exact >= self.most else min(self.exact, float(most))
            self.most = most

    def answered(self, sent: float) -> None:
        """Count an answer to a request ``sent`` at that time, into a full window; a larger one is worth a try."""
        if sent >= self._cut_at:
            # One more for each window of answers; a big window takes bigger steps.
            self.exact = min(float(self.most), self.exact + max(1.0, self.most / 32) / self.exact)

    def throttle(self, sent: float, now: float) -> None:
        """Shrink after a 429, 503 or time-out; a request sent before the last cut says nothing new."""
        if sent >= self._cut_at:
            self.throttled += 1
            self.exact = max(1.0, self.exact * CUT)
            self._cut_at = now


class Rate:
    """Units per minute, spread evenly: after ``n`` units the next request waits ``n`` / rate minutes.

    Any minute has at most the allowed units, or one request more (whose units were not known before).
    """

    def __init__(self, per_minute: float | None = None) -> None:
        self.per_minute = per_minute
        self._free_at = 0.0

    def wait(self, now: float) -> float:
        """Seconds until the next request may go."""
        return max(0.0, self._free_at - now) if self.per_minute else 0.0

    def take(self, units: float, now: float = 0.0) -> None:
        """Count a request of these units, sent now; without ``now``: correct them (down, if negative)."""
        if self.per_minute:
            self._free_at = max(now, self._free_at) + units * MINUTE / self.per_minute


@dataclass(frozen=True)
class Status:
    """The present limits: ``in_flight`` of ``window`` requests, of ``most`` that the user allows.

    ``throttled`` counts the times that the window shrank; all requests wait for ``pause`` seconds.
    """

    window: int
    most: int
    in_flight: int
    throttled: int
    pause: float

    def __str__(self) -> str:
        """A note for the user; '' while nothing held requests back.

        >>> print(Status(window=11, most=16, in_flight=11, throttled=3, pause=2.0))
        11 of 16 requests at once (the server was overloaded 3 times); all wait 2 s
        """
        times = f"{self.throttled} time{'s' * (self.throttled > 1)}"
        size = f"{self.window} of {self.most} requests at once (the server was overloaded {times})"
        pause = f"all wait {self.pause:.0f} s"
        return "; ".join([size] * (self.throttled > 0) + [pause] * (self.pause >= 0.5))


@dataclass
class Permit:
    """The permit of one request in flight, of so many ``expected`` tokens; ``tokens`` may be set when the answer has come.

    ``number``: how many requests were sent before; ``full``: whether the window is full with this one.
    """

    expected: float
    number: int
    full: bool
    sent: float
    tokens: float | None = None


class RateLimiter:
    """Thread-safe; first come, first served. The widest window and the lowest rates of all clients count."""

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
        """The present limits."""
        with self._lock:
            window, pause = self._window, max(0.0, self._pause_until - time.monotonic())
            return Status(window.size, window.most, self._in_flight, window.throttled, pause)

    # ── before a request ──

    def enter(self, client: Waiter, tokens: float, at_once: bool) -> Permit:
        """Wait until one more request may go.

        ``at_once``: a person waits, so only rates and pauses count, not the window. See ``Server.check``.
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
        """Seconds until this request may go; infinite until it is called."""
        if not at_once and (self._queue[0] is not called or self._in_flight >= self._window.size):
            return math.inf
        now = time.monotonic()
        return max(self._pause_until - now, self._requests.wait(now), self._tokens.wait(now))

    def _start(self, tokens: float) -> Permit:
        now = time.monotonic()
        # The first estimate may be far too high (all of max_tokens); the mean of the answers is better.
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
        """Pause all requests if the server has nothing left for those after the ones in flight."""
        for unit in ("requests", "tokens"):
            rest = remainder(headers, unit)
            with self._lock:
                size = 1.0 if unit == "requests" else max(1.0, self._mean_tokens)
                if rest and rest[0] < (self._started - permit.number + 1) * size:
                    self._pause(rest[1])

    def answered(self, permit: Permit) -> None:
        """Let the window grow, and correct the tokens that were estimated."""
        with self._lock:
            if permit.full:
                self._window.answered(permit.sent)
            if permit.tokens is not None:
                share = 0.1 if self._mean_tokens else 1.0
                self._mean_tokens += share * (permit.tokens - self._mean_tokens)
                self._tokens.take(permit.tokens - permit.expected)

    def failed(self, permit: Permit, failure: Failure) -> None:
        """Shrink the window if the server throttles; keep the pause it asks for."""
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
        """End a request's time in flight; call once for each permit."""
        with self._lock:
            self._in_flight -= 1
            self._call_next()


_limiters: weakref.WeakValueDictionary[tuple[str, str], RateLimiter] = weakref.WeakValueDictionary()
_limiters_lock = threading.Lock()


def limiter_of(client: Waiter) -> RateLimiter:
    """The limiter of the client's server, whatever the path; it goes when its last client is removed."""
    parts = urlsplit(client.endpoint.base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    address = (parts.scheme, f"{(parts.hostname or '').lower()}:{port}")
    with _limiters_lock:
        limiter = _limiters.setdefault(address, RateLimiter())
        limiter.add(client)
        return limiter
