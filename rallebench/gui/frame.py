"""The frame of the page: places, views, actions, and what their handlers answer.

The page is one component of HTML. Its script sends what the user does to the server functions of ``Page``; each calls a
handler that a place has registered and returns a *patch*, which the script applies. ``gui/script`` is the other half.

A patch is a dictionary: ``"#id"`` → the inner HTML of that element. Further keys: ``title``, ``go`` (an address to open),
``address`` (an address to put in place of the present one), ``say`` (a short message; ``undo``: a button in it), ``dialog`` and ``drawer`` (HTML, ""
closes), ``store`` (what this browser keeps), ``download`` (``{"name", "text"}``), ``chain`` (the chain in the header).
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.registry import Registry
from rallebench.core.stopping import Stop, obey
from rallebench.gui.html import escape
from rallebench.gui.wording import on_page
from rallebench.services.workbench import Workbench

log = logging.getLogger(__name__)

Patch = dict[str, Any]

PLACES: Registry[Callable[[Page], None]] = Registry(
    "place",
    "rallebench.gui.places",
    traits={"label": "the text of its tab", "order": "the position of its tab, from 1"},
)

WINDOWS = 200
"""How many browser windows the server keeps values for; the one that was idle longest is forgotten."""

PACE = 0.08
"""Seconds between two patches of one stream: a page redraws slowly."""

PATIENCE = 2.0
"""Seconds after which a request for more of a silent stream is answered with its ``meanwhile``."""

Meanwhile = Callable[[bool], "Patch"]
"""What a stream shows while it waits (False), and what once the user has stopped it (True). A stream may yield it as
``{"meanwhile": …}``; the page's script never sees it."""


@dataclass(frozen=True)
class Event:
    """What the user did. ``data``: the attributes of the pressed element and the fields around it."""

    action: str
    data: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    session: dict[str, Any] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """A field as text without blanks around it; the first value of several."""
        value = self.data.get(name, default)
        value = value[0] if isinstance(value, list) and value else value
        return default if value is None or value == [] else str(value).strip()

    def path(self, name: str) -> Path | None:
        """A field as a path, without the quotes that file managers put around it; None if it is empty."""
        text = self.text(name).strip("\"'").strip()
        return Path(text).expanduser() if text else None

    def many(self, name: str) -> list[str]:
        """All values of a field, the empty ones left out."""
        value = self.data.get(name) or []
        values = value if isinstance(value, list) else [value]
        return [str(item) for item in values if str(item).strip()]

    def flag(self, name: str) -> bool:
        """Whether a box is ticked."""
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
            raise UsageError(f"{label or name} is {text[:60]!r}; it must be a number, or empty.")
        return number

    def whole(self, name: str, label: str = "") -> int | None:
        """A field as a whole number, None if it is empty. Raises UsageError."""
        number = self.number(name, label)
        if number is None or number == int(number):
            return None if number is None else int(number)
        raise UsageError(f"{label or name} is {number:g}; it must be a whole number.")


Answer = Union[Patch, None, Iterator[Patch]]
Handler = Callable[["Page", Event], Answer]
RowsHandler = Callable[["Page", dict[str, Any], int, int], Sequence[tuple[str, str]]]


class Page:
    """All places over one workbench. Safe to use by many windows at once."""

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
        """Call ``handler`` whenever the address is ``#/PLACE/VIEW``; the first view of a place is its tab's. ``back``: the view
        that opens, with the error as a message, where what the address names cannot be opened."""
        self._file(self.views, address, handler)
        self._backs[address] = back

    def action(self, name: str, handler: Handler) -> None:
        """Call ``handler`` for elements with ``data-do="name"``."""
        self._file(self._actions, name, handler)

    def actions(self, part: str, *handlers: Handler) -> None:
        """Register actions under the names of their handlers: ``delete`` of "runs" is "runs.delete", ``try_`` "….try"."""
        for handler in handlers:
            self.action(f"{part}.{handler.__name__.rstrip('_')}", handler)

    def rows(self, name: str, handler: RowsHandler) -> None:
        """Ask ``handler`` for the rows of windowed lists of that name."""
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
        """What the server keeps for a browser window."""
        with self._lock:
            session = self._windows.setdefault(window, {"window": window})
            self._windows.move_to_end(window)
            while len(self._windows) > WINDOWS:
                self._windows.popitem(last=False)
            return session

    def handle(self, message: Mapping[str, Any]) -> Answer:
        """What the handler of a message answers. Raises RalleError."""
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
        """What a view answers, with the chain in the header."""
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
        """Do an action to its end and return all its patches in one: for tests, scripts, and handlers that show what another
        part draws. Raises RalleError."""
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
        """Do an action. Returns its patch, or ``{"stream": id}`` for one that goes on.

        It ends the stream of an older message with the same action. ``number`` tells which is older: the threads of two
        messages may get here in either order.
        """
        try:
            number = int(message.get("number") or 0)
            answer = self.handle(message)
        except Exception as error:
            return problem(error)
        if answer is None or isinstance(answer, dict):
            return as_sent(answer or {})
        key = f"{message.get('window')} {message.get('action')}"
        stream = PatchStream(answer, number)
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
        """The next patch of a stream; ``over`` is true in its last."""
        stream = self._stream(str(message.get("stream", "")))
        return {"over": True} if stream is None else as_sent(stream.take())

    async def wait_for_more(self, message: dict[str, Any]) -> None:
        """Wait as ``more`` does, but without a thread: any number of silent streams leave the page's threads free."""
        stream = self._stream(str(message.get("stream", "")))
        if stream is not None:
            await stream.wait()

    def stop(self, message: dict[str, Any]) -> Patch:
        """End the stream of an action in a window."""
        with self._lock:
            stream = self._streams.get(f"{message.get('window')} {message.get('action')}")
        if stream is not None:
            stream.stop()
        return {}

    def close(self) -> None:
        """End all streams, of a program that ends."""
        with self._lock:
            streams = list(self._streams.values())
        for stream in streams:
            stream.stop(shows=False)

    def list_rows(self, message: dict[str, Any]) -> Patch:
        """Rows ``start`` to ``start + count`` of a windowed list."""
        try:
            handler = self._rows[str(message.get("list"))]
            start, count = int(message["start"]), min(int(message["count"]), 500)
            key = {**dict(message.get("key") or {}), "window": str(message.get("window", ""))}
            rows = handler(self, key, start, count)
            return {"rows": [(id, str(escape(row))) for id, row in rows]}
        except Exception as error:
            return problem(error)

    def _stream(self, stream: str) -> PatchStream | None:
        with self._lock:
            return next((s for s in self._streams.values() if s.id == stream), None)


