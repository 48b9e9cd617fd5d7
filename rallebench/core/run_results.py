"""Results of runs as values: a row of the list, metrics with intervals, questions, differences and rankings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rallebench.core.experiment_reports import RankingReport
from rallebench.core.numbers import plural
from rallebench.core.report import Estimate, RunReport
from rallebench.core.tables import Table
from rallebench.core.types import Chain


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in the list. ``title``: the user's title, or one that distinguishes it; ``mean``: of ``metric``, None
    before scoring; ``created``: ISO time; ``state``: running, done, stopped, failed …
    ``metrics``: every metric with its mean; ``experiment``: the experiment that it belongs to; ``is_contender``: True if that is
    an improvement, whose runs ask parts of a dataset; ``is_reference``: True if
    the user has starred it for its dataset; ``damage``: a sentence about a damaged title or marks;
    ``decided``: the outcome of a run that asks until it is decided.
    """

    name: str
    title: str
    dataset: str = ""
    workflow: str = ""
    created: str = ""
    state: str = ""
    done: int = 0
    total: int = 0
    errors: int = 0
    metric: str = ""
    mean: Estimate | None = None
    seconds: float | None = None
    usd: float | None = None
    chain: Chain | None = None
    problem: str = ""
    metrics: Mapping[str, Estimate] = field(default_factory=dict)
    total_seconds: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    experiment: str = ""
    is_contender: bool = False
    is_reference: bool = False
    damage: str = ""
    decided: str = ""

    @property
    def tokens(self) -> int | None:
        """Prompt and completion tokens together; None if they were not counted."""
        counts = (self.prompt_tokens, self.completion_tokens)
        return None if None in counts else sum(count or 0 for count in counts)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The size and origin of a run: ``n`` questions, of which ``n_done`` were asked and ``n_errors`` failed.
    ``chain``: None for an agent or imported predictions.
    """

    dataset: str
    chain: Chain | None
    n: int
    n_done: int
    n_errors: int
    complete: bool


def number(value: float, signed: bool = False) -> str:
    """Format a score with three decimals, and larger numbers with fewer.

    >>> number(0.5180), number(-0.01, signed=True), number(12.345), number(12345.6)
    ('0.518', '-0.010', '12.35', '12,346')
    """
    digits = 3 if abs(value) <= 1 else 2 if abs(value) < 1000 else 0
    return f"{value:+,.{digits}f}" if signed else f"{value:,.{digits}f}"


@dataclass(frozen=True, slots=True, repr=False)
class MetricEstimate:
    """The mean of a metric over ``n`` scored questions, with its 95 % interval; all None if nothing was scored.

    ``missing``: questions without a score. ``units``: number of articles behind the interval; None if it is based on
    questions. ``over_all``: the figure over all answers together, for metrics that have one. ``note``: the reason for a
    missing interval or score.

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
    """A question of a run. ``gold``: the accepted answers; ``verdict``: right, wrong, lost, format or failed, or none
    without gold; ``lost_at``: the stage at which the chain lost it, or ''. ``seconds`` and tokens: totals over all steps,
    None if not counted; ``tokens``: prompt and completion together. ``error``: the reason for a failure, or ''.
    """

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


@dataclass(frozen=True, slots=True, repr=False)
class MetricDifference:
    """Run B minus run A by a metric, over the ``n`` questions scored in both.

    ``low``..``high``: the 95 % interval, from the same test over articles as ``p``. ``wins``, ``ties``,
    ``losses``: numbers of questions on which B is better, equal, worse; ``gained`` and ``lost``: ids of the questions
    won and lost. ``needed``: number of questions that would show this difference with 80 % power, None if there is
    none; ``needed_low``, ``needed_high``: its interval, without an upper end if the interval of the difference holds 0. ``verdict``: "better", "worse", "no difference shown" and so on.
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
    needed_low: int | None = None
    needed_high: int | None = None

    @property
    def flipped_ids(self) -> tuple[str, ...]:
        """The ids of the questions on which B is better, then of those on which B is worse."""
        return self.gained + self.lost

    def __str__(self) -> str:
        if self.difference is None:
            return "no question is scored in both"
        ends = f"({self.note})" if self.note else ""
        if self.low is not None and self.high is not None:
            ends = f"[{number(self.low, signed=True)}, {number(self.high, signed=True)}]"
        p = "" if self.p is None else f", p {'< 0.001' if self.p < 0.001 else f'= {self.p:.3f}'}"
        losses = plural(self.losses, "loss")
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
    """Runs compared with the first. ``differences``: metric → run → difference; with three or more runs, one metric
    only. ``tables``: all metrics, then the differences. ``warnings``: limits of the comparison.
    """

    runs: tuple[str, ...]
    metric: str
    differences: Mapping[str, Mapping[str, MetricDifference]]
    tables: tuple[Table, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The variants of a sweep or the chains of a folder, best first. ``metrics``: metrics that can rank them;
    ``reports``: run → its report.
    """

    result: RankingReport
    metrics: tuple[str, ...] = ()
    reports: Mapping[str, RunReport] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndingSummary:
    """The ends of episodes. ``stop_reasons``: reason → count, failed ones as ``error``; ``turns``: mean number of requests to the
    model per episode; ``batch``: mean size of the batches of requests."""

    stop_reasons: Mapping[str, int]
    turns: float | None
    batch: float | None
