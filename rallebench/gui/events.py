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
    """The server's state of a browser window: one value of each class that a place keeps there."""

    def __init__(self, window: str = "") -> None:
        self.window = window
        self._states: dict[type, object] = {}

    def state(self, kind: type[State], make: Callable[[], State] | None = None) -> State:
        """The window's value of a class; the first call makes it."""
        if kind not in self._states:
            self.put((make or kind)())
        value = self._states[kind]
        assert isinstance(value, kind)
        return value

    def get(self, kind: type[State]) -> State | None:
        """The window's value of a class, None if there is none."""
        return self.state(kind) if kind in self._states else None

    def put(self, value: object) -> None:
        """Keep a value in place of the previous one of its class."""
        self._states[type(value)] = value

    def drop(self, kind: type) -> None:
        self._states.pop(kind, None)


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file that the browser has sent. ``name``: its name there, with its folders."""

    path: Path
    name: str


@dataclass(frozen=True)
class Event:
    """An action of the user. ``data``: the attributes of the pressed element and the fields around it."""

    action: str
    data: Mapping[str, Field] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    session: WindowState = field(default_factory=WindowState)

    def read(self, kind: type[AnyQuery]) -> AnyQuery:
        """The values of the address."""
        return kind.read(self.query)

    def fields(self, kind: type[AnyQuery]) -> AnyQuery:
        """The fields of the form that a value names."""
        return kind.read({name: self.text(name) for name in self.data})

    def has(self, name: str) -> bool:
        """Return whether the form has a field."""
        return name in self.data

    def text(self, name: str, default: str = "") -> str:
        """A field as text, stripped; the first value of several."""
        value = self._first(name, default)
        return default if value is None else value.strip()

    def raw_text(self, name: str) -> str:
        """A field exactly as typed, spaces included."""
        return (self._first(name, "") or "").replace("\r\n", "\n")

    def _first(self, name: str, default: str) -> str | None:
        value = self.data.get(name, default)
        if isinstance(value, list):
            return str(value[0]) if value else None
        return None if value is None else str(value)

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

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """The fields whose names begin with ``prefix``, by the rest of their names."""
        names = (name for name in self.data if name.startswith(prefix))
        return {name.removeprefix(prefix): self.text(name) for name in names}

    def files(self) -> list[UploadedFile]:
        """The uploaded files."""
        value = self.data.get("files")
        sent = value if isinstance(value, list) else []
        return [UploadedFile(Path(f.path), f.name) for f in sent if isinstance(f, FileMessage)]

    def file(self) -> UploadedFile:
        """The first uploaded file. Raises UsageError."""
        files = self.files()
        if not files:
            raise UsageError("No file was sent; choose one.")
        return files[0]


@dataclass(frozen=True, slots=True)
class RowWindow:
    """Rows ``start`` to ``start + count`` of a windowed list. ``key``: the values that tell the list from others."""

    key: Mapping[str, Scalar]
    start: int
    count: int
    session: WindowState

    def read(self, kind: type[AnyQuery]) -> AnyQuery:
        """The list's key."""
        return kind.read(self.key)

    @property
    def part(self) -> slice:
        """The rows as a slice of the whole list."""
        return slice(self.start, self.start + self.count)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a windowed list: (id, HTML)."""

    rows: Sequence[tuple[str, str]]

    def to_json(self) -> dict[str, Any]:
        return {"rows": [(id, str(escape(row))) for id, row in self.rows]}
