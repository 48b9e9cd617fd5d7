"""Registries of named things: one file per thing in its package's folder, or in another distribution.

A registry imports the modules of its package, and of the packages in it, on first use, so a new file needs no list to edit; then those
of the papers' rooms whose names it declares; then the modules that installed distributions name in the entry-point group
``rallebench.<registry>``, so that such a file may come from anywhere. A module that fails to import says so with its file name; two files with one name are refused.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import pkgutil
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.settings import Setting, check_form

T = TypeVar("T")

ROOMS = "rallebench.papers"
"""The package of rooms: folders that each add to several registries."""


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A registered thing: its name, the thing, a line about it, its traits for the callers, and its settings."""

    name: str
    value: T
    about: str = ""
    traits: Mapping[str, Any] = field(default_factory=dict)
    form: Mapping[str, Setting] = field(default_factory=dict)


class Registry(Generic[T]):
    """``kind`` is the singular noun for messages; ``package`` the folder to import.

    ``traits``: name → what it says, for all traits that an entry may have. ``name``: the registry's own, by default the
    last part of ``package``; the entry-point group of other distributions is ``rallebench.<name>``. ``rooms``: names, or
    patterns, of the modules of a room that add to this registry.
    """

    def __init__(
        self,
        kind: str,
        package: str,
        *,
        traits: Mapping[str, str] | None = None,
        name: str = "",
        rooms: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.package = package
        self.name = name or package.rpartition(".")[2]
        self.traits = dict(traits or {})
        self.rooms = rooms
        self._entries: dict[str, Entry[T]] = {}
        self._loaded = False
        self._lock = threading.RLock()
        namesake = _ALL.setdefault(self.name, self)
        if (namesake.kind, namesake.package) != (kind, package):
            raise ValueError(
                f"two registries claim the name {self.name!r}; give one of them another"
            )

    def register(
        self,
        name: str,
        *,
        about: str = "",
        form: Mapping[str, Setting] | None = None,
        **traits: Any,
    ) -> Callable[[T], T]:
        """Decorator: file a thing under ``name``, with the ``form`` of its settings.

        ``about`` defaults to its docstring's first line. Raises ValueError for a name that another thing has, a trait that
        the registry does not declare, and a form that refuses its own defaults.
        """
        owner = f"{self.kind} {name!r}"
        for trait in traits:
            if trait not in self.traits:
                raise ValueError(f"the {owner}: {unknown('trait', trait, list(self.traits))}")
        check_form(owner, form or {})

        def file(value: T) -> T:
            if name in self._entries and self._entries[name].value is not value:
                raise ValueError(f"two {self.kind}s claim the name {name!r}")
            doc = about or (value.__doc__ or "").strip().split("\n")[0]
            self._entries[name] = Entry(name, value, doc, traits, dict(form or {}))
            return value

        return file

    def _load(self) -> None:
        with self._lock:
            if self._loaded:
                return
            _import_modules(self.package)
            _import_from_rooms(self.rooms)
            for point in _entry_points(tuple(sys.path)).select(group=f"rallebench.{self.name}"):
                self._import(point)
            self._loaded = True

    def _import(self, point: importlib.metadata.EntryPoint) -> None:
        """Import the module of another distribution. Raises BadFileError, naming the distribution."""
        try:
            point.load()
        except Exception as error:
            owner = point.dist.name if point.dist else point.value
            raise BadFileError(
                f"The distribution {owner!r} adds a {self.kind} in {point.module}, which cannot be imported "
                f"({error}); update or uninstall {owner}."
            ) from error

    def names(self) -> tuple[str, ...]:
        """All names in alphabetical order. Imports every module of the registry first; raises BadFileError."""
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


_ALL: dict[str, Registry[Any]] = {}


def _import_modules(package: str) -> None:
    """Import the modules of a package and of the packages in it, without those whose names begin with ``_``."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{package}.{module.name}")
            if module.ispkg:
                _import_modules(f"{package}.{module.name}")


def _import_from_rooms(patterns: tuple[str, ...]) -> None:
    """Import the modules of every room that match one of the patterns."""
    rooms = importlib.import_module(ROOMS).__path__ if patterns else ()
    for room in pkgutil.iter_modules(rooms):
        if room.ispkg:
            package = importlib.import_module(f"{ROOMS}.{room.name}")
            for module in pkgutil.iter_modules(package.__path__):
                if any(fnmatchcase(module.name, pattern) for pattern in patterns):
                    importlib.import_module(f"{package.__name__}.{module.name}")


def all() -> dict[str, Registry[Any]]:
    """Name → registry, for every registry whose package is imported."""
    return dict(_ALL)


class _EntryPoints(Protocol):
    """Entry points of all groups; their class differs between versions of Python."""

    def select(self, *, group: str) -> importlib.metadata.EntryPoints: ...


@lru_cache(maxsize=1)
def _entry_points(path: tuple[str, ...]) -> _EntryPoints:
    """The entry points of all distributions on ``path``, which is ``sys.path``."""
    return importlib.metadata.entry_points()


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
