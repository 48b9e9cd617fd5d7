"""How many requests may be in flight: more while all goes well, fewer when a server is crowded.

Additive increase, multiplicative decrease, as TCP does it; the part for latency is the gradient of Netflix's
concurrency-limits (Gradient2): recent answers against those of a longer time. Nothing here waits or locks.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

CUT = 0.7
"""What a crowded server leaves of the window (TCP CUBIC's factor, RFC 9438): half would cost a run with a stray
429 in a hundred answers a tenth of its time."""

SLOWER = 2.0
"""How many times the usual time answers may take before the window shrinks: batching alone makes them slower."""

FEWEST = 16
"""Answers that are looked at together before their time means anything."""


@dataclass
class Pace:
    """Seconds per unit of work of one kind of request, as they usually are."""

    usual: float = 0.0
    recent: list[float] = field(default_factory=list)

    def slowdown(self, seconds: float, enough: int) -> float:
        """How many times slower than usual the last ``enough`` answers were; 0.0 while there are too few."""
        self.recent.append(seconds)
        if len(self.recent) < enough:
            return 0.0
        now = statistics.median(self.recent)
        self.recent.clear()
        before, self.usual = self.usual, now
        if before:
            # Quick to believe that a server is faster, slow to get used to a slower one.
            self.usual = before + (0.5 if now < before else 0.1) * (now - before)
        return now / before if before else 1.0


class Window:
    """``size`` requests may be in flight, from 1 to ``most``. It begins at ``most``, which the user chose."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.exact = float(most)
        self.crowded = 0
        self.slow = 0
        self._cut_at = float("-inf")
        self._paces: dict[str, Pace] = {}

    @property
    def size(self) -> int:
        """How many requests may be in flight now."""
        return max(1, int(self.exact + 1e-9))

    def allow(self, most: int) -> None:
        """Change the upper bound; a window at the old one follows it."""
        if most:
            self.exact = float(most) if self.exact >= self.most else min(self.exact, float(most))
            self.most = most

    def answered(self, kind: str, sent: float, now: float, work: float, full: bool) -> None:
        """One answer to a request ``sent`` at that time, worth ``work`` units; ``full``: as many were in flight
        as may be, so that more are worth trying. ``kind``: requests whose time may be compared."""
        slower = self._paces.setdefault(kind, Pace()).slowdown(
            (now - sent) / work, max(FEWEST, 2 * self.size)
        )
        if slower > SLOWER:
            self.slow += 1
            self._shrink(max(CUT, SLOWER / slower), now)
        elif full and sent >= self._cut_at:
            # One more for each window of answers; a big window takes bigger steps.
            self.exact = min(float(self.most), self.exact + max(1.0, self.most / 32) / self.exact)

    def turned_away(self, sent: float, now: float) -> None:
        """The server was crowded (429, 503, a time-out). Requests sent before the last cut say nothing new."""
        if sent >= self._cut_at:
            self.crowded += 1
            self._shrink(CUT, now)

    def _shrink(self, factor: float, now: float) -> None:
        self.exact = max(1.0, self.exact * factor)
        self._cut_at = now
