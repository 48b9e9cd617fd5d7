"""A file of rows: JSON lines that a person may edit. If several lines have one id, the last counts.

Every row written here ends with a ``stamp``: 8 digits over its sources and 8 over itself. A row without a stamp, or with a
second part that does not fit, belongs to a person and is never replaced.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from rallebench.core.errors import BadFileError
from rallebench.core.experiment_reports import StageCounts
from rallebench.core.experiments import Row
from rallebench.core.files import Appender
from rallebench.core.json_values import JsonObject, JsonValue
from rallebench.core.settings import DataClass, fill
from rallebench.core.types import Episode, Generate, Json, digest
from rallebench.metrics.cost import step_completion_tokens, step_prompt_tokens

T = TypeVar("T", bound=DataClass)

STAMP, FROM = "stamp", "from"


class _Place(NamedTuple):
    """The place of a row in its file, and facts about it, so that the row need not be read again."""

    offset: int
    stamp: str
    edited: bool
    failed: bool


def short(value: JsonValue) -> str:
    """8 hex digits over a JSON-able value."""
    return digest(value)[:8]


class RowFile:
    """The rows. Memory holds only their places, about 300 bytes per row. ``summary``: see ``RowsRequest``."""

    def __init__(self, path: Path) -> None:
        """Read the stored rows. Raises BadFileError, with the line, for a line that is not a row."""
        self.path = Path(path)
        self.summary: Json = {}
        self._places: dict[str, dict[str, _Place]] = {}
        self._order: list[tuple[str, str]] = []
        self._end = 0
        self._unended = False
        self._log: Appender | None = None
        types: dict[str, set[str]] = {}
        of_a_person: dict[int, dict[str, str]] = {}
        for offset, row in self._lines():
            own = {
                name: _type_name(value) for name, value in row.items() if name not in (STAMP, FROM)
            }
            if self._enter(offset, row):
                of_a_person[offset] = own
            else:
                for name, kind in own.items():
                    types.setdefault(name, set()).add(kind)
        for offset, own in of_a_person.items():
            self._check(offset, own, types)

    def _lines(self) -> Iterator[tuple[int, Row]]:
        if not self.path.exists():
            return
        offset = 0
        with open(self.path, "rb") as handle:
            for number, raw in enumerate(handle, 1):
                if raw.strip():
                    row = self._row(number, raw)
                    if row is not None:
                        self._unended = not raw.endswith(b"\n")
                        yield offset, row
                offset += len(raw)
        self._end = offset

    def _row(self, number: int, raw: bytes) -> Row | None:
        """The row of a line; None for a last line that a killed process left incomplete."""
        try:
            row = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
        except ValueError as error:
            if not raw.endswith(b"\n"):
                return None
            raise BadFileError(
                f"{self.path}, line {number} is not valid JSON ({error}); mend the line or remove it."
            ) from None
        if not isinstance(row, dict) or not isinstance(row.get("id"), str) or not row["id"]:
            raise BadFileError(
                f"{self.path}, line {number} is not a row; every row is an object with an 'id'."
            )
        if not isinstance(row.get("keep", True), bool):
            raise BadFileError(f"{self.path}, line {number}: 'keep' must be true or false.")
        return row

    def _check(self, offset: int, own: Mapping[str, str], types: Mapping[str, set[str]]) -> None:
        """Raise BadFileError if a person's row has a value of another type than our rows."""
        for name, kind in own.items():
            known = types.get(name, {NULL})
            if (
                known == {NULL}
                or kind in known
                or (LIST in (kind, *known) and _has_list(kind, known))
            ):
                continue
            with open(self.path, "rb") as handle:
                number = handle.read(offset).count(b"\n") + 1
            raise BadFileError(
                f"{self.path}, line {number}: {name!r} is {kind}, but {' or '.join(sorted(known))} in other rows; "
                f"mend the line or remove it."
            )

    def _enter(self, offset: int, row: Row) -> bool:
        """Add a row. Returns True if it belongs to a person."""
        stamp, _, own = str(row.get(STAMP, "")).partition(".")
        edited = not own or own != _own(row)
        place = _Place(offset, stamp, edited, bool(row.get("error")))
        self._places.setdefault(str(row.get(FROM, row["id"])), {})[row["id"]] = place
        return edited

    # ── reading ────────────────────────────────────────────────────────

    def has(self, source: str, stamp: str) -> bool:
        """Return whether ``source`` needs no new rows: it has current or edited rows, and no unedited row failed."""
        places = self._current(source, stamp).values()
        return bool(places) and not any(place.failed and not place.edited for place in places)

    def _current(self, source: str, stamp: str) -> dict[str, _Place]:
        return {
            name: place
            for name, place in self._places.get(source, {}).items()
            if place.edited or place.stamp == stamp
        }

    def settle(self, inputs: Iterable[tuple[str, str]]) -> None:
        """From now on iterate over the rows of these inputs (id, stamp), in this order, then over added rows of a
        person."""
        self._order = list(inputs)
        known = {source for source, _ in self._order}
        for source, places in self._places.items():
            if source not in known and all(not place.stamp for place in places.values()):
                self._order.append((source, ""))

    def settle_all(self) -> None:
        """From now on iterate over all inputs of the file, with the newest rows of each."""
        for source, places in self._places.items():
            new = [place.stamp for place in places.values() if not place.edited] or [""]
            self._order.append((source, new[-1]))

    def __iter__(self) -> Iterator[Row]:
        """The settled rows, in the order of their inputs."""
        if not self.path.exists():
            return
        with open(self.path, "rb") as handle:
            for source, stamp in self._order:
                for place in self._current(source, stamp).values():
                    handle.seek(place.offset)
                    yield _read(handle.readline(), place)

    def read(self, shape: type[T]) -> Iterator[T]:
        """The settled rows, as a dataclass with the fields that the caller needs."""
        return (fill(shape, row) for row in self)

    def read_kept(self, shape: type[T]) -> Iterator[T]:
        """The settled rows that are kept, as a dataclass."""
        return (fill(shape, row) for row in self if row["keep"])

    def read_first(self, source: str, shape: type[T]) -> T:
        """The first row of an input as a dataclass. Raises KeyError if there is none."""
        return fill(shape, self.row(source))

    def __len__(self) -> int:
        """The number of settled inputs."""
        return len(self._order)

    def row(self, source: str) -> Row:
        """The first row of an input. Raises KeyError if there is none."""
        place = next(reversed(self._places[source].values()))
        with open(self.path, "rb") as handle:
            handle.seek(place.offset)
            return _read(handle.readline(), place)

    # ── appending ───────────────────────────────────────────────────────────

    def add(self, source: str, stamp: str, rows: Iterable[JsonObject]) -> None:
        """Append the rows of an input; they are on their way to the disk when this returns. Raises BackendError."""
        for row in rows:
            if self._log is None:
                self._end_last_line()
                self._log = Appender(self.path)
                self._end = self.path.stat().st_size
            name = str(row["id"])
            written = {"id": name, **({FROM: source} if source != name else {}), **row}
            written[STAMP] = f"{stamp}.{_own(written)}"
            place = _Place(self._end, stamp, False, bool(written.get("error")))
            self._end += self._log.write(written)
            self._places.setdefault(source, {})[name] = place

    def _end_last_line(self) -> None:
        """End the last line if an editor left it open: it is a person's row, not a torn line."""
        if self._unended:
            with open(self.path, "ab") as handle:
                handle.write(b"\n")
            self._unended = False

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None


