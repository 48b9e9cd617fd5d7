"""Leases of models and retrievers: what a lease holds cannot be unloaded."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Protocol

from rallebench.core.backends import Backends
from rallebench.core.events import Progress

PAUSE = 0.02
"""Seconds between two looks whether all leases are closed."""


class Loader(Protocol):
    """Loads what a lease holds; ``services.models.ModelManager`` does."""

    leases: Leases

    @property
    def backends(self) -> Backends:
        """All that is loaded."""

    def is_loaded_as(self, name: str, kind: str) -> bool:
        """Return whether it is loaded; ``kind`` is ``retriever`` or ``language model``."""

    def refuse_heavy(self, name: str, kind: str) -> None:
        """Raise NotFoundError for a heavy model that is not loaded."""

    def begin_together(self, loads: Iterable[tuple[str, str]]) -> None:
        """Begin the light ones of these loads, each (name, kind), side by side."""

    def load(self, name: str, kind: str) -> Iterator[str]:
        """Load it, yielding progress."""


class Lease:
    """Models and retrievers that ``holder`` uses; they cannot be unloaded until the lease is closed.

    Use it in ``with``, or ``close`` it. ``holder`` is what a refusal names, as in "the sweep 'ks'". A lease grows with
    every ``load_for``: a sweep has one for all of its variants.
    """

    def __init__(self, models: Loader, holder: str) -> None:
        self.holder = holder
        self._models = models

    def load_for(
        self, llms: Iterable[str], retrievers: Iterable[str], *, heavy: bool = True
    ) -> Generator[Progress, None, Backends]:
        """Load and hold these models and retrievers; returns all that is loaded.

        Small ones are loaded side by side, others one after the other, models first. With ``heavy`` false a model that may
        take gigabytes must be loaded already. Raises RalleError.
        """
        loads = [(name, "language model") for name in llms]
        loads += [(name, "retriever") for name in retrievers]
        for name, kind in () if heavy else loads:
            self._models.refuse_heavy(name, kind)
        new = [name for name, _ in loads if self._models.leases.hold(self, name)]
        try:
            self._models.begin_together(loads)
            for name, kind in loads:
                for message in self.load(name, kind, heavy=heavy):
                    yield Progress("", message=message)
        except BaseException:
            self.release(new)
            raise
        return self._models.backends

    def load(self, name: str, kind: str, *, heavy: bool = True) -> Iterator[str]:
        """Load and hold a ``retriever`` or ``language model``, yielding progress. Raises RalleError."""
        new = self._models.leases.hold(
            self, name
        )  # before it is loaded, so that it is never loaded but free
        try:
            if not self._models.is_loaded_as(name, kind):
                if not heavy:
                    self._models.refuse_heavy(name, kind)
                yield from self._models.load(name, kind)
        except BaseException:
            if new:
                self.release([name])
            raise

    def hold(self, names: Iterable[str]) -> Lease:
        """Hold ``names``, whether they are loaded or not."""
        for name in names:
            self._models.leases.hold(self, name)
        return self

    def release(self, names: Iterable[str]) -> None:
        """Hold these no longer; they stay loaded."""
        self._models.leases.release(self, names)

    def close(self) -> None:
        self._models.leases.release(self)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


class Leases:
    """Name → the leases that hold it. Two leases may have one holder: each counts."""

    def __init__(self) -> None:
        self._held: dict[str, list[Lease]] = {}
        self._lock = threading.Lock()

    def hold(self, lease: Lease, name: str) -> bool:
        """Let ``lease`` hold a name; whether it did not before."""
        with self._lock:
            leases = self._held.setdefault(name, [])
            new = lease not in leases
            if new:
                leases.append(lease)
            return new

    def release(self, lease: Lease, names: Iterable[str] | None = None) -> None:
        """End the hold of ``lease`` on ``names``, by default on all."""
        with self._lock:
            for name in list(self._held) if names is None else list(names):
                rest = [other for other in self._held.get(name, ()) if other is not lease]
                self._held.pop(name, None)
                if rest:
                    self._held[name] = rest

    def holders(self, name: str, parts: Mapping[str, Iterable[tuple[str, str]]]) -> list[str]:
        """The holders of ``name``, and of all that it is a part of. ``parts``: name → (part, kind) of its parts."""
        with self._lock:
            holders: dict[str, None] = {}
            todo, seen = [name], set[str]()
            while todo:
                part = todo.pop()
                seen.add(part)
                holders |= dict.fromkeys(lease.holder for lease in self._held.get(part, ()))
                todo += [
                    whole
                    for whole, of in parts.items()
                    if whole not in seen and part in [member for member, _ in of]
                ]
            return list(holders)

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is held, at most ``seconds``; whether nothing is."""
        deadline = time.monotonic() + seconds
        while self._held and time.monotonic() < deadline:
            time.sleep(PAUSE)
        return not self._held
