"""Events: an action with its fields, the address, and the state of the browser window."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, Union

from rallebench.core.errors import UsageError
from rallebench.gui.addresses import AnyQuery
from rallebench.gui.html import escape
from rallebench.gui.messages import FileMessage, Scalar

State = TypeVar("State")
Field = Union[Scalar, list[str], list[FileMessage]]


class WindowState:
    """The server-side state of a browser window: one value for each class that a place stores."""

    def __init__(self, window: str = "") -> None:
        self.window = window
        self._states: dict[type, object] = {}

    def state(self, kind: type[State], make: Callable[[], State] | None = None) -> State:
        """Return the window's value of a class; the first call creates it."""
        if kind not in self._states:
            self.put((make or kind)())
        value = self._states[kind]
        assert isinstance(value, kind)
        return value

    def get(self, kind: type[State]) -> State | None:
        """Return the window's value of a class; None if there is none."""
        return self.state(kind) if kind in self._states else None

    def put(self, value: object) -> None:
        """Store a value, replacing the previous one of its class."""
        self._states[type(value)] = value

    def drop(self, kind: type) -> None:
        self._states.pop(kind, None)


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file uploaded by the browser. ``name``: its original name, with folders."""

    path: Path
    name: str


@dataclass(frozen=True)
class Event:
    """A user action. ``data``: attributes of the pressed element, and the fields around it."""

    action: str
    data: Mapping[str, Field] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    session: WindowState = field(default_factory=WindowState)

    def read(self, kind: type[AnyQuery]) -> AnyQuery:
        """Return the values of the address."""
        return kind.read(self.query)

    def fields(self, kind: type[AnyQuery]) -> AnyQuery:
        """Return the form fields named by a class."""
        return kind.read({name: self.text(name) for name in self.data})

    def has(self, name: str) -> bool:
        """Return whether the form has a field."""
        return name in self.data

    def text(self, name: str, default: str = "") -> str:
        """Return a field's stripped text; of several values, the first."""
        value = self._first(name, default)
        return default if value is None else value.strip()

    def raw_text(self, name: str) -> str:
        """Return a field exactly as typed, including spaces."""
        return (self._first(name, "") or "").replace("\r\n", "\n")

    def _first(self, name: str, default: str) -> str | None:
        value = self.data.get(name, default)
        if isinstance(value, list):
            return str(value[0]) if value else None
        return None if value is None else str(value)

    def path(self, name: str) -> Path | None:
        """Return a field as a path, without the quotes added by file managers; None if it is empty."""
        text = self.text(name).strip("\"'").strip()
        return Path(text).expanduser() if text else None

    def many(self, name: str) -> list[str]:
        """Return all non-empty values of a field."""
        value = self.data.get(name) or []
        values = value if isinstance(value, list) else [value]
        return [str(item) for item in values if str(item).strip()]

    def flag(self, name: str) -> bool:
        """Return whether a box is checked."""
        return self.data.get(name) in ("on", "true", "1", True)

    def number(self, name: str, label: str = "") -> float | None:
        """Return a field as a number; None if it is empty. Raises UsageError."""
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
        """Return a field as a whole number; None if it is empty. Raises UsageError."""
        number = self.number(name, label)
        if number is None or number == int(number):
            return None if number is None else int(number)
        raise UsageError(f"{label or name} is {number:g}; it must be a whole number.", name)

    def position(self, name: str, count: int | None = None) -> int:
        """Return a field as an index into a list of ``count`` entries. Raises UsageError."""
        place = self.whole(name)
        if place is None or place < 0 or (count is not None and place >= count):
            raise UsageError(
                f"There is no {name} {self.text(name)[:60]!r} any more; reload the page."
            )
        return place

    def choice(self, name: str, known: Collection[str], default: str = "") -> str:
        """Return a field if it is one of the allowed words. Raises UsageError."""
        word = self.text(name, default)
        if word not in known:
            raise UsageError(f"There is no {name} {word[:60]!r}; reload the page.")
        return word

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """Return the fields whose names start with ``prefix``, keyed by the rest of their names."""
        names = (name for name in self.data if name.startswith(prefix))
        return {name.removeprefix(prefix): self.text(name) for name in names}

    def files(self) -> list[UploadedFile]:
        """Return the uploaded files."""
        value = self.data.get("files")
        sent = value if isinstance(value, list) else []
        return [UploadedFile(Path(f.path), f.name) for f in sent if isinstance(f, FileMessage)]

    def file(self) -> UploadedFile:
        """Return the first uploaded file. Raises UsageError."""
        files = self.files()
        if not files:
            raise UsageError("No file was sent; choose one.")
        return files[0]


@dataclass(frozen=True, slots=True)
class RowWindow:
    """Rows ``start`` to ``start + count`` of a windowed list. ``key``: values that identify the list."""

    key: Mapping[str, Scalar]
    start: int
    count: int
    session: WindowState

    def read(self, kind: type[AnyQuery]) -> AnyQuery:
        """Return the key of the list."""
        return kind.read(self.key)

    @property
    def part(self) -> slice:
        """Return the rows as a slice of the whole list."""
        return slice(self.start, self.start + self.count)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a windowed list: (id, HTML)."""

    rows: Sequence[tuple[str, str]]

    def to_json(self) -> dict[str, Any]:
        return {"rows": [(id, str(escape(row))) for id, row in self.rows]}


@dataclass(frozen=True, slots=True)
class TraceList:
    """The list through which J and K move from a trace. ``sources``: (source of a door, label) of the runs or variants
    that were asked the same questions.
    """

    qids: Sequence[str]
    sources: Sequence[tuple[str, str]] = ()
