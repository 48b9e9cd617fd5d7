"""Modules of other distributions that add to a registry, by the entry-point group ``rallebench.<registry>``.

A plug-in that fails to import is left out with one warning, together with all names that it registered before.
"""

from __future__ import annotations

import importlib.metadata
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

_LOG = logging.getLogger(__name__)
_UNDO: ContextVar[list[Callable[[], object]] | None] = ContextVar("undo", default=None)
"""During the import of a plug-in: calls that undo its registrations."""
_BROKEN: dict[tuple[str, str], str] = {}
"""(distribution, module) → its warning."""
_PREFIX = "rallebench."
LONGEST_REASON = 300
"""Characters of an error's text in a warning."""

Points = dict[str, list[tuple[str, importlib.metadata.EntryPoint]]]
"""Group → (distribution, entry point)."""


@lru_cache(maxsize=1)
def _entry_points(path: tuple[str, ...]) -> Points:
    """The entry points for registries of all distributions on ``path`` (``sys.path``), by name; the first one of a name
    counts."""
    points: Points = {}
    seen: set[str] = set()
    for distribution in importlib.metadata.distributions():
        if _PREFIX not in _text(distribution):
            continue
        owner = _owner(distribution)
        if owner in seen:
            continue
        seen.add(owner)
        try:
            for point in distribution.entry_points:
                if point.group.startswith(_PREFIX):
                    points.setdefault(point.group, []).append((owner, point))
        except Exception as error:
            _leave_out(owner, "", "its file entry_points.txt cannot be read", error)
    return {group: sorted(pairs, key=lambda pair: pair[0]) for group, pairs in points.items()}


def _text(distribution: importlib.metadata.Distribution) -> str:
    try:
        return distribution.read_text("entry_points.txt") or ""
    except (OSError, ValueError):
        return ""


def _owner(distribution: importlib.metadata.Distribution) -> str:
    """The name of a distribution; a damaged one has none."""
    try:
        return str(distribution.metadata["Name"] or "without a name")
    except Exception:
        return "without a name"


def import_plugins(registry: str, kind: str) -> None:
    """Import the plug-ins of a registry with entries of ``kind``; warn once about each failure."""
    for owner, point in _entry_points(tuple(sys.path)).get(f"{_PREFIX}{registry}", ()):
        module = point.value.partition(":")[0].strip()
        if (owner, module) in _BROKEN:
            continue
        try:
            with _undone_on_failure():
                point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also SystemExit, and exceptions of a test framework
            fault = f"its module {module}, which adds a {kind}, cannot be imported"
            _leave_out(owner, module, fault, error)


def _leave_out(owner: str, module: str, fault: str, error: BaseException) -> None:
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_REASON]
    _BROKEN[owner, module] = sentence = (
        f"The plug-in {owner!r} is left out: {fault} ({reason}); update or uninstall {owner}."
    )
    _LOG.warning(sentence)


def plugin_warnings() -> tuple[str, ...]:
    """A sentence for each plug-in that was left out, for the registries read so far."""
    return tuple(_BROKEN.values())


@contextmanager
def _undone_on_failure() -> Iterator[None]:
    undo: list[Callable[[], object]] = []
    token = _UNDO.set(undo)
    try:
        yield
    except BaseException:
        for call in reversed(undo):
            call()
        raise
    finally:
        _UNDO.reset(token)


def importing() -> bool:
    """Return whether this thread is importing a plug-in."""
    return _UNDO.get() is not None


def undo_on_failure(call: Callable[[], object]) -> None:
    """Call ``call`` if the plug-in in progress fails to import; outside an import, do nothing."""
    undo = _UNDO.get()
    if undo is not None:
        undo.append(call)
