"""The reports of experiments as values, and their JSON; ``stored_experiments`` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Union

from rallebench.core.json_values import JsonValue, as_json, object_json
from rallebench.core.report import Estimate
from rallebench.core.strict_numbers import Count, Number
from rallebench.core.tables import Figure, Table
from rallebench.core.types import Json

TRADEOFF = "rallebench-tradeoff/1"
"""The format of a trade-off's report."""
IMPROVE = "improve"
"""The experiment whose runs compete: contenders for a better chain."""
PUBLISHED = "published"
"""The key of a suite's own data that holds its rows of printed tables."""

# sweeps and batches


@dataclass(frozen=True, slots=True)
class VariantResult:
    """A variant of a sweep, or a chain of a batch, with its means over the questions that all variants share.

    ``difference``: from the best, between ``low`` and ``high``; ``p_corrected``: by Holm. None: not compared.
    """

    run: str
    variant: str
    metrics: Mapping[str, Estimate]
    difference: Number | None = None
    low: Number | None = None
    high: Number | None = None
    p: Number | None = None
    p_corrected: Number | None = None


@dataclass(frozen=True, slots=True)
class RankingReport:
    """The report of a sweep or a batch: ``variants`` best first by ``metric``, None if no metric decides.

    ``failed``: variant → reason. ``verdict``: the winner in one sentence.
    """

    sweep: str = ""
    metric: str | None = None
    variants: tuple[VariantResult, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    verdict: str = ""
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """The content of ``report.json``."""
        return {
            "sweep": self.sweep,
            "metric": self.metric,
            "variants": [
                {name: as_json(getattr(row, name)) for name in VariantResult.__slots__}
                for row in self.variants
            ],
            "failed": dict(self.failed),
            "verdict": self.verdict,
            "warnings": list(self.warnings),
        }


# baselines


@dataclass(frozen=True, slots=True)
class BaselinesReport:
    """A run beside its baselines.

    ``lines``: baseline → its run. ``columns``: the columns after the run's own. ``metrics``: metric → column → mean over
    the questions scored in all columns. ``tests``: the run against each baseline. ``failed``: baseline → reason.
    """

    run: str
    lines: Mapping[str, str]
    columns: tuple[str, ...]
    metrics: Mapping[str, Mapping[str, Estimate]]
    tests: Table
    failed: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, JsonValue]:
        """The content of ``report.json``."""
        return {
            "run": self.run,
            "lines": dict(self.lines),
            "columns": list(self.columns),
            "metrics": as_json(self.metrics),
            "tests": self.tests.to_json(),
            "failed": dict(self.failed),
        }


# trade-offs


@dataclass(frozen=True, slots=True)
class Point:
    """One index at one setting of its search-time parameters. None: not measured.

    ``recall``: share of the exact k nearest passages among the hits, mean over ``n`` queries; None for an index without
    vectors. ``quality``: metric → mean over the ``n_gold`` questions with gold pages. ``intervals``: "recall" or metric →
    the 95 % interval of its mean. ``single_ms``, ``batch_ms``:
    milliseconds per query, one by one (median) and in batches (best of the rounds), reading passages included.
    ``encode_ms``: milliseconds to encode a query; None if the search includes this. ``ram``: growth in bytes of a process
    that opens and searches the index, compared with one that only imports its library. ``error``: one sentence if the
    index could not be measured.
    """

    index: str
    kind: str
    knobs: Json = field(default_factory=dict)
    k: Count = 10
    n: Count = 0
    recall: Number | None = None
    quality: Mapping[str, Number] = field(default_factory=dict)
    intervals: Mapping[str, tuple[Number, Number]] = field(default_factory=dict)
    n_gold: Count = 0
    single_ms: Number | None = None
    batch_ms: Number | None = None
    encode_ms: Number | None = None
    ram: Count | None = None
    disk: Count = 0
    build_seconds: Number = 0.0
    passages: Count = 0
    error: str = ""

    @property
    def label(self) -> str:
        """The index with its parameters.

        >>> Point("mine", "hnsw", {"ef_search": 64}).label
        'mine (ef_search 64)'
        """
        settings = ", ".join(f"{name} {value}" for name, value in self.knobs.items())
        return f"{self.index} ({settings})" if settings else self.index