def _type_name(value: JsonValue) -> str:
    """The type of a JSON value in words; for a list also the type of its values, if they share one.

    >>> _type_name(["a", "b"]), _type_name([]), _type_name(["a", 1]), _type_name(2.5)
    ('a list (a text each)', 'a list', 'a list of several types', 'a number')
    """
    if isinstance(value, list):
        inner = set(map(_type_name, value))
        if len(inner) > 1:
            return f"{LIST} of several types"
        return f"{LIST} ({inner.pop()} each)" if inner else LIST
    return _TYPES[type(value)]


def _has_list(kind: str, known: Iterable[str]) -> bool:
    """Return whether a list is expected. An empty list does not show the type of its values."""
    return kind.startswith(LIST) and any(other.startswith(LIST) for other in known)


LIST, NULL = "a list", "null"
_TYPES = {
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    type(None): NULL,
}


def _own(row: JsonObject) -> str:
    return short({key: value for key, value in row.items() if key != STAMP})


def _read(line: bytes, place: _Place) -> Row:
    """``edited``: True if a person changed or wrote the row."""
    row: Row = json.loads(line.decode("utf-8-sig"))
    return {**row, "keep": row.get("keep", True), "edited": place.edited}


# counts

COSTS = ("calls", "prompt_tokens", "completion_tokens", "seconds")
COSTS_FIELD = "asked"
"""The field of a row with the cost of its requests. Only the first row of an input has it."""


def with_costs(rows: Iterable[Row], episode: Episode) -> Iterator[Row]:
    """Return the rows, the first with the cost of their requests: calls, tokens (null if not counted) and seconds."""
    steps = [step for step in episode.steps if isinstance(step.request, Generate)]
    if not steps and not episode.error:
        yield from rows
        return
    costs: dict[str, JsonValue] = {"calls": len(steps)}
    for name, count in (
        ("prompt_tokens", step_prompt_tokens),
        ("completion_tokens", step_completion_tokens),
    ):
        each = [count(step) for step in steps]
        costs[name] = None if None in each else sum(filter(None, each))
    costs["seconds"] = round(sum(step.seconds for step in steps) + episode.failed_seconds, 3)
    for place, row in enumerate(rows):
        yield {**row, COSTS_FIELD: costs} if place == 0 else row


def count_rows(rows: RowFile, new: int = 0) -> StageCounts:
    """Count the rows of a stage; ``new`` of them are from this session."""
    totals: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    costs: dict[str, float] = dict.fromkeys(COSTS, 0)
    uncounted = 0
    for row in rows:
        totals["rows"] += 1
        totals["kept"] += row["keep"]
        totals["unknown"] += bool(row.get("unknown"))
        totals["failed"] += bool(row.get("error"))
        totals["edited"] += row["edited"]
        if not row["keep"]:
            left_out[str(row.get("why") or "by hand")] += 1
        costs_of_row = row.get(COSTS_FIELD) or {}
        uncounted += (
            costs_of_row.get("prompt_tokens", 0) is None
            or costs_of_row.get("completion_tokens", 0) is None
        )
        for key in COSTS:
            costs[key] += costs_of_row.get(key) or 0
    left_out.update(rows.summary.get("left_out", {}))
    counts = StageCounts(
        inputs=len(rows),
        rows=totals["rows"],
        used=totals["kept"],
        left_out=dict(left_out.most_common()),
        unknown=totals["unknown"],
        failed=totals["failed"],
        edited=totals["edited"],
        new=new,
    )
    if not costs["calls"]:
        return counts
    return replace(
        counts,
        calls=int(costs["calls"]),
        prompt_tokens=int(costs["prompt_tokens"]),
        completion_tokens=int(costs["completion_tokens"]),
        seconds=round(costs["seconds"], 3),
        tokens_not_counted=uncounted,
    )
