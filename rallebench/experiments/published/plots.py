"""Plots of printed tables, each with its axes and series."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rallebench.core.tables import Figure, FigureKind
from rallebench.experiments.published.tables import PublishedRow, PublishedTable

OURS = "ours: "
"""Prefix for the names of our series and rows."""
AVERAGE = "Avg"
"""Column with the mean over all sets; plots omit it."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of a table.

    By default, ``columns`` (names or patterns) form the x axis, with one series for each row. Alternatively, ``along`` is a
    row setting for the x axis and ``by`` a row setting for the series; the plot then shows a single column. ``where``:
    settings of the rows to plot; ``each``: a setting with one plot for each value, which replaces {} in the title; ``cut``: a
    column prefix to remove from labels. ``bubble``: the columns are x, y and size. ``high``: the smallest upper limit of a
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
    """The upper limit of a radar's axes: the largest figure, rounded up to a multiple of ten."""
    values = (getattr(y, "value", y) for points in series.values() for _, y in points)
    return 10.0 * math.ceil(max(values, default=10.0) / 10)


def fit_plots(plots: Iterable[Plot], table: PublishedTable) -> tuple[Plot, ...]:
    """The plots with the column names of the table."""
    return tuple(fitted for plot in plots for fitted in _fit(plot, table))


def _fit(plot: Plot, table: PublishedTable) -> Iterator[Plot]:
    """The plot with its column names resolved, once for each value of ``each``; all radars of a table have the same scale."""
    chosen = (name for pattern in plot.columns for name in fnmatch.filter(table.columns, pattern))
    columns = tuple(name for name in chosen if name != AVERAGE)
    high = 0.0
    if plot.kind == "radar":
        high = rim({"": [("", row.values[name]) for row in table.rows for name in columns]})
    for value in dict.fromkeys(row.settings.get(plot.each) for row in table.rows):
        where = {**plot.where, plot.each: value} if plot.each else plot.where
        title = plot.title.format(value)
        yield replace(plot, title=title, columns=columns, where=where, high=high)
