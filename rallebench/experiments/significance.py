"""Paired tests between the runs of one experiment, such as noise levels, ways to answer, models or systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Union

from rallebench.analysis.paired import Bounds, Scores, Sides, compare_all
from rallebench.analysis.suites import TITLE, paired_table
from rallebench.core.runs import RunResult
from rallebench.core.tables import Table
from rallebench.core.types import Example
from rallebench.engine.clusters import find_clusters
from rallebench.engine.score import score_episode
from rallebench.experiments.common import score_bounds

Group = Mapping[str, Union[RunResult, Sequence[RunResult]]]
"""Label → its run, or one run for each question set; all labels have the same questions."""
SetOf = Callable[[RunResult], str]


def _dataset(result: RunResult) -> str:
    return result.request.dataset.name


def tests_between(
    groups: Mapping[str, Group],
    metrics: Sequence[str],
    *,
    names: Mapping[str, str] = {},
    best: bool = False,
    set_of: SetOf = _dataset,
) -> tuple[Table, ...]:
    """A table of paired tests for each metric, with Holm's correction over all tests; () without two runs to compare.

    ``groups``: name → runs to compare in all pairs. With ``best``, each run is compared only with the run that has the highest
    mean of the first metric. ``names``: metric → heading. ``set_of``: the name of a run's question set, within which qids
    identify questions. Failed and unscored questions are left out.
    """
    sides: dict[tuple[str, str], Sides] = {}
    bounds: dict[str, tuple[float | None, float | None]] = {}
    for title, labels in groups.items():
        group = {n: (of,) if isinstance(of, RunResult) else of for n, of in labels.items()}
        for first, other in _best_first(group, metrics[0]) if best else combinations(group, 2):
            label = f"{title}: {other} less {first}" if title else f"{other} less {first}"
            runs = (*group[first], *group[other])
            clusters = _clusters(runs, set_of)
            bounds |= {column.name: column.range for column in runs[0].columns}
            for name in metrics:
                less, more = (_scores(group[side], name, set_of) for side in (first, other))
                sides[label, names.get(name, name)] = name, less, more, clusters
    return test_table(sides, bounds)


def test_table(
    sides: Mapping[tuple[str, str], Sides], bounds: Bounds | None = None
) -> tuple[Table, ...]:
    """The table of these tests, (comparison, heading) → sides; () if no question is scored on two sides.

    ``bounds``: ranges of the metrics, by default the ranges shared by all experiments.
    """
    if bounds is None:
        bounds = score_bounds({side[0] for side in sides.values()})
    pairs = compare_all(sides, bounds)
    return (paired_table(TITLE, "runs", pairs, "The first less the second"),) if pairs else ()


def _best_first(group: Mapping[str, Sequence[RunResult]], metric: str) -> Iterator[tuple[str, str]]:
    means = {
        label: fmean(known)
        for label, runs in group.items()
        if (known := [s for s in _scores(runs, metric, _dataset).values() if s is not None])
    }
    best = max(means, key=lambda label: means[label], default="")
    return ((best, label) for label in means if label != best)


def _scores(results: Sequence[RunResult], metric: str, set_of: SetOf) -> Scores:
    return {
        f"{set_of(result)} {qid}": score
        for result in results
        for qid, score in _of_run(result, metric).items()
    }


def _of_run(result: RunResult, metric: str) -> Scores:
    """Question → score, by the experiment's own metric or by a registered metric of the run."""
    request = result.request
    if metric in result.values or metric not in request.metrics:
        return result.values.get(metric, {})
    return {
        qid: score_episode(result.episodes[qid], example, (metric,))[0].value
        for example in request.examples
        if (qid := example.question.qid) in result.episodes
    }


def _clusters(results: Sequence[RunResult], set_of: SetOf) -> Mapping[str, str]:
    by_set: dict[str, dict[str, Example]] = {}
    for result in results:
        examples = {example.question.qid: example for example in result.request.examples}
        by_set.setdefault(set_of(result), {}).update(examples)
    return {
        f"{name} {qid}": f"{name} {cluster}"
        for name, of_set in by_set.items()
        for qid, cluster in find_clusters(list(of_set.values())).of.items()
    }
