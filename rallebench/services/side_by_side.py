"""Run the loads of one request concurrently, and divide the memory they take among them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol

from rallebench.core.memory import Memory

LOOK = 0.05
"""Seconds between checks while a load waits for the others."""


class Loading(Protocol):
    """A running load."""

    def check(self) -> None:
        """Raise StoppedError if it was cancelled."""

    def publish(self, message: str) -> None:
        """Send a message to all followers."""


class SideBySide:
    """The concurrent loads of one request.

    Their memory can only be measured as a whole. Each language model counts with its declared need; the retrievers
    share the rest in proportion to the sizes of their encoders and files.
    """

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._running: dict[Loading, str] = {}  # load → its newest message
        self._opened: dict[Loading, tuple[Memory | None, int]] = {}
        self._shares: dict[Loading, Memory] = {}
        self._before = Memory()
        self._several = False

    def enter(self, load: Loading) -> Memory:
        """Start a load; return the memory of this process before the first of the running loads."""
        with self._change:
            if not self._running:
                self._before, self._several = Memory.now(), False
                self._opened, self._shares = {}, {}
            self._running[load] = ""
            self._several = self._several or len(self._running) > 1
            return self._before

    def tell(self, load: Loading, message: str) -> None:
        """Report the progress of all loads to the followers of each."""
        with self._change:
            self._running[load] = message
            messages = "; ".join(dict.fromkeys(filter(None, self._running.values())))
            running = list(self._running)
        for other in running:
            other.publish(messages)

    def share(self, load: Loading, declared: Memory | None, weight: int) -> Memory | None:
        """Wait for the other loads, then return the memory of this one; None if no other load ran at the same time.

        ``declared``: its need; None if it declares none and instead takes a part of the rest according to its
        ``weight``.
        """
        with self._change:
            self._opened[load] = declared, weight
            while self._running.keys() - self._opened.keys():
                self._change.wait(LOOK)
                load.check()
            if not self._several:
                return None
            if load not in self._shares:
                self._shares = divide(Memory.now() - self._before, self._opened)
            self._change.notify_all()
            return self._shares[load]

    def leave(self, load: Loading) -> None:
        """End a load, successful or not."""
        with self._change:
            self._running.pop(load, None)
            if load not in self._shares:
                self._opened.pop(load, None)
            self._change.notify_all()


def divide(
    took: Memory, parts: Mapping[Loading, tuple[Memory | None, int]]
) -> dict[Loading, Memory]:
    """Divide the memory among the loads; see ``SideBySide``."""
    declared = [need for need, _ in parts.values() if need is not None]
    rest_ram = max(0, took.ram - sum(need.ram for need in declared))
    rest_vram = max(0, took.vram - sum(need.vram for need in declared))
    weights = sum(weight for need, weight in parts.values() if need is None) or 1
    return {
        part: Memory(rest_ram * weight // weights, rest_vram * weight // weights)
        if need is None
        else need
        for part, (need, weight) in parts.items()
    }
