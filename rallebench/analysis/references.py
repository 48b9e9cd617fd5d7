"""A run beside its reference lines, metric by metric, on the questions that all of them answered.

The ceiling is no run: it asks no model. For each question it gives the gold answer that the passages retrieved by
the run hold (DPR's token match, Karpukhin et al. 2020, arXiv:2004.04906), and nothing where they hold none: what a
perfect extractor would make of this retrieval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rallebench.analysis.ranking import scores_of
from rallebench.core.types import Episode, Gold, Outcome
from rallebench.engine.clusters import Clusters, clusters_of
from rallebench.engine.score import examples_of, ranges_of
from rallebench.engine.statistics import Mean, means
from rallebench.engine.store import RunFolder
from rallebench.metrics import metric
from rallebench.metrics.columns import columns
from rallebench.metrics.text import dpr_tokens

LABELS: Mapping[str, str] = {
    "closed-book": "closed book",
    "random": "random passage",
    "oracle": "oracle passage",
}
"""Baseline → what it is called."""

CEILING = "ceiling"
COLUMNS: Mapping[str, str] = {**LABELS, CEILING: "retrieval ceiling"}
"""Column → what it is called."""

_OF_THE_PROMPT = "answer_in_"
"""How metrics begin that need gold answers and judge no answer, only what was retrieved."""


@dataclass(frozen=True, slots=True)
class Beside:
    """``cells``: metric → column (``run``, the lines that there are, ``ceiling``) → mean over the ``n`` questions that
    all of these have scored; a column that a metric says nothing of is left out."""

    run: str
    lines: Mapping[str, str]
    cells: Mapping[str, Mapping[str, Mean]]

    @property
    def columns(self) -> list[str]:
        """The columns beside the run's own, in order."""
        return [column for column in COLUMNS if any(column in row for row in self.cells.values())]


def ceiling(episode: Episode, gold: Gold) -> Episode:
    """The episode with the answer of a perfect extractor: the first gold answer that a retrieved passage holds."""
    texts = [_tokens(hit.passage.text) for hit in episode.hits]
    held = (
        answer
        for answer in gold.answers
        if (tokens := _tokens(answer)).strip() and any(tokens in text for text in texts)
    )
    return replace(episode, outcome=Outcome(next(held, "")))


def _tokens(text: str) -> str:
    """DPR's tokens, which hold no spaces, each between two: one sequence is in another where its text is."""
    return f" {' '.join(dpr_tokens(text))} "


def beside(run: RunFolder, lines: Mapping[str, RunFolder]) -> Beside:
    """The run's means, those of its ``lines`` (name → run) that answered anything, and the ceiling.

    Raises RalleError for a damaged run.
    """
    examples, episodes = examples_of(run), run.episodes()
    names = tuple(run.spec()["metrics"])
    lines = {
        line: folder
        for line, folder in lines.items()
        if any(not one.get("error") for one in folder.lines().values())
    }
    scores = {"run": scores_of(run, names)} | {
        line: scores_of(folder, names) for line, folder in lines.items()
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
        name: _row({column: found[name] for column, found in scores.items() if name in found})
        for name in names
    }
    cells = _means({name: row for name, row in rows.items() if row}, clusters_of(examples))
    return Beside(run.name, {line: folder.name for line, folder in lines.items()}, cells)


def _judges_answers(name: str) -> bool:
    """Whether a metric scores an answer against gold answers, one question at a time."""
    entry = metric(name)
    needs = entry.traits.get("needs", "").split("+")
    return (
        "answers" in needs and "batch" not in entry.traits and not name.startswith(_OF_THE_PROMPT)
    )


def _row(found: Mapping[str, Mapping[str, float | None]]) -> dict[str, dict[str, float | None]]:
    """Column → question → score, for the questions that all columns have scored.

    A line that scored no question is left out, and so is a ceiling that does not score all the questions that the
    others do: where silence is not scored, it would leave only questions that it answers.
    """
    scored = {
        column: {qid for qid, value in values.items() if value is not None}
        for column, values in found.items()
    }
    there = [column for column in scored if scored[column] and column != CEILING]
    if "run" not in there:
        return {}
    common = set.intersection(*(scored[column] for column in there))
    if CEILING in scored and common and common <= scored[CEILING]:
        there.append(CEILING)
    qids = [qid for qid in found["run"] if qid in common]
    return {column: {qid: found[column][qid] for qid in qids} for column in there}


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
