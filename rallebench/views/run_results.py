"""Results of runs as values: metrics with intervals, questions, and differences between two runs."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.analysis import tables
from rallebench.analysis.ranking import compare_many
from rallebench.core.comparison import Comparison, PairedComparison
from rallebench.core.errors import NotFoundError
from rallebench.core.numbers import no_interval
from rallebench.core.registry import unknown
from rallebench.core.report import RunReport
from rallebench.core.run_results import (
    ComparedRuns,
    MetricDifference,
    MetricEstimate,
    QuestionResult,
    RunFacts,
)
from rallebench.core.types import Episode, Gold
from rallebench.engine.score import is_timed, stored_examples
from rallebench.engine.store import RunFolder
from rallebench.metrics import METRICS
from rallebench.views.run_questions import TODO, questions, read_stages, stages_known
from rallebench.views.verdicts import lost_in_words
from rallebench.workspace.paths import WorkspaceFolder

COSTS = ("seconds", "prompt_tokens", "completion_tokens")
ARTICLES = ("gold pages", "group")
"""Units of a report's clusters that count as articles."""


def run_facts(run: RunFolder) -> RunFacts:
    """Return the facts of a run. Before scoring, 0 questions count as asked."""
    report, stored = run.report() or RunReport(), run.description()
    counts = (report.n, report.n_done, report.n_errors)
    return RunFacts(stored.dataset, stored.chain, *counts, report.complete)


def metric_estimates(run: RunFolder) -> dict[str, MetricEstimate]:
    """Return every metric and judge of a run. Raises NotFoundError if the run is not scored yet."""
    report = run.report()
    if report is None:
        raise NotFoundError(f"The run {run.name!r} has no results yet; wait for its end.")
    clusters, estimates = report.clusters, {}
    for result in report.columns:
        name, mean = result.column.name, result.estimate
        timed, every = is_timed(name), mean.n == report.n_done
        by_article = clusters and clusters.by in ARTICLES and every and not timed
        note = result.not_scored
        if mean.value is not None and mean.low is None:
            note = no_interval(mean.n, clusters, timed=timed)
        estimates[name] = MetricEstimate(
            name,
            mean.value,
            mean.low,
            mean.high,
            mean.n,
            missing=report.n_done - mean.n,
            units=clusters.n if clusters and by_article else None,
            over_all=result.corpus_level,
            note=note,
        )
    return estimates


def missing_metric(run: str, name: str, known: Sequence[str]) -> NotFoundError:
    """Return the error for a metric that a run does not have."""
    return NotFoundError(
        f"The run {run!r} was not scored by {name!r}. {unknown('metric of the run', name, list(known))}"
    )


def question_results(workspace: WorkspaceFolder, run: RunFolder) -> tuple[QuestionResult, ...]:
    """Return the questions that were asked, in order."""
    if not stages_known(workspace, run):
        read_stages(workspace, run)
    scores: dict[str, dict[str, float | None]] = {}
    for score in run.scores():
        scores.setdefault(score.qid, {})[score.metric] = score.value
    gold = {example.question.qid: example.gold.answers for example in stored_examples(run)}
    episodes = run.episodes()
    results = []
    for row in questions(workspace, run):
        if row.stage == TODO:
            continue
        episode = episodes[row.qid]
        own, (seconds, read, written) = scores.get(row.qid, {}), _costs(episode)
        results.append(
            QuestionResult(
                row.qid,
                row.text,
                gold[row.qid],
                episode.answer,
                row.kind,
                lost_in_words(row.stage),
                {name: value for name, value in own.items() if name not in COSTS},
                seconds,
                _count(read),
                _count(written),
                episode.error,
            )
        )
    return tuple(results)


def _costs(episode: Episode) -> tuple[float | None, ...]:
    """Return the seconds, prompt tokens and completion tokens of a question."""
    return tuple(METRICS[name](episode, Gold()) for name in COSTS)


def _count(value: float | None) -> int | None:
    return None if value is None else int(value)


def compare_runs(runs: Sequence[RunFolder], metric: str = "") -> ComparedRuns:
    """Compare runs with the first; ``metric``: metric of the differences, '' for the headline. Raises UsageError."""
    compared = compare_many(runs, metric)
    differences = {
        name: {run: _difference(compared, name, pair) for run, pair in pairs.items()}
        for name, pairs in compared.pairs.items()
    }
    drawn = (tables.comparison(compared), tables.differences(compared))
    names = tuple(side.name for side in compared.sides)
    return ComparedRuns(names, compared.metric, differences, drawn, tuple(compared.warnings))


def _difference(compared: Comparison, name: str, pair: PairedComparison) -> MetricDifference:
    upward = compared.measures[name].higher_is_better
    return MetricDifference(
        *(name, pair.a, pair.b, pair.difference, pair.low, pair.high),
        p=pair.p if pair.comparisons == 1 else pair.corrected,
        n=pair.n,
        units=pair.clusters,
        wins=pair.wins,
        ties=pair.ties,
        losses=pair.losses,
        gained=pair.gained,
        lost=pair.lost,
        needed=pair.needed.value if pair.needed else None,
        verdict=pair.verdict(upward),
        note=pair.note,
        needed_low=pair.needed.low if pair.needed else None,
        needed_high=pair.needed.high if pair.needed else None,
    )
