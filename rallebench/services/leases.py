"""Leases of models and retrievers. Leased items cannot be unloaded."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Protocol

from rallebench.core.backends import Backends
from rallebench.core.events import Progress

PAUSE = 0.02
"""Seconds between checks for open leases."""


class Loader(Protocol):
    """Loads the items of a lease; implemented by ``services.models.ModelManager``."""

    leases: Leases

    @property
    def backends(self) -> Backends:
        """Everything that is loaded."""

    def is_loaded_as(self, name: str, kind: str) -> bool:
        """Return whether an item is loaded; ``kind`` is ``retriever`` or ``language model``."""

    def refuse_heavy(self, name: str, kind: str) -> None:
        """Raise NotFoundError if a heavy model is not loaded."""

    def begin_together(self, loads: Iterable[tuple[str, str]]) -> None:
        """Start the light loads among these (name, kind) pairs concurrently."""

    def load(self, name: str, kind: str) -> Iterator[str]:
        """Load an item, yielding progress."""


class Lease:
    """Models and retrievers in use by ``holder``; they cannot be unloaded until the lease is closed.

    Use it with ``with``, or ``close`` it. ``holder`` appears in refusals, as in "the sweep 'ks'". Every ``load_for``
    extends the lease, so a sweep needs only one for all its variants.
    """

    def __init__(self, models: Loader, holder: str) -> None:
        self.holder = holder
        self._models = models

    def load_for(
        self, llms: Iterable[str], retrievers: Iterable[str], *, heavy: bool = True
    ) -> Generator[Progress, None, Backends]:
        """Load and hold these models and retrievers; return everything that is loaded.

        Small items are loaded concurrently, others one after another, models first. If ``heavy`` is false, models
        that may take gigabytes must already be loaded. Raises RalleError.
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
        )  # hold before loading, so it cannot be unloaded in between
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
        """Hold ``names``, loaded or not."""
        for name in names:
            self._models.leases.hold(self, name)
        return self

    def release(self, names: Iterable[str]) -> None:
        """Stop holding these names; they stay loaded."""
        self._models.leases.release(self, names)

    def close(self) -> None:
        self._models.leases.release(self)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


class Leases:
    """Name → the leases that hold it. Leases with the same holder count separately."""

    def __init__(self) -> None:
        self._held: dict[str, list[Lease]] = {}
        self._lock = threading.Lock()

    def hold(self, lease: Lease, name: str) -> bool:
        """Let ``lease`` hold a name; return whether that is new."""
        with self._lock:
            leases = self._held.setdefault(name, [])
            new = lease not in leases
            if new:
                leases.append(lease)
            return new

    def release(self, lease: Lease, names: Iterable[str] | None = None) -> None:
        """Release ``names`` from ``lease``; by default all."""
        with self._lock:
            for name in list(self._held) if names is None else list(names):
                rest = [other for other in self._held.get(name, ()) if other is not lease]
                self._held.pop(name, None)
                if rest:
                    self._held[name] = rest

    def holders(self, name: str, parts: Mapping[str, Iterable[tuple[str, str]]]) -> list[str]:
        """Return the holders of ``name`` and of everything that contains it. ``parts``: name → (part, kind) of its
        parts.
        """
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
        """Wait up to ``seconds`` until nothing is held; return whether nothing is."""
        deadline = time.monotonic() + seconds
        while self._held and time.monotonic() < deadline:
            time.sleep(PAUSE)
        return not self._held
