"""The drawings of printed tables: the axis and the series of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from rallebench.analysis.agents.errors import CLASSES
from rallebench.core.tables import Figure, FigureKind
from rallebench.experiments.published import PublishedTable, published_table

OURS = "ours: "
"""The beginning of the name of a series, or of a row, of ours."""


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """A row that is drawn: printed, or ours, whose ``values`` are means."""

    name: str
    settings: Mapping[str, Any]
    values: Mapping[str, Any]
    own: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing of a table. ``columns`` run along it, a series for each row; or ``along``, a setting of the rows, of whose series
    ``by`` is a setting, too, and the one column is drawn. ``where``: settings of the drawn rows; ``cut``: the beginning of columns that
    their labels lack. ``bubble``: the columns are x, y and size. ``high``: the least end of a radar's axes."""

    title: str
    columns: tuple[str, ...]
    y: str = "percent"
    x: str = ""
    kind: FigureKind = "bar"
    along: str = ""
    by: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    cut: str = ""
    high: float = 0.0

    def figure(self, lines: Iterable[DrawnRow]) -> Figure:
        """The drawing of these rows."""
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

    def _points(self, line: DrawnRow) -> Iterator[tuple[str, tuple[Any, ...]]]:
        values = [line.values.get(column) for column in self.columns]
        if self.kind == "bubble":
            if None not in values[:2] and not line.own:
                yield line.name, tuple(values)
        elif self.along:
            if values[0] is not None and line.settings.get(self.along) is not None:
                at = line.settings[self.along]
                name = str(line.settings.get(self.by, line.name)) if self.by else self.columns[0]
                yield name, (at if self.kind == "line" else str(at), values[0])
        else:
            for column, value in zip(self.columns, values):
                if value is not None:
                    yield line.name, (self._label(column), value)

    def _label(self, column: str) -> Any:
        label = column.removeprefix(self.cut)
        return float(label) if self.kind == "line" else label


def _rim(series: Mapping[str, Iterable[tuple[Any, ...]]]) -> float:
    """The end of a radar's axes: the next ten above the largest figure."""
    values = (getattr(y, "value", y) for points in series.values() for _, y in points)
    return 10.0 * math.ceil(max(values, default=10.0) / 10)


def plots_of(table: PublishedTable) -> tuple[Plot, ...]:
    """The drawings of a table, () where it prints nothing to be drawn."""
    return tuple(_PLOTS[table.name](table)) if table.name in _PLOTS else ()


def lines_of(table: PublishedTable) -> list[DrawnRow]:
    """The printed rows."""
    return [DrawnRow(row.system, row.settings, row.values) for row in table.rows]


def _by_language(table: PublishedTable, kind: FigureKind) -> Iterator[Plot]:
    for language, name in (("en", "English"), ("zh", "Chinese")):
        columns = tuple(c for c in table.columns if c.startswith(f"{language}_"))
        x = "share of noise" if kind == "line" else ""
        yield Plot(name, columns, "percent", x, kind, cut=f"{language}_")


def _noise(table: PublishedTable) -> Iterator[Plot]:
    return _by_language(table, "line")


def _rejection(table: PublishedTable) -> Iterator[Plot]:
    return _by_language(table, "bar")


def _counterfactual(table: PublishedTable) -> Iterator[Plot]:
    for language, name in (("en", "English"), ("zh", "Chinese")):
        yield Plot(name, table.columns, where={"language": language})


def _errors(table: PublishedTable) -> Iterator[Plot]:
    yield Plot("Errors of integration", table.columns, along="error_type")


def _blocks(table: PublishedTable) -> Iterator[Plot]:
    for block, title in (
        ("downstream", "Downstream"),
        ("KILT", "KILT: counted where R-precision is 1"),
    ):
        yield Plot(title, table.columns, x="set", where={"block": block})


def _sets(table: PublishedTable) -> Iterator[Plot]:
    columns = tuple(column for column in table.columns if column != "Avg")
    yield Plot(table.about.partition(",")[0].capitalize(), columns, x="set")


def _speed(table: PublishedTable) -> Iterator[Plot]:
    columns = ("sec_per_Q", "Avg_R-Prec", "Memory")
    where = {"block": "retrieval"}
    yield Plot(
        "R-precision against seconds", columns, "R-precision", "s a question", "bubble", where=where
    )


def _seconds(table: PublishedTable) -> Iterator[Plot]:
    columns = tuple(column for column in table.columns if column != "Avg")
    yield Plot("Retrieval", columns, "s a question", "set", where={"block": "retrieval"})


def _models(table: PublishedTable) -> Iterator[Plot]:
    yield Plot("Without documents, on NQ", table.columns[:3])


def _scores(table: PublishedTable) -> Iterator[Plot]:
    columns = tuple(c for c in table.columns if "score" in table.unit(c))
    yield Plot("Scores of the judge", columns, "mean score, 1 to 5")
    tokens = tuple(c for c in table.columns if "tokens" in table.unit(c))
    if tokens:
        yield Plot("Tokens", tokens, "tokens in all")


def _articles(table: PublishedTable) -> Iterator[Plot]:
    for metric in ("truthfulness", "relevance"):
        yield Plot(
            metric.capitalize(), table.columns, "mean score, 1 to 5", where={"metric": metric}
        )


def _factor(table: PublishedTable) -> Iterator[Plot]:
    setting = next(name for name in table.rows[0].settings if name not in ("task", "base"))
    ordered = all(isinstance(row.settings[setting], int) for row in table.rows)
    kind: FigureKind = "line" if ordered else "bar"
    for column in ("rouge-L", "recall"):
        x = setting.replace("_", " ")
        yield Plot(f"{column} by {x}", (column,), "percent", x, kind, setting, "task")


def _forms(table: PublishedTable) -> Iterator[Plot]:
    for form in dict.fromkeys(row.settings["form"] for row in table.rows):
        yield Plot(f"Asked by: {form}", table.columns, where={"form": form})


def _agents(table: PublishedTable) -> Iterator[Plot]:
    for retriever in dict.fromkeys(row.settings["retriever"] for row in table.rows):
        yield Plot(f"With {retriever}", table.columns[:2], where={"retriever": retriever})


def _retrievers(table: PublishedTable) -> Iterator[Plot]:
    yield Plot("Evidence and gold documents", table.columns)


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


def _workflows(table: PublishedTable) -> Iterator[Plot]:
    tasks = tuple(column for column in table.columns if column[0].isdigit())
    high = _rim({"": [("", row.values[task]) for row in table.rows for task in tasks]})
    for workflow in dict.fromkeys(row.settings["workflow"] for row in table.rows):
        yield Plot(workflow, tasks, "F1", "task", "radar", where={"workflow": workflow}, high=high)


_PLOTS = {
    "ralle_table2": _blocks,
    "ralle_table3": _sets,
    "ralle_table4": _speed,
    "ralle_table5": _blocks,
    "ralle_table6": _sets,
    "ralle_table7": _models,
    "ralle_table8": _sets,
    "ralle_table9": _seconds,
    "rgb_table1": _noise,
    "rgb_table3": _rejection,
    "rgb_table5": _noise,
    "rgb_table6": _errors,
    "rgb_table7": _counterfactual,
    "barag_table1": _articles,
    "barag_table2": _scores,
    "barag_table3": _scores,
    **{f"crud_table{number}": _factor for number in range(3, 9)},
    "reval_table3": _workflows,
    "reval_table5": _workflows,
    "mtrag_table1": _forms,
    "browsecomp_table1": _agents,
    "browsecomp_table2": _retrievers,
}
"""Table → its drawings. Of the others a table of words or sizes is all that there is to see."""
