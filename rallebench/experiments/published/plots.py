"""The drawings of printed tables: the axis and the series of each."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from rallebench.analysis.agents.errors import CLASSES
from rallebench.core.tables import Figure, FigureKind
from rallebench.experiments.languages import CODES
from rallebench.experiments.published import PublishedRow, PublishedTable, published_table

OURS = "ours: "
"""The beginning of the name of a series, or of a row, of ours."""
AVERAGE = "Avg"
"""The column of a mean over all sets, which is in no drawing."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing of a table. ``columns``, names or patterns, run along it, a series for each row; or ``along``, a setting of the rows, of
    whose series ``by`` is a setting, too, and the one column is drawn. ``where``: settings of the drawn rows; ``each``: a setting for
    each of whose values, which the title's {} is, there is a drawing; ``cut``: the beginning of columns that their labels lack.
    ``bubble``: the columns are x, y and size. ``high``: the least end of a radar's axes."""

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
        high = max(self.high, _rim(drawn)) if self.kind == "radar" else None
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


def _rim(series: Mapping[str, Iterable[tuple[Any, ...]]]) -> float:
    """The end of a radar's axes: the next ten above the largest figure."""
    values = (getattr(y, "value", y) for points in series.values() for _, y in points)
    return 10.0 * math.ceil(max(values, default=10.0) / 10)


def plots_of(table: PublishedTable) -> tuple[Plot, ...]:
    """The drawings of a table, () where it prints nothing to be drawn."""
    return tuple(each for plot in PLOTS.get(table.name, ()) for each in _of_table(plot, table))


def _of_table(plot: Plot, table: PublishedTable) -> Iterator[Plot]:
    """The plot with its columns by name, one for each value of ``each``; radars of one table have one rim."""
    chosen = (name for pattern in plot.columns for name in fnmatch.filter(table.columns, pattern))
    columns = tuple(name for name in chosen if name != AVERAGE)
    high = 0.0
    if plot.kind == "radar":
        high = _rim({"": [("", row.values[name]) for row in table.rows for name in columns]})
    for value in dict.fromkeys(row.settings.get(plot.each) for row in table.rows):
        where = {**plot.where, plot.each: value} if plot.each else plot.where
        title = plot.title.format(value)
        yield replace(plot, title=title, columns=columns, where=where, high=high)


AXES = {
    "Wikipedia KS": ("reval_table5", ("1-1", "1-2")),
    "Wikipedia KU": ("reval_table5", ("2-1", "2-2", "2-3")),
    "Wikipedia KA": ("reval_table5", ("3-1", "3-2", "3-3", "3-4")),
    "scholar KS": ("reval_table3", ("1-3",)),
    "scholar KU": ("reval_table3", ("2-4",)),
    "scholar KA": ("reval_table3", ("3-5",)),
}
"""Axis of R-Eval's radars → the table and the tasks whose mean it is."""


def _levels(table: PublishedTable) -> Iterator[Figure]:
    """R-Eval's radars: F1 by environment and level, a radar a workflow, a polygon a model; both tables of tasks have a part."""
    series: dict[str, dict[str, tuple[tuple[str, float], ...]]] = {}
    for row in table.rows:
        means = []
        for axis, (name, tasks) in AXES.items():
            values = published_table(name).row(row.system).values
            means.append((axis, fmean(values[task] for task in tasks)))
        series.setdefault(row.settings["workflow"], {})[row.settings["llm"]] = tuple(means)
    high = max(_rim(of_workflow) for of_workflow in series.values())
    for workflow, of_workflow in series.items():
        title = f"{workflow}, by environment and level"
        yield Figure(title, "", "F1", of_workflow, "radar", high=high)


ERRORS = {
    "exact_match_percent": "EM",
    "answer_match_percent": "AM",
    "tool_using_error_percent": "TE",
}
"""Fact of R-Eval's text → its class of answers."""
RIGHT = ("EM", "AM")


