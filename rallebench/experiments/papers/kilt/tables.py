"""RaLLe's tables: headline metrics, KILT's variants, retrieval, speed and memory, the printed figures below ours.

A printed figure stands in the column of its own set. A printed average stands below ours only where both are over the same sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rallebench.core.experiments import Figure, Table
from rallebench.core.runs import RunResult
from rallebench.core.types import Episode, Generate, Retrieve
from rallebench.engine.statistics import Mean
from rallebench.experiments.papers.kilt import published
from rallebench.experiments.papers.kilt.sets import SETS, KiltSet

AVERAGE = "average"
GB = 1e9
_OVER = "The average counts every set the same, over those that have a value; RaLLe's is over the same sets as ours."
LABELS = {"accuracy": "accuracy", "em": "EM", "rougel": "ROUGE-L", "f1": "F1"}


@dataclass(frozen=True, slots=True)
class Done:
    """A set answered in one way."""

    kilt: KiltSet
    mode: str
    answered: RunResult


def tables_of(done: Sequence[Done], llm: str, retriever: str, bracket: str) -> tuple[Table, ...]:
    """Those tables that have a number of ours. ``bracket``: the has_answer that is reported."""
    made = (
        _headline(done, llm, bracket),
        _variants(done, llm),
        *_retrieval(done, retriever),
        _speed(done, retriever),
    )
    return tuple(table for table in made if table.rows)


def plots_of(done: Sequence[Done]) -> tuple[Figure, ...]:
    """Headline and R-precision over the sets, a series for every way."""
    found = []
    for title, metric in (("Headline metric", ""), ("R-precision", "Rprec")):
        series = {}
        for mode in dict.fromkeys(one.mode for one in done):
            points = [
                (one.kilt.label, one.answered.means.get(metric or one.kilt.headline))
                for one in done
                if one.mode == mode
            ]
            if any(mean and mean.value is not None for _, mean in points):
                series[mode] = tuple((label, mean) for label, mean in points if mean is not None)
        if series:
            found.append(Figure(title, "set", title, series, "bar"))
    return tuple(found)


def averages(done: Sequence[Done], bracket: str) -> dict[str, dict[str, float | None]]:
    """Way → metric → macro-average over its sets, each set counting the same; ``headline`` and its KILT variant
    are each set's own."""
    found = {}
    for mode in dict.fromkeys(one.mode for one in done):
        mine = [one for one in done if one.mode == mode]
        found[mode] = {
            "headline": _average(_mean(one, one.kilt.headline) for one in mine),
            "KILT": _average(_mean(one, one.kilt.variant) for one in mine),
            bracket: _average(_mean(one, bracket) for one in mine if one.kilt.short),
            "Rprec": _average(_mean(one, "Rprec") for one in mine),
            "recall@5": _average(_mean(one, "recall@5") for one in mine),
        }
    return found


def _headline(done: Sequence[Done], llm: str, bracket: str) -> Table:
    sets = _sets(done)
    rows = []
    for mode in _modes(done, lambda one: one.kilt.headline):
        name = f"{llm or 'no model'}, {mode}"
        rows.append(_row(name, sets, _cells(done, mode, lambda one: one.kilt.headline)))
        rows.append(
            _row(
                f"{name}: {bracket}",
                sets,
                _cells(done, mode, lambda one: bracket if one.kilt.short else ""),
            )
        )
    if rows:
        rows.append(_printed(published.READER, sets, published.answers("downstream"), rows[::2]))
        brackets = published.answers("downstream", has_answer=True)
        rows.append(_printed(f"{published.READER}: has_answer", sets, brackets, rows[1:-1:2]))
    metrics = "; ".join(
        f"{', '.join(one.label for one in sets if one.headline == metric)}: {label}"
        for metric, label in LABELS.items()
        if any(one.headline == metric for one in sets)
    )
    return Table(f"Headline metric ({metrics})", _columns(sets), tuple(rows), True, _note())


def _variants(done: Sequence[Done], llm: str) -> Table:
    sets = _sets(done)
    rows = [
        _row(f"{llm or 'no model'}, {mode}", sets, _cells(done, mode, lambda one: one.kilt.variant))
        for mode in _modes(done, lambda one: one.kilt.variant)
    ]
    if rows:
        rows.append(_printed(published.READER, sets, published.answers("KILT"), rows))
    note = f"The headline metric, counted only where R-precision is 1: right, and for the gold's reasons. {_OVER}"
    return Table("KILT's variant of the headline metric", _columns(sets), tuple(rows), True, note)


