"""Names registered by the package's own modules, known without importing these modules.

``registered.json`` lists them: registry → module → name → a line and the plain traits. ``python -m tools.docs`` writes it
and a test compares it. The file only saves time. A module that is not listed is imported, so a new file works at once. The
entry itself always comes from its module.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "registered.json"
Plain = str | int | float | bool | None
Modules = Mapping[str, Mapping[str, "Listed"]]
"""Module → name → its listing."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A name as shown in lists: a line about it, and its traits as far as JSON can hold them."""

    name: str
    about: str = ""
    traits: Mapping[str, Plain] = field(default_factory=dict)


def read_listings(registry: str) -> Modules:
    """Read the modules that ``registered.json`` lists for a registry; some may no longer exist."""
    return {
        module: {name: Listed(name, about, traits) for name, (about, traits) in names.items()}
        for module, names in _document().get(registry, {}).items()
    }


@lru_cache(maxsize=1)
def _document() -> dict[str, dict[str, dict[str, tuple[str, dict[str, Plain]]]]]:
    """The content of the file; empty if it is damaged, for example by a merge. Then all modules are imported."""
    document: dict[str, dict[str, dict[str, tuple[str, dict[str, Plain]]]]] = {}
    with suppress(OSError, ValueError):
        document = json.loads(FILE.read_text("utf-8"))
    return document


def text(registries: Mapping[str, Modules]) -> str:
    """The text of ``registered.json``: one line per name, so that two additions seldom touch the same line."""
    parts = []
    for registry, modules in sorted(registries.items()):
        blocks = []
        for module, names in sorted(modules.items()):
            lines = ",\n".join(
                f"   {json.dumps(name)}: {json.dumps([item.about, dict(item.traits)], ensure_ascii=False)}"
                for name, item in sorted(names.items())
            )
            blocks.append(
                f"  {json.dumps(module)}: {{\n{lines}\n  }}"
                if lines
                else f"  {json.dumps(module)}: {{}}"
            )
        parts.append(f" {json.dumps(registry)}: {{\n" + ",\n".join(blocks) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def modules(package: str) -> Iterator[str]:
    """The modules of a package and its subpackages, without names that begin with ``_``."""
    for folder in importlib.import_module(package).__path__:
        yield from _modules(package, Path(folder))


def _modules(package: str, folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(("_", ".")):
            continue
        if path.suffix == ".py":
            yield f"{package}.{path.stem}"
        elif (path / "__init__.py").is_file():
            yield f"{package}.{path.name}"
            yield from _modules(f"{package}.{path.name}", path)


def room_modules(rooms: str, patterns: tuple[str, ...]) -> Iterator[str]:
    """The modules that match one of the patterns, in each folder of the package ``rooms``."""
    for module in modules(rooms):
        name = module.removeprefix(f"{rooms}.").partition(".")[2]
        if name and any(fnmatchcase(name, pattern) for pattern in patterns):
            yield module