def as_sent(patch: Patch) -> Patch:
    """A patch as the script gets it. The script makes HTML of some of its values: a value that is no ``Markup`` is text."""
    return {
        key: str(escape(value)) if is_html(key) and value is not None else value
        for key, value in patch.items()
    }


def is_html(key: str) -> bool:
    """Whether the script makes HTML of a patch's value."""
    return key.startswith("#") or key in ("dialog", "drawer", "chain", "undo", "chip", "list")


def _after(first: Patch, rest: Iterator[Patch]) -> Iterator[Patch]:
    yield first
    yield from rest


def stop(page: Page, event: Event) -> Patch:
    """Stop a job; it shows so itself."""
    page.workbench.jobs.stop(event.text("id"))
    return {"say": "Stopping. What is done is kept."}


def problem(error: Exception) -> Patch:
    """The sentence about an error; a bug also leaves its traceback on stderr."""
    if isinstance(error, RalleError):
        return {"problem": on_page(error)}
    log.error("The page met an unexpected error.", exc_info=error)
    name = type(error).__name__
    return {
        "problem": f"rallebench met an unexpected error ({name}: {str(error)[:200]}). Reload the page."
    }


class PatchStream:
    """Patches of a generator, made in a thread of their own and taken by the page at its own pace."""

    def __init__(self, patches: Iterator[Patch], number: int = 0) -> None:
        self.id = uuid.uuid4().hex
        self.number = number
        self._patches = patches
        self._waiting: Patch = {}
        self._meanwhile: Meanwhile = lambda stopped: {}
        self._change = threading.Condition()
        self._stopped = False
        self._ended = False
        self._hang_up = Stop()
        self._waits: list[Callable[[], object]] = []
        self._waited = False

    @property
    def over(self) -> bool:
        """Whether it has ended and the page has taken all."""
        with self._change:
            return self._ended and not self._waiting

    def start(self) -> None:
        """Begin to read the generator."""
        threading.Thread(target=self._read, name="page stream", daemon=True).start()

    def stop(self, *, shows: bool = True) -> None:
        """End it: the page gets its last patch at once, the generator waits for no server any more and ends at its next value.
        ``shows``: not so for a stream that a newer one of the same action replaces."""
        with self._change:
            if not self._ended:
                last = self._meanwhile(True)
                self._waiting = {**self._waiting, **last} if shows else {}
            self._stopped = self._ended = True
            self._tell()
        self._hang_up.set()

    def take(self) -> Patch:
        """All patches that came since the last call, merged. Waits up to PATIENCE seconds for the first."""
        with self._change:
            waited, self._waited = self._waited, False
            if not waited:
                self._change.wait_for(lambda: self._waiting or self._ended, PATIENCE)
            if not waited and not self._ended:
                self._change.wait_for(lambda: self._ended, PACE)
            patch, self._waiting = self._waiting, {}
            if self._ended:
                return {**patch, "over": True}
            return patch or self._meanwhile(False)

    async def wait(self) -> None:
        """Wait as ``take`` does, which then answers at once."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the page was closed meanwhile
                loop.call_soon_threadsafe(news.set)

        with self._change:
            if self._waiting or self._ended:
                news.set()
            self._waits.append(wake)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(news.wait(), PATIENCE)
        with self._change:
            self._waits.remove(wake)
        if not self._ended:
            await asyncio.sleep(PACE)
        self._waited = True

    def _tell(self) -> None:
        """Wake up whoever waits; the lock is held."""
        self._change.notify_all()
        for wake in self._waits:
            wake()

    def _put(self, patch: Patch) -> None:
        with self._change:
            if not self._stopped:
                self._meanwhile = patch.pop("meanwhile", self._meanwhile)
                for key in patch:  # the newest last: a view replaces its parts, not they it
                    self._waiting.pop(key, None)
                self._waiting |= patch
                self._tell()

    def _read(self) -> None:
        obey(self._hang_up)
        try:
            for patch in self._patches:
                if self._stopped:
                    break
                self._put(patch)
        except Exception as error:
            self._put(problem(error))
        finally:
            self._patches.close()  # type: ignore[attr-defined]  # a generator: this ends the model's own stream
            with self._change:
                self._ended = True
                self._tell()
