"""The ``report.json`` of experiments, read as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Union

from rallebench.core.experiment_reports import (
    PUBLISHED,
    STAGE_KEYS,
    BaselinesReport,
    BuilderReport,
    ExperimentReport,
    OwnRow,
    PartResult,
    RankingReport,
    StageCounts,
    SuiteReport,
    TradeoffReport,
)
from rallebench.core.own_files import parse, reading
from rallebench.core.report import Estimate
from rallebench.core.strict_numbers import Count, Number
from rallebench.core.tables import Column, Figure, FigureKind, Format, Table, Unit, usual_format
from rallebench.core.types import Json

MEND = "run the experiment again under its name to write it anew, or remove its folder"


@dataclass(frozen=True, slots=True)
class _Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Union[Estimate, bool, int, float, str, None], ...], ...]
    percent: bool = False
    note: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, Format] = field(default_factory=dict)

    def table(self) -> Table:
        usual = usual_format(self.percent)
        columns = tuple(
            Column(name, self.formats.get(name, usual), self.definitions.get(name, ""))
            for name in self.columns
        )
        return Table(self.title, columns, self.rows, self.percent, self.note)


@dataclass(frozen=True, slots=True)
class _Figure:
    title: str
    x: str
    y: str
    series: Mapping[str, tuple[tuple[Any, ...], ...]]
    kind: FigureKind = "line"
    labels: Mapping[str, str] = field(default_factory=dict)
    high: Number | None = None
    empty: str = ""
    units: tuple[Unit, Unit] = ("", "")
    log: Literal["", "x", "y", "xy"] = ""
    printed: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    questions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def figure(self) -> Figure:
        series = {
            name: tuple(tuple(map(_coordinate, point)) for point in points)
            for name, points in self.series.items()
        }
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        return Figure(**{**parts, "series": series})


def _coordinate(value: Any) -> Any:
    return Estimate(**value) if isinstance(value, Mapping) else value


@dataclass(frozen=True, slots=True)
class _Baselines:
    run: str
    lines: Mapping[str, str]
    columns: tuple[str, ...]
    metrics: Mapping[str, Mapping[str, Estimate]]
    tests: _Table
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Suite:
    suite: str = ""
    name: str = ""
    parts: tuple[PartResult, ...] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    tables: tuple[_Table, ...] = ()
    plots: tuple[_Figure, ...] = ()
    files: tuple[str, ...] = ()
    folder: str = ""
    published: tuple[OwnRow, ...] = ()


@dataclass(frozen=True, slots=True)
class _Builder:
    counts: Json
    maker: str = ""
    name: str = ""
    articles: str = ""
    llm: str = ""
    settings: Json = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    folder: str = ""


@dataclass(frozen=True, slots=True)
class _BuilderCounts:
    questions: Count = 0
    stages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    records: Mapping[str, Count] = field(default_factory=dict)


RANKINGS, BASELINES, TRADEOFFS, BUILDERS = (
    ("sweep", "batch"),
    ("baselines",),
    ("trade-off",),
    ("dataset builder",),
)
"""Kinds of experiments by their form of report; any other kind is a suite."""


def report_from_json(document: Json, noun: str, path: Path) -> ExperimentReport:
    """The report in ``document``, the content of the file ``path`` of a ``noun``. Raises BadFileError."""
    with reading(path, MEND):
        if noun in RANKINGS:
            return parse(document, RankingReport, path, MEND)
        if noun in BASELINES:
            return _baselines(parse(document, _Baselines, path, MEND))
        if noun in TRADEOFFS:
            return parse(document, TradeoffReport, path, MEND)
        if noun in BUILDERS:
            return _builder(parse(document, _Builder, path, MEND), path)
        return _suite(parse(document, _Suite, path, MEND), document)


def _baselines(stored: _Baselines) -> BaselinesReport:
    return BaselinesReport(
        stored.run,
        stored.lines,
        stored.columns,
        stored.metrics,
        stored.tests.table(),
        stored.failed,
    )


def _builder(stored: _Builder, path: Path) -> BuilderReport:
    counts = parse(stored.counts, _BuilderCounts, path, MEND)
    names = {key: name for name, key in STAGE_KEYS.items()}
    stages = {
        label: parse({names.get(k, k): v for k, v in stage.items()}, StageCounts, path, MEND)
        for label, stage in counts.stages.items()
    }
    own = {k: v for k, v in stored.counts.items() if k not in ("questions", "stages")}
    return BuilderReport(
        stored.maker,
        stored.name,
        stored.articles,
        stored.llm,
        stored.settings,
        counts.questions,
        own,
        stages,
        stored.notes,
        stored.files,
        stored.folder,
    )


def _suite(stored: _Suite, document: Json) -> SuiteReport:
    known = {*_Suite.__slots__, "request", "made"} - {PUBLISHED}
    own = {key: value for key, value in document.items() if key not in known}
    if stored.published:
        own[PUBLISHED] = stored.published
    return SuiteReport(
        stored.suite,
        stored.name,
        stored.parts,
        stored.definitions,
        own,
        stored.notes,
        tuple(table.table() for table in stored.tables),
        tuple(plot.figure() for plot in stored.plots),
        stored.files,
        stored.folder,
    )