@dataclass(frozen=True, slots=True)
class TradeoffReport:
    """The measurements of a trade-off: a Point per index and setting, over ``n`` questions."""

    name: str
    dataset: str
    k: Count
    n: Count
    points: tuple[Point, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """The content of ``report.json``."""
        return {"format": TRADEOFF, **asdict(self), "points": [asdict(p) for p in self.points]}


# suites


@dataclass(frozen=True, slots=True)
class OwnRow:
    """Our row of a printed table. ``table``: its name; ``settings``: as in the printed rows; ``cells``: column → mean in
    the paper's unit. ``why``: the reason why no cell is comparable with the paper's, or ''; ``differs``: other
    differences."""

    table: str
    system: str
    cells: Mapping[str, Estimate] = field(default_factory=dict)
    settings: Json = field(default_factory=dict)
    why: str = ""
    differs: tuple[str, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """The entry in ``report.json``."""
        return asdict(self)

    @property
    def note(self) -> str:
        """The comparison in words, for the note of a table."""
        if self.why:
            return f"The paper's figures are left out: {self.why}."
        return " ".join(self.differs)


@dataclass(frozen=True, slots=True)
class PartResult:
    """A run of a suite with its means."""

    label: str
    run: str = ""
    n: Count = 0
    n_errors: Count = 0
    seconds: Number | None = None
    metrics: Mapping[str, Estimate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The report of a suite.

    ``definitions``: metric → definition. ``data``: the suite's own keys; ``PUBLISHED`` has OwnRows. ``notes``: sentences
    for the reader of the numbers. ``files``: paths of its files in ``folder``.
    """

    suite: str = ""
    name: str = ""
    parts: tuple[PartResult, ...] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)
    data: Json = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    plots: tuple[Figure, ...] = ()
    files: tuple[str, ...] = ()
    folder: str = ""

    @property
    def rows(self) -> tuple[OwnRow, ...]:
        """The suite's rows of printed tables."""
        return tuple(self.data.get(PUBLISHED, ()))

    def to_json(self) -> dict[str, JsonValue]:
        """The content of ``report.json``."""
        return {
            "suite": self.suite,
            "name": self.name,
            "parts": as_json(list(self.parts)),
            "definitions": dict(self.definitions),
            **object_json(self.data),
            "notes": list(self.notes),
            "tables": [table.to_json() for table in self.tables],
            "plots": [figure.to_json() for figure in self.plots],
            "files": list(self.files),
            "folder": self.folder,
        }


# dataset builders


@dataclass(frozen=True, slots=True)
class StageCounts:
    """The counts of a stage of a builder; None for counts that it does not have.

    ``inputs`` gave ``rows``; ``left_out``: reason → number. ``unknown``: unreadable verdicts; ``failed``: failed requests;
    ``edited``: rows edited by a person; ``new``: rows of this session. ``calls`` and the rest: cost of the requests,
    ``tokens_not_counted``: rows without counted tokens.
    """

    inputs: Count = 0
    rows: Count = 0
    used: Count = 0
    left_out: Mapping[str, Count] | None = None
    unknown: Count | None = None
    failed: Count = 0
    edited: Count | None = None
    new: Count | None = None
    calls: Count | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    seconds: Number | None = None
    tokens_not_counted: Count | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """The counts without None."""
        values = {STAGE_KEYS.get(n, n): getattr(self, n) for n in StageCounts.__slots__}
        return {name: value for name, value in values.items() if value is not None}


STAGE_KEYS = {"used": "kept", "new": "made"}
"""Field of StageCounts → its key, if they differ."""


@dataclass(frozen=True, slots=True)
class BuilderReport:
    """The report of a dataset builder. ``counts``: the builder's own; ``records``: file → number of records; ``stages``: label →
    counts; ``settings``: without ``articles``."""

    maker: str = ""
    name: str = ""
    articles: str = ""
    llm: str = ""
    settings: Json = field(default_factory=dict)
    questions: Count = 0
    counts: Json = field(default_factory=dict)
    stages: Mapping[str, StageCounts] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    folder: str = ""

    @property
    def records(self) -> Mapping[str, int]:
        """File → number of records, for a builder that makes records."""
        return dict(self.counts.get("records", {}))

    def to_json(self) -> dict[str, JsonValue]:
        """The content of ``report.json``."""
        stages = {label: counts.to_json() for label, counts in self.stages.items()}
        return {
            "maker": self.maker,
            "name": self.name,
            "articles": self.articles,
            "llm": self.llm,
            "settings": dict(self.settings),
            "counts": {"questions": self.questions, **self.counts, "stages": stages},
            "notes": list(self.notes),
            "files": list(self.files),
            "folder": self.folder,
        }


ExperimentReport = Union[RankingReport, BaselinesReport, TradeoffReport, SuiteReport, BuilderReport]
