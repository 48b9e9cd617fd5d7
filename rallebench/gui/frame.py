"""The frame of the page: places, views and actions, and the responses of their handlers.

The page is one HTML component. Its script sends each user action to a server function of ``Page``. The function calls
the handler that a place has registered and returns a *patch*, which the script applies. ``gui/script`` contains the
script.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar, Union
from urllib.parse import parse_qsl

from rallebench.core.errors import RalleError, ReadOnlyError, UsageError
from rallebench.core.registry import Registry
from rallebench.gui import messages
from rallebench.gui.addresses import Door
from rallebench.gui.events import Event, Rows, RowWindow, TraceList, WindowState
from rallebench.gui.messages import ActMessage
from rallebench.gui.patches import Patch, merge, problem
from rallebench.gui.streams import PatchStream
from rallebench.gui.wording import on_page
from rallebench.services.workbench import Workbench

PLACES: Registry[Callable[[Page], None]] = Registry(
    "place",
    "rallebench.gui.places",
    expects="a function (page) that registers views and actions",
    required={"label": (), "order": ()},
    traits={"label": "the text of its tab", "order": "the position of its tab, from 1"},
)

MOST_ROWS = 500
"""Maximum rows of a windowed list in one response."""
WINDOWS = 200
"""Browser windows whose state the server keeps; beyond that, the longest idle window is forgotten."""


Answer = Union[Patch, None, Iterator[Patch]]
Handler = Callable[["Page", Event], Answer]
RowsHandler = Callable[["Page", RowWindow], Rows]
TraceLister = Callable[["Page", Event, Door], TraceList]
Handled = TypeVar("Handled")


class Page:
    """All places, over one workbench. Safe to use from several windows at once."""

    def __init__(self, workbench: Workbench) -> None:
        self.workbench, self.workspace = workbench, workbench.workspace
        self.views: dict[str, Handler] = {}
        self._backs: dict[str, str] = {}
        self._actions: dict[str, Handler] = {}
        self._readers: set[str] = set()
        self._rows: dict[str, RowsHandler] = {}
        self.trace_lists: dict[str, TraceLister] = {}
        self.program = secrets.token_hex(8)
        """Distinguishes this program from the one before a restart."""
        self._windows: OrderedDict[str, WindowState] = OrderedDict()
        self._streams: dict[str, PatchStream] = {}
        self._lock = threading.Lock()
        self.header: Callable[[Event], Patch] | None = (
            None  # called for every view, if a place sets it
        )
        self.places = sorted(
            (PLACES.entry(name) for name in PLACES.names()), key=lambda e: e.traits["order"]
        )
        for place in self.places:
            place.value(self)
        self.actions("jobs", stop, forget)
        if not self.workspace.read_only:
            workbench.jobs.record_in(self.workspace.cache)

    # for places

    def view(self, address: str, handler: Handler, *, back: str = "") -> None:
        """Register ``handler`` for the address ``#/PLACE/VIEW``; a place's first view opens from its tab.

        ``back``: the view to open, with the error message, if the named item cannot be opened.
        """
        self._file(self.views, address, handler)
        self._backs[address] = back

    def action(self, name: str, handler: Handler, *, reads: bool = False) -> None:
        """Register ``handler`` for elements with ``data-do="name"``.

        ``reads``: the action changes nothing but its own window, asks no model and starts no job, so that a read-only
        page permits it.
        """
        self._file(self._actions, name, handler)
        if reads:
            self._readers.add(name)

    def actions(self, part: str, *handlers: Handler, reads: bool = False) -> None:
        """Register actions under their handlers' names: ``delete`` in "runs" becomes "runs.delete", ``try_`` becomes
        "….try". ``reads``: as in ``action``.
        """
        for handler in handlers:
            self.action(f"{part}.{handler.__name__.rstrip('_')}", handler, reads=reads)

    def rows(self, name: str, handler: RowsHandler) -> None:
        """Register ``handler`` as the source of windowed lists called ``name``."""
        self._file(self._rows, name, handler)

    def trace_list(self, view: str, handler: TraceLister) -> None:
        """Register ``handler`` for the list of questions that a trace opened in a view moves through."""
        self._file(self.trace_lists, view, handler)

    @staticmethod
    def _file(handlers: dict[str, Handled], name: str, handler: Handled) -> None:
        if name in handlers:
            raise ValueError(f"two places claim {name!r}")
        handlers[name] = handler

    def first_view(self, place: str) -> str:
        """Return the view that a place's tab opens."""
        return next(view for view in self.views if view.startswith(f"{place}/"))

    @property
    def read_only(self) -> bool:
        """True if the page starts and changes nothing."""
        return self.workspace.read_only

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the actions that the page performs: all, or those that only read."""
        return tuple(sorted(self._readers if self.read_only else self._actions))

    # for tests and the server functions

    def session(self, window: str) -> WindowState:
        """Return the server-side state of a browser window."""
        with self._lock:
            session = self._windows.setdefault(window, WindowState(window))
            self._windows.move_to_end(window)
            while len(self._windows) > WINDOWS:
                self._windows.popitem(last=False)
            return session

    def handle(self, sent: ActMessage) -> Answer:
        """Return the response of the handler that a message names. Raises RalleError."""
        event = Event(sent.action, sent.data, sent.query, self.session(sent.window))
        if sent.action == "open":
            return self._open(event.text("view"), event)
        if sent.action not in self._actions:
            raise UsageError("The page is older than the program; reload it.")
        if self.read_only and sent.action not in self._readers:
            raise ReadOnlyError()
        return self._actions[sent.action](self, event)

    def _open(self, view: str, event: Event) -> Answer:
        """Return the patch of a view, with the chain in the header."""
        if view not in self.views:
            first = self.first_view(self.places[0].name)
            return Patch(go=f"#/{first}", say="The page has no such address; this is Build.")
        try:
            answer = self.views[view](self, event)
        except RalleError as error:
            if not self._backs[view]:
                raise
            answer = Patch(go=f"#/{self._backs[view]}", say=on_page(error))
        header = self.header(event) if self.header is not None else Patch()
        if answer is None or isinstance(answer, Patch):
            return header | (answer or Patch())
        return _after(header, answer)

    def call(
        self, action: str, data: Mapping[str, Any] | None = None, *, window: str = "w", **query: str
    ) -> Patch:
        """Run an action to its end and return its merged patches, for tests and scripts. Raises RalleError."""
        values = {"action": action, "data": dict(data or {}), "window": window, "query": query}
        answer = self.handle(messages.read(ActMessage, values))
        if answer is None or isinstance(answer, Patch):
            return answer or Patch()
        return merge(answer)

    def open(self, address: str, *, window: str = "w") -> Patch:
        """Open ``place/view?key=value`` like the browser."""
        view, _, query = address.removeprefix("#/").partition("?")
        return self.call("open", {"view": view}, window=window, **dict(parse_qsl(query)))

    # server functions, called by the page's script; each takes one argument and never raises

    def act(self, message: object) -> Patch:
        """Perform an action.

        Returns its patch, or a patch with a ``stream`` if the action continues. This ends the stream of any older
        message with the same action. ``number`` orders the messages, because the threads of two messages may arrive
        in either order.
        """
        try:
            sent = messages.read(ActMessage, message)
            answer = self.handle(sent)
        except Exception as error:
            return problem(error)
        if answer is None or isinstance(answer, Patch):
            return answer or Patch()
        key = f"{sent.window} {sent.action}"
        stream = PatchStream(answer, sent.number)
        with self._lock:
            before = self._streams.get(key)
            if before is not None and before.number > stream.number:
                return Patch()
            self._streams = {k: s for k, s in self._streams.items() if not s.over}
            self._streams[key] = stream
        if before is not None:
            before.stop(shows=False)
        stream.start()
        return Patch(stream=stream.id)

    def more(self, message: object) -> Patch:
        """Return the next patch of a stream; ``over`` is true in the last one."""
        try:
            stream = self._stream(messages.read(messages.MoreMessage, message).stream)
        except UsageError as error:
            return problem(error) | Patch(over=True)
        return Patch(over=True) if stream is None else stream.take()

    async def wait_for_more(self, message: object) -> None:
        """Wait like ``more``, but without occupying a thread, so that silent streams do not use up the page's
        threads.
        """
        with suppress(UsageError):  # ``more`` reports the error
            stream = self._stream(messages.read(messages.MoreMessage, message).stream)
            if stream is not None:
                await stream.wait()

    def stop(self, message: object) -> Patch:
        """End a window's stream of an action."""
        try:
            sent = messages.read(messages.StopMessage, message)
        except UsageError as error:
            return problem(error)
        with self._lock:
            stream = self._streams.get(f"{sent.window} {sent.action}")
        if stream is not None:
            stream.stop()
        return Patch()

    def close(self) -> None:
        """End all streams when the server shuts down."""
        with self._lock:
            streams = list(self._streams.values())
        for stream in streams:
            stream.stop(shows=False)

    def list_rows(self, message: object) -> Rows | Patch:
        """Return the rows of a windowed list that a message names."""
        try:
            sent = messages.read(messages.RowsMessage, message)
            if sent.list not in self._rows:
                raise UsageError("The page is older than the program; reload it.")
            count, session = min(sent.count, MOST_ROWS), self.session(sent.window)
            return self._rows[sent.list](self, RowWindow(sent.key, sent.start, count, session))
        except Exception as error:
            return problem(error)

    def _stream(self, stream: str) -> PatchStream | None:
        with self._lock:
            return next((s for s in self._streams.values() if s.id == stream), None)


def _after(first: Patch, rest: Iterator[Patch]) -> Iterator[Patch]:
    yield first
    yield from rest


def stop(page: Page, event: Event) -> Patch:
    """Stop a job. Its followers show the result."""
    page.workbench.jobs.stop(event.text("id"))
    return Patch(say="Stopping. Finished work is kept.")


def forget(page: Page, event: Event) -> Patch:
    """Remove a finished or interrupted job from the list."""
    page.workbench.jobs.forget(event.text("id"))
    return Patch()
