"""The result of a run as values. Only this module reads and writes ``report.json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rallebench.core.choices import ChoiceCounts
from rallebench.core.costs import Cost
from rallebench.core.deciding import Decided
from rallebench.core.errors import NotFoundError
from rallebench.core.json_values import JsonObject, JsonValue, as_json
from rallebench.core.repeats import RepeatReport
from rallebench.core.scoring import ScoreColumn
from rallebench.core.strict_numbers import Count, Number

MEND = "resume the run to score it again"

Bounds = tuple["float | None", "float | None"]
"""The (lowest, highest) value of a metric; None: no bound."""
NO_BOUNDS: Bounds = (None, None)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over ``n`` scored questions with its 95 % interval. All are None if nothing was scored. There is no interval
    if there are fewer articles than ``tables.FEWEST``, or if all values are equal and not a bound of the metric."""

    value: Number | None
    low: Number | None = None
    high: Number | None = None
    n: Count = 0

    def times(self, by: float) -> Estimate:
        """The mean and its interval, multiplied."""
        value, low, high = (x if x is None else by * x for x in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.n)

    def to_json(self) -> dict[str, JsonValue]:
        """The mean, its interval and the number of questions."""
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n}


@dataclass(frozen=True, slots=True)
class ColumnResult:
    """A column of a run with its mean. ``own``: from the experiment or a judge, not a registered metric. ``corpus_level``:
    the figure over all answers together. ``not_scored``: the reason why no question has a score, or ''."""

    column: ScoreColumn
    estimate: Estimate
    own: bool = False
    corpus_level: float | None = None
    not_scored: str = ""


@dataclass(frozen=True, slots=True)
class ClusterCounts:
    """Counts of the independent units. ``by``: ``gold pages``, ``group``, ``question`` or, for times, ``batch``; ``n``
    units; ``largest``: the number of questions in the largest. ``watched``: the run ended once it was decided, so its
    intervals hold whenever one stops."""

    by: str
    n: Count
    largest: Count
    watched: bool = field(default=False, repr=False)

    def to_json(self) -> JsonObject:
        """The counts in ``report.json``."""
        watched: JsonObject = {"watched": True} if self.watched else {}
        return {"by": self.by, "n": self.n, "largest": self.largest, **watched}


