"""Loads in progress: each says how far it is, may be cancelled, and waits for its turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rallebench.core.entries import Combination, LLMEntry
from rallebench.core.errors import StoppedError
from rallebench.core.memory import Memory
from rallebench.services.jobs import Job

TURN = 0.05
"""Seconds between two looks of a load that waits for its turn."""


@dataclass(frozen=True, slots=True)
class Going:
    """A load as others see it: what its newest message; whether it waits for its turn, or was cancelled and is ending."""

    kind: str
    message: str
    waiting: bool
    cancelled: bool


@dataclass(eq=False)
class Load:
    """One load, from the request to its end, for all who ask for it.

    ``needs``: (name, kind) of what it is made of. ``requested``: by a user, not only as a part of another load.
    ``begun``: its turn has come; ``before``: what this process held then.
    """

    name: str
    kind: str
    entry: LLMEntry | Combination | None
    needs: list[tuple[str, str]]
    job: Job = field(init=False)
    requested: bool = False
    begun: bool = False
    before: Memory = field(default_factory=Memory)

    @property
    def cancelled(self) -> bool:
        """Whether it was asked to end."""
        return self.job.stopping

    def cancel(self, message: str) -> None:
        """Ask it to end at its next safe point; ``message`` goes to all who follow it."""
        self.job.stop()
        self.job.say(message)

    def tell(self, message: str) -> None:
        """Say something, '' for nothing; raises StoppedError if the load was cancelled: here it ends."""
        if self.cancelled:
            raise StoppedError(f"Loading {self.name} was cancelled.")
        if message:
            self.job.say(message)

    def going(self) -> Going:
        """How it is seen."""
        return Going(self.kind, str(self.job.newest), not self.begun, self.cancelled)


class Turns:
    """One load at a time, in the order in which they came."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._waiting: list[Load] = []

    def queue(self, load: Load) -> None:
        """Give a load its place, once."""
        if load not in self._waiting:
            self._waiting.append(load)

    def leave(self, load: Load) -> None:
        """Give up its place, if it has one."""
        if load in self._waiting:
            self._waiting.remove(load)

    @contextmanager
    def turn(self, load: Load) -> Iterator[None]:
        """Wait for the loads that came earlier; one that is cancelled leaves the queue (StoppedError)."""
        self.queue(load)
        try:
            while not (self._waiting[0] is load and self.lock.acquire(timeout=TURN)):
                load.tell("")
                time.sleep(TURN if self._waiting[0] is not load else 0)
            try:
                load.tell("")
                load.begun = True
                yield
            finally:
                self.lock.release()
        finally:
            self.leave(load)
