"""Results for people: tables, figures and the sections of a report, as values that ``render`` draws.

Analyses and experiments return these values; ``render`` turns them into text, HTML or SVG, ``table_files`` into CSV or
LaTeX.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Union

from rallebench.core.json_values import JsonValue
from rallebench.core.report import Estimate

Format = Literal[
    "text",
    "count",
    "score",
    "percent",
    "quantity",
    "seconds",
    "duration",
    "bytes",
    "usd",
    "p",
    "delta",
]
"""The format of the numbers of a column (``render.numbers.text``). Text and None are not numbers."""


FEWEST = 5
"""Articles below which a mean has no interval."""
TOO_FEW, ALL_EQUAL = "too few articles", "all are equal: no interval"
ONE_SIDED = "too few in one direction"
"""Why graded differences with many ties have no interval: a few large ones in the other direction may be missing by chance."""


Cell = Union[str, int, float, Estimate, None]
"""None: not measured."""


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a column and the format of its numbers. ``help``: its definition."""

    label: str
    format: Format = "score"
    help: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the form of papers.

    ``columns``: a plain label is a column of scores, or of percentages with ``percent``. ``rows``: a cell per column; the
    first is the row's name. Shares are 0..1. ``note``: one sentence below the table. ``best``: the (row, column) of cells
    in bold. ``units``: row → unit of its means ("fraction", "seconds", "tokens" …), if rows differ.
    """

    title: str
    columns: tuple[Column | str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    percent: bool = False
    note: str = ""
    best: frozenset[tuple[int, int]] = frozenset()
    units: Mapping[int, str] = field(default_factory=dict)

    @property
    def heads(self) -> tuple[Column, ...]:
        """The columns, plain labels with the format of the table."""
        usual = usual_format(self.percent)
        return tuple(Column(c, usual) if isinstance(c, str) else c for c in self.columns)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(column.label for column in self.heads)

    def to_json(self) -> dict[str, JsonValue]:
        """The form in ``report.json``: headings as text, means as mappings; ``definitions`` if columns have help,
        ``formats`` if their numbers are neither scores nor percentages."""
        means = [[asdict(c) if isinstance(c, Estimate) else c for c in row] for row in self.rows]
        value: dict[str, JsonValue] = {
            "title": self.title,
            "columns": list(self.labels),
            "rows": means,
        }
        value |= {"percent": self.percent, "note": self.note}
        usual = usual_format(self.percent)
        definitions = {column.label: column.help for column in self.heads if column.help}
        formats = {c.label: c.format for c in self.heads if c.format != usual}
        return value | {
            key: words
            for key, words in (("definitions", definitions), ("formats", formats))
            if words
        }


def usual_format(percent: bool) -> Format:
    """The format of a column given only as a label."""
    return "percent" if percent else "score"


FigureKind = Literal["line", "bar", "scatter", "radar", "bubble", "waterfall", "box", "rings"]
Unit = Literal["", "share", "percent", "seconds", "ms", "bytes", "usd"]
"""The unit of an axis. ``share``: 0..1, shown in percent; ``percent``: 0..100."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot. ``series``: name → points (x, y), y a number or an Estimate, whose interval is drawn; None: not measured.

    ``radar``: x is the axis. ``bubble``: points (x, y, size); the area is the size, and None is hollow. ``waterfall`` and
    ``rings``: x is the key of a part, ``labels`` has its words. ``box``: x is the label of a value. Further elements of a
    point are added to the words of its mark. ``high``: the rim of a radar. ``empty``: the sentence shown instead of an
    empty plot. ``units``: of x and y. ``log``: the logarithmic axes. ``printed``: series → source of its printed values.
    ``runs``, ``questions``: series → for each of its points the run and the question that it stands for, "" if none.
    """

    title: str
    x: str
    y: str
    series: Mapping[str, tuple[tuple[Any, ...], ...]]
    kind: FigureKind = "line"
    labels: Mapping[str, str] = field(default_factory=dict)
    high: float | None = None
    empty: str = ""
    units: tuple[Unit, Unit] = ("", "")
    log: Literal["", "x", "y", "xy"] = ""
    printed: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    questions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, JsonValue]:
        """The form in ``report.json``, for plots of experiments."""
        value = asdict(self)
        always = {key: value[key] for key in ("title", "x", "y", "series", "kind")}
        used = ("labels", "high", "empty", "log", "printed", "runs", "questions")
        known = {key: value[key] for key in used if value[key]}
        return always | known | ({"units": list(self.units)} if any(self.units) else {})


@dataclass(frozen=True, slots=True)
class Code:
    """Text with significant line breaks: a prompt, a chain."""

    text: str


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that open on demand. ``mark``: a word beside the title; ``tone``: good, bad or ''."""

    title: str
    blocks: tuple[Any, ...]
    mark: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its blocks: sentences, Tables, Figures, Codes, Costs, Folds."""

    title: str
    blocks: Iterable[Any]
