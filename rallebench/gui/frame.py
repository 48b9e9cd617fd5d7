"""The frame of the page: places, views, actions, and what their handlers answer.

The page is one component of HTML. Its script sends what the user does to the server functions of ``Page``; each calls a
handler that a place has registered and returns a *patch*, which the script applies. ``gui/script`` is the other half.

A patch is a dictionary: ``"#id"`` → the inner HTML of that element. Further keys: ``title``, ``go`` (an address to open),
``address`` (an address to put in place of the present one), ``say`` (a short message; ``undo``: a button in it), ``dialog`` and ``drawer`` (HTML, ""
closes), ``store`` (what this browser keeps), ``download`` (``{"name", "text"}``), ``chain`` (the chain in the header).
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.registry import Registry
from rallebench.gui import messages
from rallebench.gui.html import escape
from rallebench.gui.patches import Patch, PatchStream, as_sent, problem
from rallebench.gui.wording import on_page
from rallebench.services.workbench import Workbench

PLACES: Registry[Callable[[Page], None]] = Registry(
    "place",
    "rallebench.gui.places",
    expects="a function (page) that registers views and actions",
    required={"label": (), "order": ()},
    traits={"label": "the text of its tab", "order": "the position of its tab, from 1"},
)

WINDOWS = 200
"""Browser windows whose state the server keeps; the longest idle one is forgotten."""


@dataclass(frozen=True)
class Event:
    """An action of the user. ``data``: the attributes of the pressed element and the fields around it."""

    action: str
    data: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    session: dict[str, Any] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """A field as text, stripped; the first value of several."""
        value = self.data.get(name, default)
        value = value[0] if isinstance(value, list) and value else value
        return default if value is None or value == [] else str(value).strip()

    def path(self, name: str) -> Path | None:
        """A field as a path, without the quotes that file managers add; None if it is empty."""
        text = self.text(name).strip("\"'").strip()
        return Path(text).expanduser() if text else None

    def many(self, name: str) -> list[str]:
        """All non-empty values of a field."""
        value = self.data.get(name) or []
        values = value if isinstance(value, list) else [value]
        return [str(item) for item in values if str(item).strip()]

    def flag(self, name: str) -> bool:
        """Return whether a box is ticked."""
        return self.data.get(name) in ("on", "true", "1", True)

    def number(self, name: str, label: str = "") -> float | None:
        """A field as a number, None if it is empty. Raises UsageError."""
        text = self.text(name).replace("−", "-")
        if not text:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise UsageError(
                f"{label or name} is {text[:60]!r}; it must be a number, or empty.", name
            )
        return number

    def whole(self, name: str, label: str = "") -> int | None:
        """A field as a whole number, None if it is empty. Raises UsageError."""
        number = self.number(name, label)
        if number is None or number == int(number):
            return None if number is None else int(number)
        raise UsageError(f"{label or name} is {number:g}; it must be a whole number.", name)

    def position(self, name: str, count: int | None = None) -> int:
        """A field as an index into a list of ``count`` entries. Raises UsageError."""
        place = self.whole(name)
        if place is None or place < 0 or (count is not None and place >= count):
            raise UsageError(
                f"There is no {name} {self.text(name)[:60]!r} any more; reload the page."
            )
        return place

    def choice(self, name: str, known: Collection[str], default: str = "") -> str:
        """A field as one of the permitted words. Raises UsageError."""
        word = self.text(name, default)
        if word not in known:
            raise UsageError(f"There is no {name} {word[:60]!r}; reload the page.")
        return word

    def file(self) -> tuple[Path, str]:
        """The first uploaded file and its original name. Raises UsageError."""
        files = self.data.get("files") or [None]
        if not isinstance(files[0], Mapping):
            raise UsageError("No file was sent; choose one.")
        return Path(files[0]["path"]), files[0]["name"]


Answer = Union[Patch, None, Iterator[Patch]]
Handler = Callable[["Page", Event], Answer]
RowsHandler = Callable[["Page", dict[str, Any], int, int], Sequence[tuple[str, str]]]


class Page:
    """All places over one workbench. Safe to use from several windows at once."""

    def __init__(self, workbench: Workbench) -> None:
        self.workbench = workbench
        self.views: dict[str, Handler] = {}
        self._backs: dict[str, str] = {}
        self._actions: dict[str, Handler] = {}
        self._rows: dict[str, RowsHandler] = {}
        self._windows: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._streams: dict[str, PatchStream] = {}
        self._lock = threading.Lock()
        self.header: Callable[[Event], Patch] | None = None  # of every view: a place may set it
        self.places = sorted(
            (PLACES.entry(name) for name in PLACES.names()), key=lambda e: e.traits["order"]
        )
        for place in self.places:
            place.value(self)
        self.actions("jobs", stop)

    # for places

    def view(self, address: str, handler: Handler, *, back: str = "") -> None:
        """Register ``handler`` for the address ``#/PLACE/VIEW``; the first view of a place is that of its tab.

        ``back``: the view that opens, with the error as a message, if the named thing cannot be opened.
        """
        self._file(self.views, address, handler)
        self._backs[address] = back

    def action(self, name: str, handler: Handler) -> None:
        """Register ``handler`` for elements with ``data-do="name"``."""
        self._file(self._actions, name, handler)

    def actions(self, part: str, *handlers: Handler) -> None:
        """Register actions under their handlers' names: ``delete`` of "runs" is "runs.delete", ``try_`` "….try"."""
        for handler in handlers:
            self.action(f"{part}.{handler.__name__.rstrip('_')}", handler)

    def rows(self, name: str, handler: RowsHandler) -> None:
        """Register ``handler`` as the source of windowed lists called ``name``."""
        self._file(self._rows, name, handler)

    @staticmethod
    def _file(handlers: dict[str, Any], name: str, handler: Any) -> None:
        if name in handlers:
            raise ValueError(f"two places claim {name!r}")
        handlers[name] = handler

    def first_view(self, place: str) -> str:
        """The view that a place's tab opens."""
        return next(view for view in self.views if view.startswith(f"{place}/"))

    # for tests and the server functions

    def session(self, window: str) -> dict[str, Any]:
        """The server's state of a browser window."""
        with self._lock:
            session = self._windows.setdefault(window, {"window": window})
            self._windows.move_to_end(window)
            while len(self._windows) > WINDOWS:
                self._windows.popitem(last=False)
            return session

    def handle(self, message: Mapping[str, Any]) -> Answer:
        """The answer of the handler that a message names. Raises RalleError."""
        name, window = str(message.get("action", "")), str(message.get("window", ""))
        data = message.get("data") or {}
        query = {str(k): str(v) for k, v in (message.get("query") or {}).items()}
        event = Event(name, data, query, self.session(window))
        if name == "open":
            return self._open(str(data.get("view", "")), event)
        if name not in self._actions:
            raise UsageError("The page is older than the program; reload it.")
        return self._actions[name](self, event)

    def _open(self, view: str, event: Event) -> Answer:
        """The patch of a view, with the chain in the header."""
        if view not in self.views:
            first = self.first_view(self.places[0].name)
            return {"go": f"#/{first}", "say": "The page has no such address; this is Build."}
        try:
            answer = self.views[view](self, event)
        except RalleError as error:
            if not self._backs[view]:
                raise
            answer = {"go": f"#/{self._backs[view]}", "say": on_page(error)}
        header = self.header(event) if self.header is not None else {}
        if answer is None or isinstance(answer, dict):
            return {**header, **(answer or {})}
        return _after(header, answer)

    def call(
        self, action: str, data: Mapping[str, Any] | None = None, *, window: str = "w", **query: str
    ) -> Patch:
        """Perform an action to its end and return its patches merged: for tests, scripts, and handlers that reuse another's patch.

        Raises RalleError.
        """
        answer = self.handle(
            {"action": action, "data": data or {}, "window": window, "query": query}
        )
        if answer is None or isinstance(answer, dict):
            return answer or {}
        merged: Patch = {}
        for patch in answer:
            merged |= patch
        merged.pop("meanwhile", None)
        return merged

    def open(self, address: str, *, window: str = "w") -> Patch:
        """Open ``place/view?key=value`` as the browser does."""
        from urllib.parse import parse_qsl

        view, _, query = address.removeprefix("#/").partition("?")
        return self.call("open", {"view": view}, window=window, **dict(parse_qsl(query)))

    # server functions: what the page's script calls; each takes one argument and never raises

    def act(self, message: dict[str, Any]) -> Patch:
        """Perform an action.

        Returns its patch, or ``{"stream": id}`` for an action that continues. It ends the stream of an older
        message with the same action; ``number`` tells which is older, since the threads of two messages may
        arrive in either order.
        """
        try:
            sent = messages.read(messages.ActMessage, message)
            answer = self.handle(sent.model_dump())
        except Exception as error:
            return problem(error)
        if answer is None or isinstance(answer, dict):
            return as_sent(answer or {})
        key = f"{sent.window} {sent.action}"
        stream = PatchStream(answer, sent.number)
        with self._lock:
            before = self._streams.get(key)
            if before is not None and before.number > stream.number:
                return {}
            self._streams = {k: s for k, s in self._streams.items() if not s.over}
            self._streams[key] = stream
        if before is not None:
            before.stop(shows=False)
        stream.start()
        return {"stream": stream.id}

    def more(self, message: dict[str, Any]) -> Patch:
        """The next patch of a stream; ``over`` is true in the last one."""
        try:
            stream = self._stream(messages.read(messages.MoreMessage, message).stream)
        except UsageError as error:
            return {**problem(error), "over": True}
        return {"over": True} if stream is None else as_sent(stream.take())

    async def wait_for_more(self, message: dict[str, Any]) -> None:
        """Wait as ``more`` does, but without a thread, so that silent streams do not use up the page's threads."""
        with suppress(UsageError):  # ``more`` reports the error
            stream = self._stream(messages.read(messages.MoreMessage, message).stream)
            if stream is not None:
                await stream.wait()

    def stop(self, message: dict[str, Any]) -> Patch:
        """End the stream of an action in a window."""
        try:
            sent = messages.read(messages.StopMessage, message)
        except UsageError as error:
            return problem(error)
        with self._lock:
            stream = self._streams.get(f"{sent.window} {sent.action}")
        if stream is not None:
            stream.stop()
        return {}

    def close(self) -> None:
        """End all streams at shutdown."""
        with self._lock:
            streams = list(self._streams.values())
        for stream in streams:
            stream.stop(shows=False)

    def list_rows(self, message: dict[str, Any]) -> Patch:
        """Rows ``start`` to ``start + count`` of a windowed list."""
        try:
            sent = messages.read(messages.RowsMessage, message)
            if sent.list not in self._rows:
                raise UsageError("The page is older than the program; reload it.")
            key = {name: "" if value is None else value for name, value in sent.key.items()}
            key["window"] = sent.window
            rows = self._rows[sent.list](self, key, sent.start, min(sent.count, 500))
            return {"rows": [(id, str(escape(row))) for id, row in rows]}
        except Exception as error:
            return problem(error)

    def _stream(self, stream: str) -> PatchStream | None:
        with self._lock:
            return next((s for s in self._streams.values() if s.id == stream), None)


def _after(first: Patch, rest: Iterator[Patch]) -> Iterator[Patch]:
    yield first
    yield from rest


def stop(page: Page, event: Event) -> Patch:
    """Stop a job; its own news show it."""
    page.workbench.jobs.stop(event.text("id"))
    return {"say": "Stopping. Finished work is kept."}
