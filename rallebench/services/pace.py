"""The pace of a task: its share and the time left, one figure for the chip, the rows and the pages."""

from __future__ import annotations

from dataclasses import dataclass

from rallebench.core.events import Progress

TOGETHER = 0.5
"""Seconds within which counts belong to one batch: the questions of a batch end all at once."""
STALLED = 3
"""The number of usual batches after which work without a new one, as while an index is built, follows no pace."""
BATCHES = 2
"""The least number of complete batches from which a time is derived."""
UNFINISHED = 0.99
"""The largest share of work that still goes on: scores and reports come after the last count."""


@dataclass(frozen=True, slots=True)
class JobStanding:
    """``done`` of ``total`` at one moment. ``share``: of the whole work, indexes to build included; ``left``: seconds,
    None while they are not known."""

    done: int
    total: int
    share: float
    left: float | None


class Pace:
    """The speed of one count, from its complete batches since it began; a count that falls back begins anew."""

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
        """Take in a count."""
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
        """Seconds until the total is reached; None before BATCHES are complete, when it is reached, and while nothing comes."""
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
    """The standing of the work by its newest progress; None while the total is unknown."""
    if not newest.total:
        return None
    whole = newest.total * (1 + newest.indexes / max(newest.runs, 1))
    built = newest.total * newest.built / max(newest.runs, 1)
    share = min(UNFINISHED, (newest.done + built) / whole)
    left = None if newest.built < newest.indexes else pace.seconds_left(now)
    return JobStanding(newest.done, newest.total, share, left)
