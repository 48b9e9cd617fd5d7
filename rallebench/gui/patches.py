"""Responses of the page's handlers: changes to parts of the page, merged, and serialised for the script."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.gui.html import escape
from rallebench.gui.wording import on_page

log = logging.getLogger(__name__)

BUG = "rallebench met an unexpected error"
"""Start of the sentence about an unexpected error."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file for the browser to save: its ``text``, or its bytes in ``base64``."""

    name: str
    text: str = ""
    base64: str = ""
    type: str = ""

    def to_json(self) -> dict[str, Any]:
        content = {"base64": self.base64} if self.base64 else {"text": self.text}
        return {"name": self.name, **content, **({"type": self.type} if self.type else {})}


@dataclass(frozen=True, slots=True)
class PageEvent:
    """An event for the script of a place. ``index``: index of an action; ``list``: name of a windowed list; ``run``:
    name of a run.
    """

    name: str
    index: int | None = None
    list: str = ""
    run: str = ""

    def to_json(self) -> dict[str, Any]:
        values = (("index", self.index), ("list", self.list), ("run", self.run))
        return {
            "name": self.name,
            **{key: value for key, value in values if value not in (None, "")},
        }


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of the page.

    ``html``: element id → its new inner HTML. ``title``: the window's title. ``go``: an address to open; ``address``:
    an address that replaces the current one. ``say``: a short message, with an optional ``undo`` button. ``dialog``,
    ``drawer``: HTML; "" closes it. ``chain``: the chain in the header. ``store``: values for the browser to store;
    None removes a value. ``sound``: True if earlier problems are resolved. ``problem``: the sentence of an error,
    shown at the field ``at_field``. ``stream``: number of a stream that has started; ``over``: True if it has ended.
    ``meanwhile``: the patch for a stream that is waiting (False) or was stopped by the user (True); it stays on the
    server.
    """

    html: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    go: str = ""
    address: str = ""
    say: str = ""
    undo: str = ""
    dialog: str | None = None
    drawer: str | None = None
    chain: str = ""
    store: Mapping[str, str | None] = field(default_factory=dict)
    download: Download | None = None
    event: PageEvent | None = None
    sound: bool = False
    problem: str = ""
    at_field: str = ""
    stream: str = ""
    over: bool = False
    meanwhile: Meanwhile | None = None

    def __bool__(self) -> bool:
        """Return whether anything changes."""
        return self != NO_CHANGE

    def __or__(self, later: Patch) -> Patch:
        """Combine both changes. A later part replaces an earlier one and is moved to the end, because it may be
        inside other parts.
        """
        earlier = {id: part for id, part in self.html.items() if id not in later.html}
        changed = {
            part.name: getattr(later, part.name)
            for part in fields(later)
            if getattr(later, part.name) != getattr(NO_CHANGE, part.name)
        }
        whole = {"html": {**earlier, **later.html}, "store": {**self.store, **later.store}}
        return replace(self, **{**changed, **whole})

    def to_json(self) -> dict[str, Any]:
        """Return the patch in the form that ``script/patches.js`` applies in order. Values inserted as HTML are
        escaped.
        """
        panels = {"dialog": self.dialog, "drawer": self.drawer}
        drawn = {"chain": self.chain, "undo": self.undo}
        return {
            **{name: _html(panel) for name, panel in panels.items() if panel is not None},
            **{f"#{id}": _html(part) for id, part in self.html.items()},
            **{name: _html(part) for name, part in drawn.items() if part},
            **self._values(),
            **({"store": dict(self.store)} if self.store else {}),
            **({"download": self.download.to_json()} if self.download else {}),
            **({"event": self.event.to_json()} if self.event else {}),
        }

    def _values(self) -> dict[str, Any]:
        """Return the parts that are not HTML."""
        values = (
            ("title", self.title),
            ("say", self.say),
            ("sound", self.sound),
            ("problem", self.problem),
            ("field", self.at_field),
            ("address", self.address),
            ("go", self.go),
            ("stream", self.stream),
            ("over", self.over),
        )
        return {key: value for key, value in values if value}

    @property
    def is_bug(self) -> bool:
        """Return whether the patch reports an unexpected error."""
        return self.problem.startswith(BUG)


Meanwhile = Callable[[bool], Patch]
NO_CHANGE = Patch()


def _html(value: str) -> str:
    """Escape a value that the script inserts as HTML, unless it is ``Markup``."""
    return str(escape(value))


def merge(patches: Iterator[Patch]) -> Patch:
    """Merge all patches of a response, leaving out those for waiting."""
    merged = Patch()
    for patch in patches:
        merged |= patch
    return replace(merged, meanwhile=None)


def problem(error: Exception) -> Patch:
    """Return the patch that shows an error at its field; a bug also prints its traceback to stderr."""
    if isinstance(error, RalleError):
        return Patch(problem=on_page(error), at_field=error.setting or "")
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        sentence = "A name or a path is longer than this system permits; use a shorter one."
        return Patch(problem=sentence)
    log.error("The page met an unexpected error.", exc_info=error)
    name = type(error).__name__
    return Patch(problem=f"{BUG} ({name}: {str(error)[:200]}). Reload the page.")
