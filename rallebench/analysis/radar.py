"""Means of runs along several axes, as a radar or a table. The axes are datasets, or kinds of question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.analysis.measures import headline, measure, shared_measures
from rallebench.analysis.ranking import means_over, read_scores, run_mean, scored_by_all
from rallebench.core.comparison import Measure
from rallebench.core.dataset_edits import question_key
from rallebench.core.errors import UsageError
from rallebench.core.report import Estimate
from rallebench.core.tables import Figure, Table
from rallebench.core.types import Chain, Example
from rallebench.engine.clusters import find_clusters
from rallebench.engine.score import stored_examples
from rallebench.engine.store import RunFolder

DATASETS = "dataset"
"""Name of the axes when they are datasets, not values of a field."""
MOST_AXES = 24
"""A radar with more axes is unreadable."""
MAX_LABEL_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Radar:
    """``lines``: name → one mean per axis, None without a run. ``by``: the kind of axis."""

    by: str
    measure: Measure
    axes: tuple[str, ...]
    lines: Mapping[str, tuple[Estimate | None, ...]]


def figure(radar: Radar) -> Figure:
    """Draw one polygon per line. The rim is 1 for a metric from 0 to 1, otherwise slightly above the largest mean."""
    values = [m.value for row in radar.lines.values() for m in row if m and m.value is not None]
    high = 1.0 if radar.measure.bounds[1] == 1 else max(values, default=0) * 1.1
    title = f"{radar.measure.card.label} by {radar.by}"
    series = {name: tuple(zip(radar.axes, row)) for name, row in radar.lines.items()}
    empty = "A radar needs three axes; the table has the means."
    return Figure(title, radar.by, title, series, "radar", high=high or 1.0, empty=empty)


def table(radar: Radar) -> Table:
    """Return a table of axes by lines: means with their intervals over articles."""
    rows = tuple(zip(radar.axes, *radar.lines.values()))
    title = f"{radar.measure.card.label}, mean and 95 % interval over articles"
    return Table(title, (radar.by, *radar.lines), rows)


def over_datasets(runs: Sequence[RunFolder], chosen: str = "") -> Radar:
    """Return a radar of chains over the datasets of their runs; each run counts with all its own questions.

    Two runs of one chain on one dataset are separate lines. Raises UsageError for fewer than two datasets.
    """
    datasets = tuple(dict.fromkeys(run.description().dataset for run in runs))
    if len(datasets) < 2:
        raise UsageError(
            f"All runs are of {datasets[0] if datasets else 'no dataset'}; choose runs of several datasets."
        )
    measured = measure(chosen, runs) if chosen else headline(shared_measures(runs), runs)
    lines: dict[str, dict[str, RunFolder]] = {}
    contents: dict[str, Chain | str] = {}
    for run in runs:
        label, content = _chain(run)
        dataset = run.description().dataset
        if contents.setdefault(label, content) != content or dataset in lines.get(label, {}):
            label = run.name
        lines.setdefault(label, {})[dataset] = run
    means = {
        label: tuple(run_mean(own[name], measured) if name in own else None for name in datasets)
        for label, own in lines.items()
    }
    return Radar(DATASETS, measured, datasets, means)


def over_field(runs: Sequence[RunFolder], common: Sequence[Example], chosen: str, by: str) -> Radar:
    """Return a radar of runs over the values of a field of the records, most frequent first.

    Only questions that all runs have scored count. Raises UsageError if the field has fewer than two values.
    """
    names = _values(common, by)
    if len(names) < 2:
        raise UsageError(f"The questions have no kinds by {by!r}; choose another field.")
    measured, clusters = measure(chosen, runs), find_clusters(common)
    columns = {run.name: read_scores(run, (measured.name,))[measured.name] for run in runs}
    axes = tuple(name for name, _ in names.most_common(MOST_AXES))
    by_axis = []
    for axis in axes:
        qids = [e.question.qid for e in common if _field(e, by) == axis]
        scored = scored_by_all(columns.values(), qids)
        by_axis.append(means_over(scored, columns, clusters, measured.bounds))
    lines = {run: tuple(means[run] for means in by_axis) for run in columns}
    return Radar(by, measured, axes, lines)


def share_nothing(runs: Sequence[RunFolder]) -> bool:
    """Return whether runs of several datasets share no question, so that only their means can be compared."""
    if len({run.description().dataset for run in runs}) < 2:
        return False
    questions = [{(e.question.qid, question_key(e)) for e in stored_examples(run)} for run in runs]
    return not set.intersection(*questions)


def possible_axes(runs: Sequence[RunFolder], common: Sequence[Example]) -> list[str]:
    """Return the axes that a radar of these runs can have."""
    sets = {run.description().dataset for run in runs}
    return [DATASETS] * (len(sets) > 1) + kind_fields(common)


def over(runs: Sequence[RunFolder], common: Sequence[Example], chosen: str, by: str) -> Radar:
    """Return the radar by ``by``, one of ``possible_axes``. Raises UsageError."""
    return over_datasets(runs, chosen) if by == DATASETS else over_field(runs, common, chosen, by)


def kind_fields(examples: Sequence[Example]) -> list[str]:
    """Return the fields of records that divide them into 2 to MOST_AXES kinds; ``meta.…`` for fields of ``meta``."""
    names = dict.fromkeys(name for example in examples[:200] for name, _ in _fields(example.record))
    return [name for name in names if _parts(_values(examples, name), len(examples))]


def _parts(values: Counter[str], questions: int) -> bool:
    # A field with a different value for each question is an id, not a kind.
    return (
        2 <= len(values) <= MOST_AXES
        and 2 * len(values) <= sum(values.values())
        and 2 * sum(values.values()) > questions
    )


def _values(examples: Sequence[Example], by: str) -> Counter[str]:
    return Counter(value for example in examples if (value := _field(example, by)))


def _field(example: Example, by: str) -> str:
    return next((value for name, value in _fields(example.record) if name == by), "")


def _fields(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of the fields that may name a kind of question."""
    meta = record.get("meta")
    inside = (
        {f"meta.{key}": value for key, value in meta.items()} if isinstance(meta, Mapping) else {}
    )
    for name, value in {**record, **inside}.items():
        if name in ("id", "input", "output", "meta") or not isinstance(value, (str, bool, int)):
            continue
        if 0 < len(str(value)) <= MAX_LABEL_CHARACTERS:
            yield name, str(value)


def _chain(run: RunFolder) -> tuple[str, Chain | str]:
    """Return the name of a run's line, and its chain, or the run's name if it has none."""
    chain = run.description().chain
    return (chain.name, chain) if chain else (run.name, run.name)
