"""One gate before each server: all threads, and all models at that address, go through it.

It holds the window of requests in flight and the rates, and is what waits. A server's wish to be left alone
for a while (Retry-After, ``x-ratelimit-…``) is kept by everybody.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from rallebench.http.failures import Failure, unloaded
from rallebench.http.rates import Rate, left
from rallebench.http.window import Window

LONGEST_PAUSE = 120.0
"""Seconds for which everybody is held back at most; a server that wants more says so again, in an error."""


@dataclass(frozen=True)
class Status:
    """A gate now: ``window`` of at most ``most`` requests, ``in_flight`` of them used; how often the server
    turned one away (``crowded``) or was slow; seconds for which all wait (``pause``)."""

    window: int
    most: int
    in_flight: int
    crowded: int
    slow: int
    pause: float

    def __str__(self) -> str:
        """What is worth saying: '' while nothing held requests back.

        >>> print(Status(window=11, most=16, in_flight=11, crowded=3, slow=0, pause=2.0))
        11 of 16 requests at once (the server was crowded 3 times); all wait 2 s
        """
        counts = ((self.crowded, "crowded"), (self.slow, "slow"))
        why = " and ".join(f"{what} {n} time{'s' * (n > 1)}" for n, what in counts if n)
        said = (
            [f"{self.window} of {self.most} requests at once (the server was {why})"] if why else []
        )
        return "; ".join(said + [f"all wait {self.pause:.0f} s"] * (self.pause >= 0.5))


class Turn:
    """One request on its way. ``work`` and ``tokens`` may be set when the answer is there."""

    def __init__(self, gate: Gate, kind: str, tokens: float, number: int, full: bool) -> None:
        self._gate, self.kind, self.number, self.full = gate, kind, number, full
        self.expected = tokens
        self.sent = time.monotonic()
        self.tokens: float | None = None
        self.work = 1.0

    def headers(self, headers: Mapping[str, str]) -> None:
        """What the server says is left."""
        self._gate.told(headers, self)

    def answered(self) -> None:
        """It was answered well."""
        self._gate.answered(self)

    def failed(self, failure: Failure) -> None:
        """It was not."""
        self._gate.failed(self, failure)

    def end(self) -> None:
        """Make room for the next; to be called once, whatever happened."""
        self._gate.leave(self)


class Seat:
    """One model's place at the gate; the gate goes when the last seat does."""

    def __init__(self, name: str, base_url: str, settings: Any, closed: threading.Event) -> None:
        self.name, self.closed = name, closed
        self.most = int(settings.concurrency)
        self.rates = (settings.requests_per_minute, settings.tokens_per_minute)
        self.gate = _gate(base_url)
        self.gate.join(self)

    def close(self) -> None:
        """Give the place back and wake who waits for it."""
        self.gate.part(self)

    def enter(self, kind: str, tokens: float, at_once: bool = False) -> Turn:
        """Wait until one more request may go; ``at_once`` (a person waits) asks nobody about the window, only
        about rates and pauses. Raises BackendError once ``closed``."""
        return self.gate.enter(self, kind, tokens, at_once)


