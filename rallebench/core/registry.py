"""Registries of named things: one file per thing, in its package's folder or in another distribution.

The rooms of the papers add to several registries; a registry finds their modules by the patterns that it declares. A
registry knows the names of its modules without importing them (:mod:`rallebench.core.registered`) and imports only the
module of the requested entry. A new file needs no list to edit: an unknown module is imported with the first list of
names. Plug-ins (:mod:`rallebench.core.plugins`) are imported for the first list of names, or for a name that no module of
the package has.
"""

from __future__ import annotations

import difflib
import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rallebench.core import plugins, registered
from rallebench.core.errors import NotFoundError
from rallebench.core.registered import Listed
from rallebench.core.settings import Setting, check_form

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

ROOMS = "rallebench.papers"
"""The package of rooms: folders that add to several registries each."""


@dataclass(frozen=True, slots=True)
class Entry(Generic[T_co]):
    """A registered thing: its name, the thing, a line about it, its traits for callers, and its settings."""

    name: str
    value: T_co
    about: str = ""
    traits: Mapping[str, Any] = field(default_factory=dict)
    form: Mapping[str, Setting] = field(default_factory=dict)
    module: str = ""

    @property
    def listing(self) -> Listed:
        """The entry as shown in lists."""
        plain = {k: v for k, v in self.traits.items() if isinstance(v, _PLAIN)}
        return Listed(self.name, self.about, plain)


@dataclass(frozen=True, slots=True)
class RegisteredForm:
    """A registered thing with its settings, as it is printed."""

    name: str
    about: str
    form: Mapping[str, Setting]

    def to_json(self) -> dict[str, Any]:
        settings = [
            {
                "name": name,
                "default": setting.default,
                "about": setting.about,
                "must_be": setting.must_be,
                "takes": setting.takes,
            }
            for name, setting in self.form.items()
        ]
        return {"name": self.name, "about": self.about, "settings": settings}


_PLAIN = (str, int, float, bool, type(None))


