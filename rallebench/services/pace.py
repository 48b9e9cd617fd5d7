"""The pace of a task: its share done and the time left, shared by all places that display them."""

from __future__ import annotations

from dataclasses import dataclass

from rallebench.core.events import Progress

TOGETHER = 0.5
"""Counts within this many seconds belong to one batch, because the questions of a batch finish together."""
STALLED = 3
"""After this many usual batch times without a new batch, for example while an index is built, no pace is assumed."""
BATCHES = 2
"""Minimum number of complete batches for an estimate of time."""
UNFINISHED = 0.99
"""Maximum share of unfinished work: scores and reports come after the last count."""


@dataclass(frozen=True, slots=True)
class JobStanding:
    """``done`` of ``total`` at one moment. ``share``: share of the whole work, including indexes to build; ``left``:
    seconds left, None if unknown.
    """

    done: int
    total: int
    share: float
    left: float | None


class Pace:
    """The speed of one count, from its complete batches since it started; a count that decreases starts again."""

    def __init__(self) -> None:
        self._total: int | None = None
        self._newest = 0
        self._begun = (0.0, 0)  # (time, count)
        self._ended: tuple[float, int] | None = None  # the last complete batch
        self._batch: tuple[float, float, int] | None = (
            None  # (its first count, its last, the count)
        )
        self._complete = 0

    def count(self, done: int, total: int, now: float) -> None:
        """Record a count."""
        if total != self._total or done < self._newest:
            self._total, self._newest = total, done
            self._begun, self._ended, self._batch, self._complete = (now, done), None, None, 0
        elif done > self._newest:
            self._newest = done
            if self._batch is not None and now - self._batch[0] <= TOGETHER:
                self._batch = (self._batch[0], now, done)
            else:
                self._close()
                self._batch = (now, now, done)

    def _close(self) -> None:
        if self._batch is not None:
            self._ended, self._batch = self._batch[1:], None
            self._complete += 1

    def seconds_left(self, now: float) -> float | None:
        """Seconds until the total is reached. None before BATCHES batches are complete, after the total is reached,
        and while nothing arrives.
        """
        if self._batch is not None and now - self._batch[0] > TOGETHER:
            self._close()
        if self._complete < BATCHES or self._ended is None or self._total is None:
            return None
        (began, before), (ended, done) = self._begun, self._ended
        if self._newest >= self._total or done <= before or ended <= began:
            return None
        if now - ended > STALLED * (ended - began) / self._complete:
            return None
        return max(0.0, (self._total - done) * (ended - began) / (done - before) - (now - ended))


def standing(newest: Progress, pace: Pace, now: float) -> JobStanding | None:
    """Return the standing of the work from its newest progress; None while the total is unknown."""
    if not newest.total:
        return None
    whole = newest.total * (1 + newest.indexes / max(newest.runs, 1))
    built = newest.total * newest.built / max(newest.runs, 1)
    share = min(UNFINISHED, (newest.done + built) / whole)
    left = None if newest.built < newest.indexes else pace.seconds_left(now)
    return JobStanding(newest.done, newest.total, share, left)
