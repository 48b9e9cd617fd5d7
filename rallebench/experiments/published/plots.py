"""Drawings of printed tables: the axis and the series of each."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rallebench.core.tables import Figure, FigureKind
from rallebench.experiments.published.tables import PublishedRow, PublishedTable

OURS = "ours: "
"""Beginning of the names of our series and rows."""
AVERAGE = "Avg"
"""Column with the mean over all sets, which no drawing has."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing of a table.

    ``columns``: names or patterns of the columns along the axis, a series for each row. Or ``along``: a setting of the
    rows along the axis, with the setting ``by`` for the series, of one column. ``where``: settings of the drawn rows;
    ``each``: a setting with a drawing for each of its values, which replaces {} in the title; ``cut``: the beginning of
    columns that is not part of their labels. ``bubble``: the columns are x, y and size. ``high``: the lowest end of a
    radar's axes.
    """

    title: str
    columns: tuple[str, ...] = ("*",)
    y: str = "percent"
    x: str = ""
    kind: FigureKind = "bar"
    along: str = ""
    by: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    each: str = ""
    cut: str = ""
    high: float = 0.0

    def figure(self, lines: Iterable[PublishedRow]) -> Figure:
        fitting = [
            line
            for line in lines
            if all(line.settings.get(key) == value for key, value in self.where.items())
        ]
        series: dict[str, list[tuple[Any, ...]]] = {}
        for line in fitting:
            for name, point in self._points(line):
                series.setdefault(f"{OURS * line.own}{name}", []).append(point)
        drawn = {name: tuple(points) for name, points in series.items()}
        high = max(self.high, rim(drawn)) if self.kind == "radar" else None
        return Figure(self.title, self.x, self.y, drawn, self.kind, high=high)

    def _points(self, line: PublishedRow) -> Iterator[tuple[str, tuple[Any, ...]]]:
        values = [line.values.get(column) for column in self.columns]
        if self.kind == "bubble":
            if None not in values[:2] and not line.own:
                yield line.system, tuple(values)
        elif self.along:
            if values[0] is not None and line.settings.get(self.along) is not None:
                at = line.settings[self.along]
                name = str(line.settings.get(self.by, line.system)) if self.by else self.columns[0]
                yield name, (at if self.kind == "line" else str(at), values[0])
        else:
            for column, value in zip(self.columns, values):
                if value is not None:
                    yield line.system, (self._label(column), value)

    def _label(self, column: str) -> Any:
        label = column.removeprefix(self.cut)
        return float(label) if self.kind == "line" else label


def rim(series: Mapping[str, Iterable[tuple[Any, ...]]]) -> float:
    """The end of a radar's axes: the next multiple of ten above the largest figure."""
    values = (getattr(y, "value", y) for points in series.values() for _, y in points)
    return 10.0 * math.ceil(max(values, default=10.0) / 10)


def fit_plots(plots: Iterable[Plot], table: PublishedTable) -> tuple[Plot, ...]:
    """The plots with the column names of the table."""
    return tuple(fitted for plot in plots for fitted in _fit(plot, table))


def _fit(plot: Plot, table: PublishedTable) -> Iterator[Plot]:
    """The plot with its columns by name, one for each value of ``each``; radars of one table have one scale."""
    chosen = (name for pattern in plot.columns for name in fnmatch.filter(table.columns, pattern))
    columns = tuple(name for name in chosen if name != AVERAGE)
    high = 0.0
    if plot.kind == "radar":
        high = rim({"": [("", row.values[name]) for row in table.rows for name in columns]})
    for value in dict.fromkeys(row.settings.get(plot.each) for row in table.rows):
        where = {**plot.where, plot.each: value} if plot.each else plot.where
        title = plot.title.format(value)
        yield replace(plot, title=title, columns=columns, where=where, high=high)