class Registry(Generic[T]):
    """``kind`` is the singular noun for messages; ``package`` the folder to import.

    ``expects``: the protocol of an entry in words, and ``has`` the attributes that are checked. ``traits``: name →
    meaning, for all traits of an entry. ``required``: the required traits → their permitted values, () for any. ``name``:
    the registry's own, by default the last part of ``package``; the entry-point group for other distributions is
    ``rallebench.<name>``. ``rooms``: names, or patterns, of the modules of a room that add to this registry. ``includes``:
    another registry; each of its names is also registered here, by one of the package's modules.
    """

    def __init__(
        self,
        kind: str,
        package: str,
        *,
        expects: str = "a function",
        has: tuple[str, ...] = ("__call__",),
        traits: Mapping[str, str] | None = None,
        required: Mapping[str, tuple[str, ...]] | None = None,
        name: str = "",
        rooms: tuple[str, ...] = (),
        includes: Registry[Any] | None = None,
    ) -> None:
        self.kind = kind
        self.package, self.module = package, _calling_module()
        self.name = name or package.rpartition(".")[2]
        self.expects, self.has = expects, has
        self.traits = dict(traits or {})
        self.required = dict(required or {})
        self.rooms = rooms
        self.includes = includes
        self._entries: dict[str, Entry[T]] = {}
        self._known: dict[str, Listed] = {}
        self._modules: dict[str, str] = {}
        self._read = self._loaded = False
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
        **traits: object,
    ) -> Callable[[T], T]:
        """Decorator: file a thing under ``name``, with the ``form`` of its settings.

        ``about`` defaults to its docstring's first line. Raises ValueError for a name that another thing has, a thing
        without the registry's attributes, an undeclared or missing trait, and a form that refuses its own defaults.
        """
        owner = f"{self.kind} {name!r}"
        self._check_traits(owner, traits)
        check_form(owner, form or {})

        module = _calling_module()

        def file(value: T) -> T:
            self._check_value(owner, value)
            known = self._read_known()
            if plugins.importing() and name in known and self._modules[name] != module:
                raise ValueError(f"the {owner} is one of rallebench's own; choose another name")
            other = self._entries.get(name)
            if other is not None and other.value is not value:
                owners = f"{other.module} and {module}"
                raise ValueError(f"two {self.kind}s claim the name {name!r}: {owners}")
            doc = about or (value.__doc__ or "").strip().split("\n")[0]
            self._entries[name] = Entry(name, value, doc, traits, dict(form or {}), module)
            if self._modules.get(name) != module:  # a plug-in may import our modules
                plugins.undo_on_failure(lambda: self._entries.pop(name, None))
            return value

        return file

    def _check_traits(self, owner: str, traits: Mapping[str, Any]) -> None:
        for trait in traits:
            if trait not in self.traits:
                raise ValueError(f"the {owner}: {unknown('trait', trait, list(self.traits))}")
        for trait, permitted in self.required.items():
            if trait not in traits:
                raise ValueError(f"the {owner} lacks the trait {trait!r}: {self.traits[trait]}")
            if permitted and traits[trait] not in permitted:
                raise ValueError(f"the {owner}: {unknown(trait, str(traits[trait]), permitted)}")

    def _check_value(self, owner: str, value: T) -> None:
        missing = [name for name in self.has if not hasattr(value, name)]
        if missing:
            lacks = "cannot be called" if missing == ["__call__"] else f"lacks {', '.join(missing)}"
            text = f"{type(value).__name__} {value!r}"[:100]
            raise ValueError(f"the {owner} is {self.expects}; {text} {lacks}")

    def _read_known(self) -> Mapping[str, Listed]:
        """Read the names that are known without importing their modules; these modules must still exist."""
        with self._lock:
            if not self._read:
                here = set(self._module_names())
                for module, listings in registered.read_listings(self.name).items():
                    if module in here:
                        self._known |= listings
                        self._modules |= dict.fromkeys(listings, module)
                self._read = True
        return self._known

    def _module_names(self) -> Iterator[str]:
        yield from registered.modules(self.package)
        if self.rooms:
            yield from registered.room_modules(ROOMS, self.rooms)

    def _load_unknown(self) -> None:
        """Import the package's unknown modules, and the plug-ins."""
        with self._lock:
            if self._loaded:
                return
            self._read_known()
            known = registered.read_listings(self.name)
            for module in self._module_names():
                if module not in known:
                    importlib.import_module(module)
            plugins.import_plugins(self.name, self.kind)
            self._loaded = True
            if self.includes and not {*self.includes.names()} <= {*self._known, *self._entries}:
                self.load()

    def load(self) -> Mapping[str, Mapping[str, Listed]]:
        """Import every module of the package; return the names registered by each."""
        with self._lock:
            names: dict[str, dict[str, Listed]] = {}
            for module in self._module_names():
                importlib.import_module(module)
                names[module] = {}
            for entry in self._entries.values():
                if entry.module in names:
                    names[entry.module][entry.name] = entry.listing
            return names

    def names(self) -> tuple[str, ...]:
        """All names in alphabetical order; modules with known names are not imported."""
        self._load_unknown()
        return tuple(sorted({*self._read_known(), *self._entries}))

    def listing(self, name: str) -> Listed:
        """The line and the plain traits of a name. Raises NotFoundError with the nearest names."""
        known = self._read_known().get(name)
        return known if known and name not in self._entries else self.entry(name).listing

    def listings(self) -> dict[str, Listed]:
        """Name → its line and plain traits, in alphabetical order."""
        return {name: self.listing(name) for name in self.names()}

    def entry(self, name: str) -> Entry[T]:
        """The entry of ``name``. Raises NotFoundError with the nearest names."""
        if name not in self._entries and name in self._read_known():
            importlib.import_module(self._modules[name])
        if name not in self._entries:
            self._load_unknown()
        if name not in self._entries:
            self.load()  # registered.json may be out of date
        if name not in self._entries:
            raise NotFoundError(unknown(self.kind, name, tuple(sorted(self._entries))))
        return self._entries[name]

    def __getitem__(self, name: str) -> T:
        return self.entry(name).value

    def __contains__(self, name: object) -> bool:
        if name in self._entries or name in self._read_known():
            return True
        self._load_unknown()
        return name in self._entries


_ALL: dict[str, Registry[Any]] = {}


def _calling_module() -> str:
    """The module that is being executed, even if through functions of others: it makes a registry or registers a thing."""
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))


def all() -> dict[str, Registry[object]]:
    """Name → registry, for every registry of an imported package."""
    return dict(_ALL)


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
