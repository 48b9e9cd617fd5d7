"""The results of runs as values: metrics with intervals, questions, and the differences of two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rallebench.analysis import tables
from rallebench.analysis.ranking import compare_many
from rallebench.core.comparison import Comparison, PairedComparison
from rallebench.core.errors import NotFoundError
from rallebench.core.numbers import no_interval, plural
from rallebench.core.registry import unknown
from rallebench.core.report import RunReport
from rallebench.core.tables import Table
from rallebench.core.types import Chain, Episode, Gold
from rallebench.engine.score import is_timed, stored_examples
from rallebench.engine.store import RunFolder
from rallebench.metrics import METRICS
from rallebench.views.run_questions import TODO, questions, read_stages, stages_known
from rallebench.views.verdicts import lost_in_words
from rallebench.workspace.paths import WorkspaceFolder

COSTS = ("seconds", "prompt_tokens", "completion_tokens")
ARTICLES = ("gold pages", "group")
"""Clusters of a report that are articles."""


def number(value: float, signed: bool = False) -> str:
    """A score with three decimals, a larger number with fewer.

    >>> number(0.5180), number(-0.01, signed=True), number(12.345), number(12345.6)
    ('0.518', '-0.010', '12.35', '12,346')
    """
    digits = 3 if abs(value) <= 1 else 2 if abs(value) < 1000 else 0
    return f"{value:+,.{digits}f}" if signed else f"{value:,.{digits}f}"


@dataclass(frozen=True, slots=True, repr=False)
class MetricEstimate:
    """The mean of a metric over ``n`` scored questions with its 95 % interval; all None if nothing was scored.

    ``missing``: questions without a score. ``units``: the articles that the interval counts, None if these are the questions.
    ``over_all``: the figure over all answers together, of metrics that have one. ``note``: why there is no interval or score.

    >>> MetricEstimate("em", 0.518, 0.452, 0.583, 222, units=180)
    em 0.518 [0.452, 0.583], n = 222, 180 articles
    """

    metric: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    missing: int = 0
    units: int | None = None
    over_all: float | None = None
    note: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return f"not scored{f': {self.note}' if self.note else ''}"
        ends = f"({self.note})" if self.note else ""
        if self.low is not None and self.high is not None:
            ends = f"[{number(self.low)}, {number(self.high)}]"
        counts = f"n = {self.n:,}{f', {self.units:,} articles' if self.units else ''}"
        missing = f", {self.missing:,} not scored" if self.missing else ""
        return f"{number(self.value)} {ends}".rstrip() + f", {counts}{missing}"

    def __repr__(self) -> str:
        return f"{self.metric} {self}"

    def __float__(self) -> float:
        """The mean; NaN if nothing was scored."""
        return float("nan") if self.value is None else self.value


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """A question of a run. ``gold``: the accepted answers; ``verdict``: right, wrong, lost, format, failed, or none without
    gold; ``lost_at``: where the chain lost it, '' if it did not. ``seconds`` and tokens: of all steps, None if not counted;
    ``tokens``: prompt and completion together. ``error``: why it failed, or ''."""

    qid: str
    question: str
    gold: tuple[str, ...]
    answer: str
    verdict: str
    lost_at: str
    scores: Mapping[str, float | None] = field(default_factory=dict)
    seconds: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    error: str = ""

    @property
    def tokens(self) -> int | None:
        counts = (self.prompt_tokens, self.completion_tokens)
        return None if None in counts else sum(count or 0 for count in counts)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The size and the origin of a run: ``n`` questions, of which ``n_done`` were asked and ``n_errors`` failed. ``chain``: None
    for an agent or imported predictions."""

    dataset: str
    chain: Chain | None
    n: int
    n_done: int
    n_errors: int
    complete: bool


def run_facts(run: RunFolder) -> RunFacts:
    """Return the facts of a run; 0 questions were asked before it is scored."""
    report, stored = run.report() or RunReport(), run.description()
    counts = (report.n, report.n_done, report.n_errors)
    return RunFacts(stored.dataset, stored.chain, *counts, report.complete)


def metric_estimates(run: RunFolder) -> dict[str, MetricEstimate]:
    """Return every metric and judge of a run. Raises NotFoundError for a run that was not scored yet."""
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
    """The error for a metric that a run was not scored by."""
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
    """Seconds, prompt tokens and completion tokens of a question."""
    return tuple(METRICS[name](episode, Gold()) for name in COSTS)


def _count(value: float | None) -> int | None:
    return None if value is None else int(value)


@dataclass(frozen=True, slots=True, repr=False)
class MetricDifference:
    """Run B minus run A by a metric, over the ``n`` questions that both have scored.

    ``low``..``high``: its 95 % interval, from the same sign-flip test over articles as ``p``. ``wins``, ``ties``, ``losses``:
    questions on which B is better, equal, worse; ``gained`` and ``lost``: their ids. ``needed``: questions that would show
    this difference with 80 % power, None if there is none. ``verdict``: "better", "worse", "no difference shown" and so on.
    """

    metric: str
    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    n: int
    units: int
    wins: int
    ties: int
    losses: int
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    needed: int | None
    verdict: str
    note: str = ""

    @property
    def flipped_ids(self) -> tuple[str, ...]:
        """The ids of the questions on which B is better, then of those on which it is worse."""
        return self.gained + self.lost

    def __str__(self) -> str:
        if self.difference is None:
            return "no question is scored in both"
        ends = f"({self.note})" if self.note else ""
        if self.low is not None and self.high is not None:
            ends = f"[{number(self.low, signed=True)}, {number(self.high, signed=True)}]"
        p = "" if self.p is None else f", p {'< 0.001' if self.p < 0.001 else f'= {self.p:.3f}'}"
        losses = f"{self.losses:,} loss{'es' * (self.losses != 1)}"
        counts = f"{plural(self.wins, 'win')}, {plural(self.ties, 'tie')}, {losses}"
        first = f"{number(self.difference, signed=True)} {ends}".rstrip()
        verdict = "" if self.verdict == self.note else f"; {self.verdict}"
        return f"{first}{p}, n = {self.n:,}; {counts}{verdict}"

    def __repr__(self) -> str:
        return f"{self.metric} {self}"

    def __float__(self) -> float:
        """The difference; NaN if no question is scored in both."""
        return float("nan") if self.difference is None else self.difference


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Runs compared with the first. ``differences``: metric → run → difference; of three or more runs by one metric alone.
    ``tables``: all metrics, then the differences. ``warnings``: what limits the comparison."""

    runs: tuple[str, ...]
    metric: str
    differences: Mapping[str, Mapping[str, MetricDifference]]
    tables: tuple[Table, ...]
    warnings: tuple[str, ...]


def compare_runs(runs: Sequence[RunFolder], metric: str = "") -> ComparedRuns:
    """Compare runs with the first; ``metric``: that of the differences, '' for the headline. Raises UsageError."""
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
        needed=pair.needed,
        verdict=pair.verdict(upward),
        note=pair.note,
    )
