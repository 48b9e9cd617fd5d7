"""The points of a figure as values, and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Union

from rallebench.core.numbers import as_estimate
from rallebench.core.report import Estimate
from rallebench.core.tables import Cell, Column, Figure, Table, Unit


@dataclass(frozen=True, slots=True)
class Mark:
    """A point with a value. ``size``: of a bubble, None if unknown; ``words``: further parts of the point; ``run``,
    ``question``: what it stands for, or ''."""

    series: str
    x: Union[float, str]
    y: Estimate
    size: float | None = None
    words: tuple[str, ...] = ()
    run: str = ""
    question: str = ""


def find_marks(value: Figure) -> Mapping[str, tuple[Mark, ...]]:
    """Series → its points that have both x and a value; series without such points are omitted.

    >>> list(find_marks(Figure("", "k", "EM", {"a": ((1, 0.5), (2, None)), "b": ((1, None),)})))
    ['a']
    """
    drawn = {name: tuple(_marks(value, name)) for name in value.series}
    return {name: marks for name, marks in drawn.items() if marks}


def _marks(value: Figure, name: str) -> Iterator[Mark]:
    bubbles = value.kind == "bubble"
    runs, questions = value.runs.get(name, ()), value.questions.get(name, ())
    for place, (x, y, *more) in enumerate(value.series[name]):
        mean = as_estimate(y) or Estimate(y)
        if x is None or mean.value is None:
            continue
        size = more[0] if bubbles and more else None
        words = tuple(map(str, more[1:] if bubbles else more))
        run = runs[place] if place < len(runs) else ""
        question = questions[place] if place < len(questions) else ""
        yield Mark(name, x, mean, size, words, run, question)


def value_unit(value: Figure) -> Unit:
    """The unit of the values, by their name if the figure gives none.

    >>> value_unit(Figure("", "", "F1 (percent)", {})), value_unit(Figure("", "", "seconds", {}))
    ('percent', '')
    """
    if value.units[1]:
        return value.units[1]
    words = value.y.lower()
    percent = words.endswith(("percent", "%", "percent)"))
    return "percent" if percent else ""


def marks_table(value: Figure) -> Table:
    """The points of a figure, one per row, with the source of printed ones."""
    marks = [mark for row in find_marks(value).values() for mark in row]
    label = value.y if value.y not in ("", value.x, "series") else "value"
    columns = [Column("series", "text"), Column(value.x or "part", "text"), Column(label)]
    sized, printed = any(mark.size is not None for mark in marks), bool(value.printed)
    if sized:
        columns.append(Column("size", "count"))
    if printed:
        columns.append(Column("source", "text"))
    rows: list[tuple[Cell, ...]] = []
    for mark in marks:
        row: tuple[Cell, ...] = (mark.series, _short(mark.x), mark.y)
        row += (mark.size,) * sized + (value.printed.get(mark.series, "ours"),) * printed
        rows.append(row)
    unit = value_unit(value)
    units = dict.fromkeys(range(len(rows)), "fraction" if unit == "share" else unit or "number")
    return Table(value.title, tuple(columns), tuple(rows), units=units)


def _short(x: float | str) -> float | str:
    """A number without the digits of its computation."""
    if isinstance(x, str):
        return x
    short = float(f"{x:.6g}")
    return int(short) if short.is_integer() else short
