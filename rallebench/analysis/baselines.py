"""A run and its baselines, metric by metric, on the questions that all of them answered.

The ceiling is no run: it asks no model. Its answer to a question is the gold answer in the passages that
the run retrieved (DPR's token match, Karpukhin et al. 2020, arXiv:2004.04906), or nothing: the score of a
perfect extractor with this retrieval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rallebench.analysis.ranking import scores_of
from rallebench.core.answers import dpr_tokens
from rallebench.core.types import Episode, Gold, Outcome
from rallebench.engine.clusters import Clusters, clusters_of
from rallebench.engine.score import examples_of, ranges_of
from rallebench.engine.statistics import Mean, means
from rallebench.engine.store import RunFolder
from rallebench.metrics import metric
from rallebench.metrics.columns import columns

LABELS: Mapping[str, str] = {
    "closed-book": "closed book",
    "random": "random passage",
    "oracle": "oracle passage",
}
"""Baseline → its display name."""

CEILING = "ceiling"
COLUMNS: Mapping[str, str] = {**LABELS, CEILING: "retrieval ceiling"}
"""Column → its display name."""

_OF_THE_PROMPT = "answer_in_"
"""The prefix of metrics that need gold answers but score the retrieval."""


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """``lines``: baseline → its run. ``cells``: metric → column (``run``, the baselines, ``ceiling``) → mean
    over the ``n`` questions that all of these have scored; without columns that the metric cannot
    score."""

    run: str
    lines: Mapping[str, str]
    cells: Mapping[str, Mapping[str, Mean]]

    @property
    def columns(self) -> list[str]:
        """The columns after the run's own, in order."""
        return [column for column in COLUMNS if any(column in row for row in self.cells.values())]


def ceiling(episode: Episode, gold: Gold) -> Episode:
    """The episode with a perfect extractor's answer: the first gold answer in a retrieved passage."""
    texts = [_tokens(hit.passage.text) for hit in episode.hits]
    answers = (
        answer
        for answer in gold.answers
        if (tokens := _tokens(answer)).strip() and any(tokens in text for text in texts)
    )
    return replace(episode, outcome=Outcome(next(answers, "")))


def _tokens(text: str) -> str:
    """DPR's tokens between spaces, so that a token sequence is contained if its text is."""
    return f" {' '.join(dpr_tokens(text))} "


def compare_baselines(run: RunFolder, baselines: Mapping[str, RunFolder]) -> BaselineComparison:
    """The means of the run, of its ``baselines`` (name → run) with any answer, and of the ceiling.

    Raises RalleError for a damaged run.
    """
    examples, episodes = examples_of(run), run.episodes()
    names = tuple(run.spec()["metrics"])
    baselines = {
        baseline: folder
        for baseline, folder in baselines.items()
        if any(not line.get("error") for line in folder.heads().values())
    }
    scores = {"run": scores_of(run, names)} | {
        baseline: scores_of(folder, names) for baseline, folder in baselines.items()
    }
    answered = [example for example in examples if example.question.qid in episodes]
    judged = [name for name in names if _judges_answers(name)]
    pairs = [
        (ceiling(episodes[e.question.qid], e.gold), e.gold) for e in answered if e.gold.answers
    ]
    best = columns(judged, pairs) if pairs else {}
    qids = [e.question.qid for e in answered if e.gold.answers]
    scores[CEILING] = {name: dict(zip(qids, column.values)) for name, column in best.items()}
    rows = {
        name: _row({column: values[name] for column, values in scores.items() if name in values})
        for name in names
    }
    cells = _means({name: row for name, row in rows.items() if row}, clusters_of(examples))
    return BaselineComparison(
        run.name, {baseline: folder.name for baseline, folder in baselines.items()}, cells
    )


def _judges_answers(name: str) -> bool:
    """Whether a metric scores an answer against gold answers, one question at a time."""
    entry = metric(name)
    needs = entry.traits.get("needs", "").split("+")
    return (
        "answers" in needs and "batch" not in entry.traits and not name.startswith(_OF_THE_PROMPT)
    )


def _row(columns: Mapping[str, Mapping[str, float | None]]) -> dict[str, dict[str, float | None]]:
    """Column → question → score, for the questions that all columns have scored.

    A baseline without a score is left out. So is a ceiling that does not score all of these questions:
    otherwise only questions that it answers would count.
    """
    scored = {
        column: {qid for qid, value in values.items() if value is not None}
        for column, values in columns.items()
    }
    counted = [column for column in scored if scored[column] and column != CEILING]
    if "run" not in counted:
        return {}
    common = set.intersection(*(scored[column] for column in counted))
    if CEILING in scored and common and common <= scored[CEILING]:
        counted.append(CEILING)
    qids = [qid for qid in columns["run"] if qid in common]
    return {column: {qid: columns[column][qid] for qid in qids} for column in counted}


def _means(
    rows: Mapping[str, Mapping[str, Mapping[str, float | None]]], clusters: Clusters
) -> dict[str, dict[str, Mean]]:
    """Metric → column → mean."""
    bounds = ranges_of(rows)
    return {
        name: means(
            {column: list(scores.values()) for column, scores in row.items()},
            clusters.labels(list(row["run"])),
            dict.fromkeys(row, bounds[name]),
        )
        for name, row in rows.items()
    }