def _shares(table: PublishedTable) -> Iterator[Figure]:
    """R-Eval's rings, as far as its text prints their shares."""
    beginning = "error shares of "
    for row in table.rows:
        if row.system.startswith(beginning):
            classes = {ERRORS[name]: value for name, value in row.values.items()}
            right = sum(classes[name] for name in RIGHT)
            rest = "other errors, not printed one by one"
            outside = {**classes, rest: round(100 - sum(classes.values()), 1)}
            ordered = sorted(outside.items(), key=lambda part: part[0] not in RIGHT)
            series = {
                "right and wrong": (("ACC", round(right, 1)), ("WA", round(100 - right, 1))),
                "classes": tuple(ordered),
            }
            title = row.system.removeprefix(beginning)
            yield Figure(title, "", "percent", series, "rings", labels=CLASSES)


DRAWN: Mapping[str, Callable[[PublishedTable], Iterator[Figure]]] = {
    "reval_table3": _levels,
    "reval_text_facts": _shares,
}
"""Table → drawings of figures that it prints only together with others; our rows do not stand in them."""


def drawn_of(table: PublishedTable) -> Iterator[Figure]:
    """The drawings of a table that are not of its columns alone."""
    yield from DRAWN[table.name](table) if table.name in DRAWN else ()


SET, SCORE, RETRIEVAL = "set", "mean score, 1 to 5", {"block": "retrieval"}
BLOCKS = (
    Plot("Downstream", x=SET, where={"block": "downstream"}),
    Plot("KILT: counted where R-precision is 1", x=SET, where={"block": "KILT"}),
)
NOISE = tuple(
    Plot(name, (f"{code}_*",), x="share of noise", kind="line", cut=f"{code}_")
    for code, name in CODES.items()
)
JUDGED = (
    Plot("Scores of the judge", ("truthfulness", "relevance"), SCORE),
    Plot("Tokens", ("n_in", "n_out"), "tokens in all"),
)
WORKFLOWS = (Plot("{}", ("[0-9]*",), "F1", "task", "radar", each="workflow"),)


def _by_factor(setting: str, kind: FigureKind) -> tuple[Plot, ...]:
    x = setting.replace("_", " ")
    return tuple(
        Plot(f"{column} by {x}", (column,), x=x, kind=kind, along=setting, by="task")
        for column in ("rouge-L", "recall")
    )


PLOTS: Mapping[str, tuple[Plot, ...]] = {
    "ralle_table2": BLOCKS,
    "ralle_table3": (Plot("Page-level R-precision of the retrievers", x=SET),),
    "ralle_table4": (
        Plot(
            "R-precision against seconds",
            ("sec_per_Q", "Avg_R-Prec", "Memory"),
            *("R-precision", "s a question", "bubble"),
            where=RETRIEVAL,
        ),
    ),
    "ralle_table5": BLOCKS,
    "ralle_table6": (Plot("Closed-book downstream scores (no retrieval)", x=SET),),
    "ralle_table7": (Plot("Without documents, on NQ", ("EM", "has_answer", "f1")),),
    "ralle_table8": (Plot("Recall@5 of the retrievers", x=SET),),
    "ralle_table9": (Plot("Retrieval", y="s a question", x=SET, where=RETRIEVAL),),
    "rgb_table1": NOISE,
    "rgb_table3": tuple(replace(plot, x="", kind="bar") for plot in NOISE),
    "rgb_table5": NOISE,
    "rgb_table6": (Plot("Errors of integration", along="error_type"),),
    "rgb_table7": tuple(Plot(name, where={"language": code}) for code, name in CODES.items()),
    "barag_table1": tuple(
        Plot(metric.capitalize(), y=SCORE, where={"metric": metric})
        for metric in ("truthfulness", "relevance")
    ),
    "barag_table2": JUDGED,
    "barag_table3": JUDGED,
    "crud_table3": _by_factor("chunk_size", "line"),
    "crud_table4": _by_factor("chunk_overlap_percent", "line"),
    "crud_table5": _by_factor("retriever", "bar"),
    "crud_table6": _by_factor("embedding", "bar"),
    "crud_table7": _by_factor("top-k", "line"),
    "crud_table8": _by_factor("llm", "bar"),
    "reval_table3": WORKFLOWS,
    "reval_table5": WORKFLOWS,
    "mtrag_table1": (Plot("Asked by: {}", each="form"),),
    "browsecomp_table1": (Plot("With {}", ("accuracy", "recall"), each="retriever"),),
    "browsecomp_table2": (Plot("Evidence and gold documents"),),
}
"""Table → its drawings. Of the others a table of words or sizes is all that there is to see."""