def _retrieval(done: Sequence[Done], retriever: str) -> Iterable[Table]:
    sets = _sets(done)
    for metric, title in (("Rprec", "R-precision"), ("recall@5", "Recall@5")):
        rows = [
            _row(f"{retriever}, {mode}", sets, _cells(done, mode, _always(metric)))
            for mode in _modes(done, _always(metric))
        ]
        if rows:
            linking = any(one.task == "linking" for one in sets)
            rows += [
                _printed(f"RaLLe: {name}", sets, cells, list(rows))
                for name, cells in published.retrieval(metric, linking)
            ]
        yield Table(title, _columns(sets), tuple(rows), True, _note())


def _speed(done: Sequence[Done], retriever: str) -> Table:
    columns = (
        "",
        "questions",
        "retrieval, s a question",
        "generation, s a question",
        "together, s a question",
        "memory of the index, GB",
        "memory of the model, GB",
    )
    rows: list[tuple[Any, ...]] = []
    for one in done:
        episodes = list(one.answered.episodes.values())
        searching, writing = _seconds(episodes, Retrieve), _seconds(episodes, Generate)
        part = one.answered.request.flow
        rows.append(
            (
                f"{one.kilt.label}, {one.mode}",
                len(episodes),
                searching,
                writing,
                _sum(searching, writing),
                _memory(one.answered, part.retrievers),
                _memory(one.answered, part.llms),
            )
        )
    if any(part.answered.request.flow.retrievers for part in done):
        for name, seconds, memory in published.speeds():
            rows += [
                (
                    f"RaLLe: {name}, {one.label}",
                    None,
                    seconds.values[one.label],
                    None,
                    None,
                    memory,
                    None,
                )
                for one in _sets(done)
            ]
    note = (
        "Seconds are what asking took when it was asked, also where the answer came from memory this time; memory is what the "
        "process grew by while loading. RaLLe's are over 22.2 million passages."
    )
    return Table(f"Speed and memory ({retriever or 'no index'})", columns, tuple(rows), False, note)


def _seconds(episodes: Sequence[Episode], kind: type) -> float | None:
    steps = [
        step.seconds
        for episode in episodes
        for step in episode.steps
        if isinstance(step.request, kind)
    ]
    return sum(steps) / len(episodes) if steps else None


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _memory(answered: RunResult, names: Sequence[str]) -> float | None:
    """None where nothing was loaded for it, or elsewhere."""
    known = [answered.memory[name] / GB for name in names if answered.memory.get(name)]
    return sum(known) if known else None


def _always(metric: str) -> Callable[[Done], str]:
    return lambda one: metric


def _sets(done: Sequence[Done]) -> list[KiltSet]:
    return list({one.kilt.name: one.kilt for one in done}.values())


def _columns(sets: Sequence[KiltSet]) -> tuple[str, ...]:
    return ("", *(one.label for one in sets), *([AVERAGE] if len(sets) > 1 else ()))


def _modes(done: Sequence[Done], metric: Callable[[Done], str]) -> list[str]:
    """The ways in which the metric has a value for some set."""
    return list(dict.fromkeys(one.mode for one in done if _mean(one, metric(one)) is not None))


def _mean(one: Done, metric: str) -> float | None:
    return one.answered.mean(metric)


def _cells(
    done: Sequence[Done], mode: str, metric: Callable[[Done], str]
) -> dict[str, Mean | None]:
    return {one.kilt.name: one.answered.means.get(metric(one)) for one in done if one.mode == mode}


def _row(name: str, sets: Sequence[KiltSet], cells: Mapping[str, Any]) -> tuple[Any, ...]:
    """Cells in the order of ``sets``; of several sets also their average, every set counting the same."""
    found = [cells.get(one.name) for one in sets]
    return (name, *found, *([_average(map(_value, found))] if len(sets) > 1 else ()))


def _printed(
    name: str, sets: Sequence[KiltSet], cells: Mapping[str, float], ours: Sequence[tuple[Any, ...]]
) -> tuple[Any, ...]:
    """RaLLe's row, by the labels of sets. Its average is over the sets that ours are over, None where ours differ in that; the
    printed average stands only for all eleven."""
    row = [cells.get(one.label) for one in sets]
    if len(sets) == 1:
        return (name, *row)
    scored = {
        tuple(one.label for one, cell in zip(sets, mine[1:]) if _value(cell) is not None)
        for mine in ours
    }
    labels = scored.pop() if len(scored) == 1 else ()
    if len(labels) == len(SETS) and published.AVERAGE in cells:
        return (name, *row, cells[published.AVERAGE])
    return (
        name,
        *row,
        fmean(cells[label] for label in labels) if labels and cells.keys() >= set(labels) else None,
    )


def _value(cell: Any) -> float | None:
    return cell.value if isinstance(cell, Mean) else cell


def _average(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _note() -> str:
    return f"{_OVER} RaLLe's figures are of KILT's dev files over all of Wikipedia."
