"""Modules of other distributions that add to a registry, by the entry-point group ``rallebench.<registry>``.

A plug-in that cannot be imported is left out with one warning, and so are the names that it had registered before it failed.
"""

from __future__ import annotations

import importlib.metadata
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Protocol

_LOG = logging.getLogger(__name__)
_UNDO: ContextVar[list[Callable[[], object]] | None] = ContextVar("undo", default=None)
"""While a plug-in is imported: calls that take its registrations back."""
_BROKEN: dict[tuple[str, str], str] = {}


class _EntryPoints(Protocol):
    """Entry points of all groups; their class differs between versions of Python."""

    def select(self, *, group: str) -> importlib.metadata.EntryPoints: ...


@lru_cache(maxsize=1)
def _entry_points(path: tuple[str, ...]) -> _EntryPoints:
    """The entry points of all distributions on ``path``, which is ``sys.path``."""
    return importlib.metadata.entry_points()


def import_plugins(registry: str, kind: str) -> None:
    """Import the plug-ins of a registry, whose entries are of ``kind``; warn of each that fails, once."""
    for point in _entry_points(tuple(sys.path)).select(group=f"rallebench.{registry}"):
        owner = point.dist.name if point.dist else point.value
        if (owner, point.module) in _BROKEN:
            continue
        try:
            with _undone_on_failure():
                point.load()
        except (Exception, SystemExit) as error:
            _BROKEN[owner, point.module] = sentence = (
                f"The plug-in {owner!r} is left out: its module {point.module}, which adds a {kind}, cannot be "
                f"imported ({type(error).__name__}: {error}); update or uninstall {owner}."
            )
            _LOG.warning(sentence)


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
    """Return whether a plug-in is being imported by this thread."""
    return _UNDO.get() is not None


def undo_on_failure(call: Callable[[], object]) -> None:
    """Have ``call`` made if the plug-in that is being imported fails; nothing outside of one."""
    undo = _UNDO.get()
    if undo is not None:
        undo.append(call)


def warnings() -> tuple[str, ...]:
    """A sentence for each plug-in that was left out so far."""
    return tuple(_BROKEN.values())
