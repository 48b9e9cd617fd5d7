"""Means of a suite's own metrics with their intervals: over articles, and within the bounds that a metric has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rallebench.engine.clusters import clusters_of
from rallebench.engine.score import ranges_of
from rallebench.engine.statistics import Mean, means
from rallebench.experiments.suites import Part, Values
from rallebench.metrics import METRICS

SCORES = ("truthfulness", "relevance")
"""A judge gives 1 to 5."""
SHARES = (
    "all_rate",
    "rejection_rate",
    "lucky_rate",
    "fact_check_rate",
    "correct_rate",
    "rejection_rate_judge",
    "fact_check_rate_judge",
    "correct_rate_judge",
    "perfect",
    "QA_avg_F1",
    "QA_recall",
    "mrr",
    "gold_found",
    "bleu-avg",
    "bleu-1",
    "bleu-2",
    "bleu-3",
    "bleu-4",
    "rouge-L",
    "retrieved",
    "undecided",
    "declined",
    "grounded",
)


def bounds_of(names: Iterable[str]) -> dict[str, Any]:
    """Metric → (lowest, highest) value; None = no bound, as for a metric that is not known here."""
    found = {}
    for name in names:
        own = (0, 1) if name in SHARES else (1, 5) if name in SCORES else (None, None)
        found[name] = ranges_of([name])[name] if name in METRICS else own
    return found


def means_of(part: Part, values: Mapping[str, Values]) -> dict[str, Mean]:
    """Metric → mean over the questions of ``values`` (metric → question id → value), all metrics over the same ones."""
    qids = list(next(iter(values.values()), {}))
    labels = clusters_of(part.examples).labels(qids)
    return means(
        {name: list(column.values()) for name, column in values.items()}, labels, bounds_of(values)
    )
