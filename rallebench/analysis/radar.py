"""Runs over several axes: question sets, or the kinds of question of one set. Means by axis, for a radar or a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.analysis.measures import Measure, headline, measure, shared_measures
from rallebench.analysis.ranking import mean_of, scores_of
from rallebench.core.errors import UsageError
from rallebench.core.types import Example, digest
from rallebench.engine.clusters import Clusters, clusters_of
from rallebench.engine.score import examples_of
from rallebench.engine.statistics import Mean, means
from rallebench.engine.store import RunFolder
from rallebench.metrics import card

DATASETS = "question set"
"""The axes that are no field of a record."""
MOST_AXES, LEAST_AXES = 24, 3
"""More axes nobody can read; fewer span no area, and stand in the table alone."""
LONGEST = 60


@dataclass(frozen=True, slots=True)
class Radar:
    """``lines``: name → a mean per axis, None where it has none. ``by``: what the axes are."""

    by: str
    metric: str
    axes: tuple[str, ...]
    lines: Mapping[str, tuple[Mean | None, ...]]
    measure: Measure | None = None

    @property
    def about(self) -> Mapping[str, Any]:
        """The metric's card."""
        return self.measure.about if self.measure else card(self.metric)

    @property
    def spans(self) -> bool:
        """Whether there are enough axes for a polygon."""
        return len(self.axes) >= LEAST_AXES


def over_datasets(runs: Sequence[RunFolder], chosen: str = "") -> Radar:
    """A line per chain over the question sets that its runs asked; each run by all its own questions.

    Two runs of one chain on one question set are lines of their own. Raises UsageError for fewer than two sets.
    """
    sets = tuple(dict.fromkeys(str(run.spec()["spec"]["dataset"]) for run in runs))
    if len(sets) < 2:
        raise UsageError(
            f"All runs asked {sets[0] if sets else 'nothing'}; choose runs of several question sets."
        )
    of = _measure(runs, chosen)
    lines: dict[str, dict[str, RunFolder]] = {}
    kinds: dict[str, str] = {}
    for run in runs:
        label, content = _chain(run)
        dataset = str(run.spec()["spec"]["dataset"])
        if kinds.setdefault(label, content) != content or dataset in lines.get(label, {}):
            label = run.name
        lines.setdefault(label, {})[dataset] = run
    found = {
        label: tuple(_mean(its[one], of) if one in its else None for one in sets)
        for label, its in lines.items()
    }
    return Radar(DATASETS, of.name, sets, found, of)


def over_field(runs: Sequence[RunFolder], common: Sequence[Example], chosen: str, by: str) -> Radar:
    """A line per run over the values that a field of the records has, the most frequent first, by the questions that
    all runs have scored. Raises UsageError for a field without such values."""
    names = _values(common, by)
    if len(names) < 2:
        raise UsageError(f"The questions have no kinds by {by!r}; choose another field.")
    columns = [scores_of(run, (chosen,))[chosen] for run in runs]
    scored = [
        e for e in common if all(column.get(e.question.qid) is not None for column in columns)
    ]
    axes = tuple(name for name, _ in names.most_common(MOST_AXES))
    groups = {axis: [e.question.qid for e in scored if _field(e, by) == axis] for axis in axes}
    of, clusters = measure(chosen, runs), clusters_of(common)
    found = {
        run.name: tuple(_mean_over(groups[axis], column, of, clusters) for axis in axes)
        for run, column in zip(runs, columns)
    }
    return Radar(by, chosen, axes, found, of)


def share_nothing(runs: Sequence[RunFolder]) -> bool:
    """Whether runs of several question sets have no question in common: only their means can stand beside each other."""
    if len({str(run.spec()["spec"]["dataset"]) for run in runs}) < 2:
        return False
    asked = [{(e.question.qid, e.question.text) for e in examples_of(run)} for run in runs]
    return not set.intersection(*asked)


def axes_of(runs: Sequence[RunFolder], common: Sequence[Example]) -> list[str]:
    """What the axes of a radar over these runs can be."""
    sets = {str(run.spec()["spec"]["dataset"]) for run in runs}
    return [DATASETS] * (len(sets) > 1) + fields_of(common)


def over(runs: Sequence[RunFolder], common: Sequence[Example], chosen: str, by: str) -> Radar:
    """The radar by ``by``, one of ``axes_of``. Raises UsageError."""
    return over_datasets(runs, chosen) if by == DATASETS else over_field(runs, common, chosen, by)


def fields_of(examples: Sequence[Example]) -> list[str]:
    """The fields of records that part questions into 2 to MOST_AXES kinds, ``meta.…`` those of their ``meta``."""
    names = dict.fromkeys(name for example in examples[:200] for name, _ in _fields(example.record))
    return [name for name in names if _parts(_values(examples, name), len(examples))]


def _parts(values: Counter[str], questions: int) -> bool:
    # What each question has for itself names it; a kind has several questions.
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
    """(name, value) of the fields that could name a kind of question."""
    meta = record.get("meta")
    inside = (
        {f"meta.{key}": value for key, value in meta.items()} if isinstance(meta, Mapping) else {}
    )
    for name, value in {**record, **inside}.items():
        if name in ("id", "input", "output", "meta") or not isinstance(value, (str, bool, int)):
            continue
        if 0 < len(str(value)) <= LONGEST:
            yield name, str(value)


def _chain(run: RunFolder) -> tuple[str, str]:
    """What a run's line is called, and all that its chain is."""
    spec = run.spec()["spec"]
    chain = spec["settings"].get("chain")
    return (str(chain["name"]), digest(chain)) if chain else (run.name, run.name)


def _measure(runs: Sequence[RunFolder], chosen: str) -> Measure:
    if chosen:
        return measure(chosen, runs)
    known = shared_measures(runs)
    found = headline(known)
    if not found:
        raise UsageError("The runs share no metric; choose one to score them all by.")
    return known[found]


def _mean_over(
    qids: Sequence[str], column: Mapping[str, float | None], of: Measure, clusters: Clusters
) -> Mean:
    return means(
        {"": [column[qid] for qid in qids]}, clusters.labels(qids), {"": of.about["range"]}
    )[""]


def _mean(run: RunFolder, of: Measure) -> Mean | None:
    mean = mean_of(run, of)
    return mean if mean.value is not None else None
