"""Clusters of dependent questions: questions about one article form a cluster.

Two questions share a cluster if a chain of shared gold pages links them (the connected component). Questions without gold
pages form clusters by the ``group`` field of their records. Any other question is its own cluster.

A batch is timed as a whole, and its questions share the time equally. The unit of times is therefore the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rallebench.core.report import Clusters
from rallebench.core.types import Episode, Example

GOLD_PAGES, GROUP, QUESTION, BATCH = "gold pages", "group", "question", "batch"
TIMED_UNITS = ("seconds", "tokens/s")
"""Units of metrics that are measured batch by batch."""

Timing = tuple["str | int | float", ...]
"""The mark of a measured time, shared by the questions of a batch."""


def find_clusters(examples: Sequence[Example]) -> Clusters:
    """The clusters of a data set's questions, by union-find over their gold pages."""
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(node: tuple[str, str]) -> tuple[str, str]:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    first: dict[str, tuple[str, str]] = {}
    for example in examples:
        keys = _keys(example)
        first[example.question.qid] = keys[0]
        for key in keys:
            parent[root(key)] = root(keys[0])
    numbers: dict[tuple[str, str], int] = {}
    of = {qid: numbers.setdefault(root(key), len(numbers)) for qid, key in first.items()}
    kinds = {kind for kind, _ in first.values()}
    return Clusters(next((kind for kind in (GOLD_PAGES, GROUP) if kind in kinds), QUESTION), of)


def list_articles(examples: Sequence[Example]) -> list[list[Example]]:
    """The questions of each cluster, in the order of the data set."""
    clusters = find_clusters(examples).of
    articles: dict[int, list[Example]] = {}
    for example in examples:
        articles.setdefault(clusters[example.question.qid], []).append(example)
    return list(articles.values())


def shared_timings(episode: Episode) -> list[Timing]:
    """The shared timings of an episode, one for each step that was part of a batch."""
    return [
        (who, round(step.seconds, 6), step.batch)
        for step in episode.steps
        if step.batch > 1
        for who in (type(step.request).__name__.lower(),)
    ]


def timed_clusters(
    clusters: Clusters, timings: Iterable[Mapping[str, Sequence[Timing]]]
) -> Clusters:
    """Clusters for times: questions that share a batch in any run belong together; the articles count only if no question
    shares a batch.

    The load of the machine varies between batches, not articles. ``timings``: of each run, question id → its shared timings.
    """
    parent: dict[Any, Any] = {}

    def root(node: Any) -> Any:
        while parent.setdefault(node, node) != node:
            parent[node] = node = parent[parent[node]]
        return node

    for run, own in enumerate(timings):
        for qid in clusters.of:
            for timing in own.get(qid, ()):
                parent[root((run, *timing))] = root(("question", qid))
    numbers: dict[Any, int] = {}
    of = {qid: numbers.setdefault(root(("question", qid)), len(numbers)) for qid in clusters.of}
    return Clusters(BATCH, of) if len(numbers) < len(of) else clusters


def question_group(example: Example) -> str:
    """Return the group in the record of a question; '' if it names none."""
    meta = example.record.get("meta")
    inside = meta.get("group") if isinstance(meta, Mapping) else None
    group = example.record.get("group", inside)
    return str(group) if isinstance(group, (str, int)) else ""


def _keys(example: Example) -> list[tuple[str, str]]:
    """(kind, name) of everything that links a question to other questions."""
    if pages := sorted(example.gold.pages):
        return [(GOLD_PAGES, page) for page in pages]
    if group := question_group(example):
        return [(GROUP, group)]
    return [(QUESTION, example.question.qid)]
