"""Compare a run with its baselines, metric by metric, on the questions that all of them answered.

The ceiling is computed, not run: it calls no model. It answers a question with the gold answer if a retrieved passage
contains it (DPR's token match, Karpukhin et al. 2020, arXiv:2004.04906), otherwise with nothing. This is the score of
a perfect extractor with the run's retrieval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rallebench.analysis.paired import Scores, Sides, compare_all
from rallebench.analysis.ranking import ended_pairs, means_over, read_scores
from rallebench.analysis.suites import TITLE, paired_table
from rallebench.core.answers import dpr_tokens
from rallebench.core.experiment_reports import BaselinesReport
from rallebench.core.scoring import Pair
from rallebench.core.types import Episode, Gold, Outcome
from rallebench.engine.clusters import find_clusters
from rallebench.engine.metric_choice import stored_metrics
from rallebench.engine.score import metric_ranges, score_metrics, stored_examples
from rallebench.engine.store import RunFolder
from rallebench.metrics import metric

LABELS: Mapping[str, str] = {
    "closed-book": "closed book",
    "random": "random passage",
    "oracle": "oracle passage",
    "long-context": "whole pages",
}
"""Baseline → its display name."""

CEILING = "ceiling"
COLUMNS: Mapping[str, str] = {**LABELS, CEILING: "retrieval ceiling"}
"""Column → its display name."""

_OF_THE_PROMPT = "answer_in_"
"""Prefix of metrics that need gold answers but score the retrieval."""


def ceiling(episode: Episode, gold: Gold) -> Episode:
    """Return the episode with a perfect extractor's answer: the first gold answer found in a retrieved passage."""
    texts = [_tokens(hit.passage.text) for hit in episode.hits]
    answers = (
        answer
        for answer in gold.answers
        if (tokens := _tokens(answer)).strip() and any(tokens in text for text in texts)
    )
    return replace(episode, outcome=Outcome(next(answers, "")))


def _tokens(text: str) -> str:
    """Join DPR's tokens by spaces, so that a substring test tests for a token sequence."""
    return f" {' '.join(dpr_tokens(text))} "


def compare_baselines(
    run: RunFolder, baselines: Mapping[str, RunFolder], failed: Mapping[str, str] | None = None
) -> BaselinesReport:
    """Compare a run with the ceiling and with those ``baselines`` (name → run) that have any answer.

    A metric's means leave out columns that it cannot score; tests use the questions that both runs have scored.
    ``failed``: baseline → reason. Raises RalleError if a run is damaged.
    """
    examples, names = stored_examples(run), stored_metrics(run)
    baselines = {
        baseline: folder
        for baseline, folder in baselines.items()
        if any(not head.error for head in folder.heads().values())
    }
    scores = {
        column: read_scores(folder, names) for column, folder in {"run": run, **baselines}.items()
    }
    scores[CEILING] = _ceiling_scores(run, names)
    clusters, bounds = find_clusters(examples), metric_ranges(names)
    sides: dict[tuple[str, str], Sides] = {
        (f"the run less {LABELS[baseline]}", name): (name, scores[baseline][name], own, clusters.of)
        for baseline in baselines
        for name, own in scores["run"].items()
        if name in scores[baseline]
    }
    tests = paired_table(TITLE, "runs", compare_all(sides), "The first less the second")
    cells = {}
    for name in names:
        columns = {column: values[name] for column, values in scores.items() if name in values}
        counted, qids = _comparable(columns)
        if counted:
            shared = {column: columns[column] for column in counted}
            cells[name] = means_over(qids, shared, clusters, bounds[name])
    return BaselinesReport(
        run.name,
        {baseline: folder.name for baseline, folder in baselines.items()},
        tuple(column for column in COLUMNS if any(column in row for row in cells.values())),
        cells,
        tests,
        failed or {},
    )


def _ceiling_scores(run: RunFolder, names: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Metric → question → score of the ceiling, for the metrics that judge answers."""
    pairs = [Pair(e, ceiling(episode, e.gold)) for e, episode in ended_pairs(run) if e.gold.answers]
    best = score_metrics([name for name in names if _judges_answers(name)], pairs) if pairs else {}
    qids = [pair.episode.qid for pair in pairs]
    return {name: dict(zip(qids, column.values)) for name, column in best.items()}


def _judges_answers(name: str) -> bool:
    """Return whether a metric scores each answer against gold answers."""
    traits = metric(name).traits
    by_answers = "answers" in traits.get("needs", "").split("+")
    return by_answers and "batch" not in traits and not name.startswith(_OF_THE_PROMPT)


def _comparable(columns: Mapping[str, Scores]) -> tuple[list[str], list[str]]:
    """Return the columns to compare, and the questions that all of them have scored; both empty if the run has no
    score.

    Baselines without a score are left out. The ceiling is left out too unless it scores all of these questions;
    otherwise only the questions that it can answer would count.
    """
    scored = {
        column: {qid for qid, value in values.items() if value is not None}
        for column, values in columns.items()
    }
    counted = [column for column in scored if scored[column] and column != CEILING]
    if "run" not in counted:
        return [], []
    common = set.intersection(*(scored[column] for column in counted))
    if common and common <= scored.get(CEILING, set()):
        counted.append(CEILING)
    return counted, [qid for qid in columns["run"] if qid in common]
