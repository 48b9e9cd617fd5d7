"""Registries of named things: one file per thing in its package's folder.

A registry imports the modules of its package on first use, so a new file needs no list to edit. A module that fails to
import says so with its file name; two files with one name are refused.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rallebench.core.errors import NotFoundError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A registered thing: its name, the thing, a line about it, and its traits for the callers."""

    name: str
    value: T
    about: str = ""
    traits: Mapping[str, Any] = field(default_factory=dict)


class Registry(Generic[T]):
    """``kind`` is the singular noun for messages; ``package`` the folder to import."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._entries: dict[str, Entry[T]] = {}
        self._loaded = False
        self._lock = threading.RLock()

    def register(self, name: str, *, about: str = "", **traits: Any) -> Callable[[T], T]:
        """Decorator: file a thing under ``name``. ``about`` defaults to its docstring's first line."""

        def file(value: T) -> T:
            if name in self._entries and self._entries[name].value is not value:
                raise ValueError(f"two {self.kind}s claim the name {name!r}")
            doc = about or (value.__doc__ or "").strip().split("\n")[0]
            self._entries[name] = Entry(name, value, doc, traits)
            return value

        return file

    def _load(self) -> None:
        with self._lock:
            if self._loaded:
                return
            folder = importlib.import_module(self.package)
            for module in pkgutil.iter_modules(folder.__path__):
                if not module.name.startswith("_"):
                    importlib.import_module(f"{self.package}.{module.name}")
            self._loaded = True

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        self._load()
        return tuple(sorted(self._entries))

    def entry(self, name: str) -> Entry[T]:
        """The entry of ``name``. Raises NotFoundError with the nearest names."""
        self._load()
        if name not in self._entries:
            raise NotFoundError(unknown(self.kind, name, self.names()))
        return self._entries[name]

    def __getitem__(self, name: str) -> T:
        return self.entry(name).value

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._entries


def unknown(kind: str, name: str, known: tuple[str, ...] | list[str]) -> str:
    """One sentence for an unknown name, with the nearest known names.

    >>> unknown("metric", "rougel2", ["em", "rougel"])
    "There is no metric 'rougel2'. Did you mean 'rougel'? Known: em, rougel."
    """
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    hint = f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    listed = ", ".join(list(known)[:30]) + (", …" if len(known) > 30 else "")
    return f"There is no {kind} {name!r}.{hint} " + (
        f"Known: {listed}." if known else "None is known yet."
    )
