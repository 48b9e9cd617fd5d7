"""Requests and tokens per minute: what we promised to keep, and what a server says is left."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

MINUTE = 60.0


class Rate:
    """So many units a minute, spread evenly: after ``n`` units the next may go ``n`` / rate minutes later.

    In any minute that is at most what is allowed, or one request more (whose units were not known before).
    """

    def __init__(self, per_minute: float | None = None) -> None:
        self.per_minute = per_minute
        self._free_at = 0.0

    def wait(self, now: float) -> float:
        """Seconds until the next request may go."""
        return max(0.0, self._free_at - now) if self.per_minute else 0.0

    def take(self, units: float, now: float) -> None:
        """A request of so many units goes now."""
        if self.per_minute:
            self._free_at = max(now, self._free_at) + units * MINUTE / self.per_minute

    def correct(self, units: float) -> None:
        """So many units more (or, negative, fewer) were taken than was thought."""
        if self.per_minute:
            self._free_at += units * MINUTE / self.per_minute


@dataclass(frozen=True)
class Left:
    """What a server says is left, and after how many seconds there is more."""

    amount: float
    seconds: float


def left(headers: Mapping[str, str], what: str) -> Left | None:
    """``x-ratelimit-remaining-requests`` (or ``-tokens``) with its reset; requests also without that ending,
    and as ``ratelimit-…``. None where the server does not say both.

    >>> left({"x-ratelimit-remaining-tokens": "12", "x-ratelimit-reset-tokens": "6m0s"}, "tokens")
    Left(amount=12.0, seconds=360.0)
    """
    names = [("x-ratelimit-", f"-{what}")]
    if what == "requests":
        names += [("x-ratelimit-", ""), ("ratelimit-", "")]
    for start, end in names:
        amount, reset = headers.get(f"{start}remaining{end}"), headers.get(f"{start}reset{end}")
        with contextlib.suppress(ValueError, TypeError):
            seconds = _seconds(str(reset).strip()) if reset is not None else None
            if amount is not None and seconds is not None and float(amount) >= 0:
                return Left(float(amount), seconds)
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