class Gate:
    """Thread-safe; who came first goes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seats: weakref.WeakSet[Seat] = weakref.WeakSet()
        self._queue: deque[threading.Event] = deque()
        self._window: Window | None = None
        self._requests, self._tokens = Rate(), Rate()
        self._in_flight = self._started = 0
        self._mean_tokens = 0.0
        self._pause_until = 0.0

    def join(self, seat: Seat) -> None:
        """Take a seat in; the widest window and the lowest rates count."""
        with self._lock:
            self._seats.add(seat)
            self._bounds()

    def part(self, seat: Seat) -> None:
        """Let a seat go, and wake all that wait."""
        with self._lock:
            self._seats.discard(seat)
            self._bounds()
            for waiting in self._queue:
                waiting.set()
            empty = not self._seats
        if empty:
            _forget(self)

    def _bounds(self) -> None:
        most = max((seat.most for seat in self._seats), default=0)
        if self._window is None:
            self._window = Window(most)
        self._window.allow(most)
        for rate, number in ((self._requests, 0), (self._tokens, 1)):
            rate.per_minute = min(
                (s.rates[number] for s in self._seats if s.rates[number]), default=None
            )

    def status(self) -> Status:
        """How it stands now."""
        with self._lock:
            window, pause = self._its_window(), max(0.0, self._pause_until - time.monotonic())
            return Status(
                window.size, window.most, self._in_flight, window.crowded, window.slow, pause
            )

    def _its_window(self) -> Window:
        assert self._window is not None
        return self._window

    # ── coming in ──

    def enter(self, seat: Seat, kind: str, tokens: float, at_once: bool) -> Turn:
        """See :meth:`Seat.enter`."""
        mine = threading.Event()
        with self._lock:
            if not at_once:
                self._queue.append(mine)
        try:
            while True:
                with self._lock:
                    if seat.closed.is_set():
                        raise unloaded(seat.name)
                    wait = self._wait(mine, at_once)
                    if wait <= 0:
                        return self._start(kind, tokens)
                    mine.clear()
                if at_once:
                    seat.closed.wait(wait)
                else:
                    mine.wait(None if wait == math.inf else wait)
        finally:
            with self._lock:
                if not at_once:
                    self._queue.remove(mine)
                self._call_next()

    def _wait(self, mine: threading.Event, at_once: bool) -> float:
        """Seconds until this one may go; infinite until it is called."""
        if not at_once and (
            self._queue[0] is not mine or self._in_flight >= self._its_window().size
        ):
            return math.inf
        now = time.monotonic()
        return max(self._pause_until - now, self._requests.wait(now), self._tokens.wait(now))

    def _start(self, kind: str, tokens: float) -> Turn:
        now = time.monotonic()
        # A first guess may be far too high (all of max_tokens): what answers really took is better.
        tokens = min(tokens, 2 * self._mean_tokens) if self._mean_tokens else tokens
        self._requests.take(1, now)
        self._tokens.take(tokens, now)
        self._in_flight += 1
        self._started += 1
        return Turn(self, kind, tokens, self._started, self._in_flight >= self._its_window().size)

    def _call_next(self) -> None:
        if self._queue:
            self._queue[0].set()

    # ── what became of it ──

    def told(self, headers: Mapping[str, str], turn: Turn) -> None:
        """Wait for more where a server says that nothing is left for the requests after those under way."""
        for what in ("requests", "tokens"):
            rest = left(headers, what)
            if rest is None:
                continue
            with self._lock:
                since = self._started - turn.number
                each = 1.0 if what == "requests" else max(1.0, self._mean_tokens)
                if rest.amount < (since + 1) * each:
                    self._pause(rest.seconds)

    def answered(self, turn: Turn) -> None:
        """Room grows; the tokens it really took are put right."""
        with self._lock:
            now = time.monotonic()
            self._its_window().answered(turn.kind, turn.sent, now, max(turn.work, 1e-9), turn.full)
            if turn.tokens is not None:
                self._mean_tokens += (0.1 if self._mean_tokens else 1.0) * (
                    turn.tokens - self._mean_tokens
                )
                self._tokens.correct(turn.tokens - turn.expected)

    def failed(self, turn: Turn, failure: Failure) -> None:
        """Room shrinks where the server is crowded; its wish for a pause counts for all."""
        with self._lock:
            if failure.crowded:
                self._its_window().turned_away(turn.sent, time.monotonic())
            if failure.pause is not None:
                self._pause(failure.pause)

    def _pause(self, seconds: float) -> None:
        if seconds <= LONGEST_PAUSE:
            self._pause_until = max(self._pause_until, time.monotonic() + seconds)

    def leave(self, turn: Turn) -> None:
        """One fewer in flight."""
        with self._lock:
            self._in_flight -= 1
            self._call_next()


_gates: weakref.WeakValueDictionary[tuple[str, str], Gate] = weakref.WeakValueDictionary()
_gates_lock = threading.Lock()


def _gate(base_url: str) -> Gate:
    """The gate before the server of this address, whatever the path."""
    parts = urlsplit(base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    where = (parts.scheme, f"{(parts.hostname or '').lower()}:{port}")
    with _gates_lock:
        found = _gates.get(where)
        if found is None:
            found = _gates[where] = Gate()
        return found


def _forget(gate: Gate) -> None:
    """Whoever comes next begins afresh."""
    with _gates_lock:
        for where in [where for where, found in _gates.items() if found is gate]:
            del _gates[where]
