"""The limits of one server: requests in flight, and requests and tokens per minute.

Requests in flight follow additive increase and multiplicative decrease, as in TCP. Latency counts as in Netflix's
concurrency-limits (Gradient2): recent answers are compared with earlier ones. Nothing here waits or locks.
"""

from __future__ import annotations

import contextlib
import re
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

CUT = 0.7
"""The share of the window that remains when a server throttles (TCP CUBIC's factor, RFC 9438). With a half, a
stray 429 in a hundred answers would cost a run a tenth of its time."""

SLOWER = 2.0
"""The slowdown from which the window shrinks. Batching alone makes answers slower, so it is not 1."""

FEWEST = 16
"""The number of answers from which their median time means anything."""

MINUTE = 60.0


@dataclass
class Pace:
    """Seconds per unit of work, for requests of one kind."""

    usual: float = 0.0
    recent: list[float] = field(default_factory=list)

    def slowdown(self, seconds: float, enough: int) -> float:
        """Time of the last ``enough`` answers over the usual time; 0.0 while there are fewer."""
        self.recent.append(seconds)
        if len(self.recent) < enough:
            return 0.0
        now = statistics.median(self.recent)
        self.recent.clear()
        before, self.usual = self.usual, now
        if before:
            # A faster server counts quickly, a slower one slowly.
            self.usual = before + (0.5 if now < before else 0.1) * (now - before)
        return now / before if before else 1.0


class RequestWindow:
    """The number of requests that may be in flight: from 1 to ``most``, the user's setting and the start."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.exact = float(most)
        self.throttled = 0
        self.slow = 0
        self._cut_at = float("-inf")
        self._paces: dict[str, Pace] = {}

    @property
    def size(self) -> int:
        """The number of requests that may be in flight now."""
        return max(1, int(self.exact + 1e-9))

    def allow(self, most: int) -> None:
        """Change the upper bound; a window at the old bound follows it."""
        if most:
            self.exact = float(most) if self.exact >= self.most else min(self.exact, float(most))
            self.most = most

    def answered(self, kind: str, sent: float, now: float, work: float, full: bool) -> None:
        """Count an answer to a request ``sent`` at that time, worth ``work`` units.

        ``kind``: requests of one kind have comparable times. ``full``: the window was full, so a larger one is
        worth a try.
        """
        slowdown = self._paces.setdefault(kind, Pace()).slowdown(
            (now - sent) / work, max(FEWEST, 2 * self.size)
        )
        if slowdown > SLOWER:
            self.slow += 1
            self._shrink(max(CUT, SLOWER / slowdown), now)
        elif full and sent >= self._cut_at:
            # One more for each window of answers; a big window takes bigger steps.
            self.exact = min(float(self.most), self.exact + max(1.0, self.most / 32) / self.exact)

    def throttle(self, sent: float, now: float) -> None:
        """Shrink after a 429, 503 or time-out; a request sent before the last cut says nothing new."""
        if sent >= self._cut_at:
            self.throttled += 1
            self._shrink(CUT, now)

    def _shrink(self, factor: float, now: float) -> None:
        self.exact = max(1.0, self.exact * factor)
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

    def take(self, units: float, now: float) -> None:
        """Count a request of these units, sent now."""
        if self.per_minute:
            self._free_at = max(now, self._free_at) + units * MINUTE / self.per_minute

    def correct(self, units: float) -> None:
        """Add units (or, if negative, take some back) when the real number is known."""
        if self.per_minute:
            self._free_at += units * MINUTE / self.per_minute


@dataclass(frozen=True)
class Remainder:
    """The units that a server still allows, and the seconds until it allows more."""

    amount: float
    seconds: float


def remainder(headers: Mapping[str, str], unit: str) -> Remainder | None:
    """``x-ratelimit-remaining-requests`` (or ``-tokens``) with its reset; None unless both are there.

    Requests may also come without that ending, and as ``ratelimit-…``.

    >>> remainder({"x-ratelimit-remaining-tokens": "12", "x-ratelimit-reset-tokens": "6m0s"}, "tokens")
    Remainder(amount=12.0, seconds=360.0)
    """
    names = [("x-ratelimit-", f"-{unit}")]
    if unit == "requests":
        names += [("x-ratelimit-", ""), ("ratelimit-", "")]
    for start, end in names:
        amount, reset = headers.get(f"{start}remaining{end}"), headers.get(f"{start}reset{end}")
        with contextlib.suppress(ValueError, TypeError):
            seconds = _seconds(str(reset).strip()) if reset is not None else None
            if amount is not None and seconds is not None and float(amount) >= 0:
                return Remainder(float(amount), seconds)
    return None


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")


def _seconds(text: str) -> float | None:
    """Seconds from now: ``1s``, ``6m0s``, ``20ms``, seconds, a Unix time (also in ms), or an ISO date.

    >>> [_seconds(text) for text in ("1s", "6m0.5s", "20ms", "7", "soon")]
    [1.0, 360.5, 0.02, 7.0, None]
    """
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    with contextlib.suppress(ValueError):
        value = float(text)
        if value > 1e12:
            value /= 1000
        seconds = value - time.time() if value > 1e9 else value
        return max(0.0, seconds) if seconds == seconds and abs(seconds) != float("inf") else None
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return max(0.0, moment.timestamp() - time.time()) if moment.tzinfo else None
    return None
