"""Paired tests between the runs of one experiment: between shares of noise, ways to answer, models or systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean

from rallebench.analysis.paired import Scores, Sides, compare_all
from rallebench.analysis.suites import TITLE, paired_table
from rallebench.core.runs import RunResult
from rallebench.core.tables import Table
from rallebench.core.types import Example
from rallebench.engine.clusters import clusters_of

Group = Mapping[str, Sequence[RunResult]]
"""Label → its runs, one a set of questions; questions of one set are the same for all labels."""


def tests_between(
    groups: Mapping[str, Group],
    metrics: Sequence[str],
    *,
    names: Mapping[str, str] = {},
    best: bool = False,
) -> tuple[Table, ...]:
    """A table of paired tests by each metric, corrected by Holm for all of them; () where there are no two runs to compare.

    ``groups``: name → runs that are compared with each other, all pairs, or with ``best`` each with the one of the highest mean of
    the first metric. ``names``: metric → its heading. Failed questions and those that a metric does not score are in no test.
    """
    sides: dict[tuple[str, str], Sides] = {}
    for title, group in groups.items():
        for first, other in _best_first(group, metrics[0]) if best else combinations(group, 2):
            label = f"{title}: {other} less {first}" if title else f"{other} less {first}"
            clusters = _clusters((*group[first], *group[other]))
            for name in metrics:
                scores = _scores(group[first], name), _scores(group[other], name)
                sides[label, names.get(name, name)] = name, *scores, clusters
    pairs = compare_all(sides)
    return (paired_table(TITLE, "runs", pairs, "The first less the second"),) if pairs else ()


def _best_first(group: Group, metric: str) -> Iterator[tuple[str, str]]:
    means = {
        label: fmean(known)
        for label, runs in group.items()
        if (known := [score for score in _scores(runs, metric).values() if score is not None])
    }
    best = max(means, key=lambda label: means[label], default="")
    return ((best, label) for label in means if label != best)


def _scores(results: Sequence[RunResult], metric: str) -> Scores:
    return {
        f"{result.request.dataset.name} {qid}": score
        for result in results
        for qid, score in result.values.get(metric, {}).items()
    }


def _clusters(results: Sequence[RunResult]) -> Mapping[str, str]:
    by_set: dict[str, dict[str, Example]] = {}
    for result in results:
        examples = {example.question.qid: example for example in result.request.examples}
        by_set.setdefault(result.request.dataset.name, {}).update(examples)
    return {
        f"{name} {qid}": f"{name} {cluster}"
        for name, of_set in by_set.items()
        for qid, cluster in clusters_of(list(of_set.values())).of.items()
    }