@dataclass(frozen=True, slots=True)
class Clusters:
    """``of``: question id → number of its cluster, from 0. ``by``: the basis of the clusters, ``gold pages`` if any
    question has one, else ``group`` if any record has one, else ``question``; ``batch`` for times."""

    by: str
    of: Mapping[str, int]

    @property
    def largest(self) -> int:
        """Questions in the largest cluster; 0 without questions."""
        return max(Counter(self.of.values()).values(), default=0)

    @property
    def counts(self) -> ClusterCounts:
        """The number of clusters, and of questions in the largest.

        >>> Clusters("question", {"a": 0, "b": 1}).counts
        ClusterCounts(by='question', n=2, largest=1)
        """
        return ClusterCounts(self.by, len(set(self.of.values())), self.largest)

    def labels(self, qids: Sequence[str]) -> list[int]:
        """The cluster of each question, in the order of ``qids``."""
        return [self.of[qid] for qid in qids]


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The bytes of all models and indexes of a run together, None unless all are known; ``unknown``: names of the
    others."""

    bytes: Count | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """The pass of a judge over a run's answers. ``run``: its folder inside the run's; ``judged``: number of answers, of
    which some were ``unparsed``, ``failed`` or could not be judged (``not_judged``). ``choices``: None for a judge that
    answers in text."""

    name: str
    run: str = ""
    columns: tuple[str, ...] = ()
    judged: int = 0
    unparsed: int = 0
    failed: int = 0
    not_judged: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    choices: ChoiceCounts | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """The entry in ``report.json``, with the name as the key."""
        value = {name: getattr(self, name) for name in _JUDGE_FIELDS}
        more = {"choices": as_json(self.choices)} if self.choices else {}
        return value | {"columns": list(self.columns)} | more


_JUDGE_FIELDS = (
    "run",
    "columns",
    "judged",
    "unparsed",
    "failed",
    "not_judged",
    "prompt_tokens",
    "completion_tokens",
    "seconds",
)


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a run: ``n`` questions, of which ``n_done`` were answered and ``n_errors`` failed.

    ``seconds``: wall time of all sessions; ``seconds_per_question``: mean of the answered questions.
    ``steps_from_memory``: steps with a reply from the cache. ``columns``: registered metrics, then the experiment's own.
    ``errors``: message → number of questions. ``headline``: the deciding metric, '' for the usual one. ``memory``,
    ``clusters`` and ``cost`` are None in reports of early versions. ``unanswerable``: number of answered questions where
    declining is right. ``scored_with``: the version of rallebench that scored it, '' in reports of early versions.
    ``decided``: of a run that asks until its comparison is decided. ``failed_judges``: judge → the reason why its last pass
    gave no scores.
    ``repeats``: None if each question was asked once, as requested; otherwise means, costs and counts of steps include
    all repeats, other counts and corpus-level figures are those of the first.
    """

    run: str = ""
    dataset: str = ""
    workflow: str = ""
    fingerprint: str = ""
    n: int = 0
    n_done: int = 0
    n_errors: int = 0
    complete: bool = False
    seconds: float | None = 0.0
    seconds_per_question: float | None = None
    steps: int = 0
    steps_from_memory: int = 0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    columns: tuple[ColumnResult, ...] = ()
    clusters: ClusterCounts | None = None
    cost: Cost | None = None
    memory: MemoryUse | None = None
    errors: Mapping[str, int] = field(default_factory=dict)
    headline: str = ""
    judges: tuple[JudgeReport, ...] = ()
    unanswerable: int = 0
    scored_with: str = ""
    decided: Decided | None = None
    repeats: RepeatReport | None = None
    failed_judges: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> ColumnResult:
        """A column by its name; the experiment's own columns come before registered metrics. Raises NotFoundError."""
        for result in reversed(self.columns):
            if result.column.name == name:
                return result
        known = ", ".join(dict.fromkeys(self)) or "none"
        raise NotFoundError(f"The run {self.run!r} has no column {name!r} (columns: {known}).")

    def __iter__(self) -> Iterator[str]:
        """The names of the columns."""
        return (result.column.name for result in self.columns)

    @property
    def metrics(self) -> dict[str, Estimate]:
        """Registered metric → mean."""
        return {r.column.name: r.estimate for r in self.columns if not r.own}

    @property
    def own(self) -> dict[str, ColumnResult]:
        """Column of the experiment or its judges → result."""
        return {r.column.name: r for r in self.columns if r.own}

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Column → mean. An own column replaces a registered metric of the same name."""
        return {r.column.name: r.estimate for r in self.columns}

    @property
    def is_replayed(self) -> bool:
        """True if the cache gave some answers; their times were measured by another run."""
        return self.cost is not None and self.cost.is_replayed

    def with_means(self, means: Mapping[str, Estimate]) -> RunReport:
        """The report with these means instead of those of its registered metrics."""
        columns = (ColumnResult(ScoreColumn(n, "", NO_BOUNDS), mean) for n, mean in means.items())
        return replace(self, columns=(*columns, *self.own.values()))

    @property
    def not_scored(self) -> dict[str, str]:
        """Registered metric → the reason why it scores no question."""
        return {r.column.name: r.not_scored for r in self.columns if r.not_scored}

    def to_json(self) -> dict[str, JsonValue]:
        """The content of ``report.json``."""
        own = self.own.values()
        corpus_level = {r.column.name: r.corpus_level for r in self.columns}
        value: dict[str, JsonValue] = {
            "run": self.run,
            "dataset": self.dataset,
            "workflow": self.workflow,
            "fingerprint": self.fingerprint,
            "n": self.n,
            "n_done": self.n_done,
            "n_errors": self.n_errors,
            "complete": self.complete,
            "seconds": self.seconds,
            "seconds_per_question": self.seconds_per_question,
            "steps": self.steps,
            "steps_from_memory": self.steps_from_memory,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "metrics": as_json(self.metrics),
            "clusters": self.clusters.to_json() if self.clusters else None,
            "over_all": {
                name: figure for name, figure in corpus_level.items() if figure is not None
            },
            "cost": as_json(self.cost),
            "memory": as_json(self.memory),
            "errors": dict(self.errors),
        }
        if self.scored_with:
            value["scored_with"] = self.scored_with
        if self.repeats:
            value["repeats"] = as_json(self.repeats)
        if self.headline:
            value["headline"] = self.headline
        if self.not_scored:
            value["not_scored"] = self.not_scored
        if self.unanswerable:
            value["unanswerable"] = self.unanswerable
        if self.decided:
            value["until_decided"] = self.decided.to_json()
        if self.judges:
            value["judges"] = {judge.name: judge.to_json() for judge in self.judges}
        if self.failed_judges:
            value["failed_judges"] = dict(self.failed_judges)
        if own:
            columns = [result.column for result in own]
            value["suite"] = {name: result.estimate.to_json() for name, result in self.own.items()}
            value["definitions"] = {column.name: column.definition for column in columns}
            value["ranges"] = {c.name: list(c.range) for c in columns if c.range != NO_BOUNDS}
        return value

    @classmethod
    def from_json(cls, document: Any, *, path: Path) -> RunReport:
        """The report in ``document``, the content of the file ``path``. Raises BadFileError."""
        from rallebench.core.own_files import parse

        stored = parse(document, _Document, path, MEND)
        return cls(
            stored.run,
            stored.dataset,
            stored.workflow,
            stored.fingerprint,
            stored.n,
            stored.n_done,
            stored.n_errors,
            stored.complete,
            stored.seconds,
            stored.seconds_per_question,
            stored.steps,
            stored.steps_from_memory,
            stored.prompt_tokens,
            stored.completion_tokens,
            (*_metrics(stored), *_own(stored)),
            stored.clusters,
            stored.cost,
            stored.memory,
            stored.errors,
            stored.headline or "",
            tuple(judge.report(name) for name, judge in (stored.judges or {}).items()),
            stored.unanswerable,
            stored.scored_with,
            stored.until_decided,
            stored.repeats,
            stored.failed_judges,
        )


@dataclass(frozen=True, slots=True)
class _Judge:
    run: str = ""
    columns: tuple[str, ...] = ()
    judged: Count = 0
    unparsed: Count = 0
    failed: Count = 0
    not_judged: Count = 0
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    seconds: Number = 0.0
    choices: ChoiceCounts | None = None

    def report(self, name: str) -> JudgeReport:
        own = {key: getattr(self, key) for key in _JUDGE_FIELDS}
        return JudgeReport(name, **own, choices=self.choices)


@dataclass(frozen=True, slots=True)
class _Document:
    """``report.json``. Early versions lack fields."""

    metrics: Mapping[str, Estimate]
    suite: Mapping[str, Estimate] = field(default_factory=dict)
    run: str = ""
    dataset: str = ""
    workflow: str = ""
    fingerprint: str = ""
    n: Count = 0
    n_done: Count = 0
    n_errors: Count = 0
    complete: bool = False
    seconds: Number | None = None
    seconds_per_question: Number | None = None
    steps: Count = 0
    steps_from_memory: Count = 0
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    clusters: ClusterCounts | None = None
    over_all: Mapping[str, Number] = field(default_factory=dict)
    cost: Cost | None = None
    memory: MemoryUse | None = None
    errors: Mapping[str, Count] = field(default_factory=dict)
    headline: str | None = None
    not_scored: Mapping[str, str] | None = None
    judges: Mapping[str, _Judge] | None = None
    unanswerable: Count = 0
    scored_with: str = ""
    until_decided: Decided | None = None
    repeats: RepeatReport | None = None
    failed_judges: Mapping[str, str] = field(default_factory=dict)
    definitions: Mapping[str, str] | None = None
    ranges: Mapping[str, tuple[Number | None, Number | None]] | None = None


def _metrics(stored: _Document) -> Iterator[ColumnResult]:
    reasons = stored.not_scored or {}
    for name, mean in stored.metrics.items():
        column, figure = ScoreColumn(name, "", NO_BOUNDS), stored.over_all.get(name)
        yield ColumnResult(column, mean, False, figure, reasons.get(name, ""))


def _own(stored: _Document) -> Iterator[ColumnResult]:
    definitions, ranges = stored.definitions or {}, stored.ranges or {}
    for name, mean in stored.suite.items():
        column = ScoreColumn(name, definitions.get(name, ""), ranges.get(name, NO_BOUNDS))
        yield ColumnResult(column, mean, True)
