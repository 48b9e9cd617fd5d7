"""The experiments of a workspace, one row each: title, winner, and whether the difference is more than chance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from rallebench.analysis.baselines import LABELS
from rallebench.core.errors import RalleError
from rallebench.core.experiment_reports import (
    IMPROVE,
    BaselinesReport,
    PartResult,
    RankingReport,
    SuiteReport,
    TradeoffReport,
    VariantResult,
)
from rallebench.core.experiments import StoredExperiment
from rallebench.core.improvements import Improvement, find_improvement
from rallebench.core.list_columns import ListColumn
from rallebench.core.numbers import FEW, LEVEL, plural
from rallebench.core.report import Estimate
from rallebench.core.run_titles import field_label, plain_label
from rallebench.core.tables import Table
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.engine.headline import OF_ANSWERS, deciding_metric
from rallebench.experiments import BUILDERS, EXPERIMENTS, SUITES
from rallebench.experiments.baselines import LONG, baseline_name
from rallebench.experiments.sweeps.running import sweep_variants
from rallebench.metrics import metric
from rallebench.views.designs import (
    base_chain,
    benchmark_name,
    benchmark_title,
    suite_part,
)
from rallebench.views.experiment_requests import suite_name
from rallebench.views.library import join_names
from rallebench.workspace.paths import WorkspaceFolder

DECIDING = (*OF_ANSWERS, "Rprec", "all_rate", "acc", "right", "truthfulness", "rouge-L", "bleu-avg")
"""Metrics of published benchmarks that can rank their parts."""
NAMED = {
    "tradeoff": "Index trade-off",
    "baselines": "Baselines",
    "batch": "Folder of chains",
    IMPROVE: "Improvement",
}
ALMOST = 0.99
"""The fastest index wins if it reaches this share of the best recall."""


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """An experiment as one row. ``winner``: label of its best run, "" if no run wins or the runs do not compete;
    ``open``: why none has won, "" if one has; ``share``: True if the mean is a share; ``beside``: description of the
    runner-up or reference; ``sure``: True if the difference is more than chance, None if not tested. ``ended``: True
    if its report is written; ``automatic``: True if the program chose its name; ``problem``: why it cannot be read.
    """

    name: str
    kind: str
    title: str
    about: str
    ended: bool
    changed: float
    automatic: bool = False
    winner: str = ""
    open: str = ""
    mean: Estimate | None = None
    share: bool = True
    metric: str = ""
    beside: str = ""
    difference: float | None = None
    sure: bool | None = None
    problem: str = ""


def groups(workspace: WorkspaceFolder) -> list[ExperimentRow]:
    """Return all experiments except dataset builders, newest first. A damaged one is listed with its problem."""
    store = ExperimentStore(workspace.path)
    listed = []
    for name in store.names():
        if BUILDERS.strip_prefix(store.find_kind(name)):
            continue
        try:
            listed.append(group(workspace, name))
        except RalleError as error:
            listed.append(ExperimentRow(name, "", name, "", False, 0.0, problem=str(error)))
    return listed


def group(workspace: WorkspaceFolder, name: str) -> ExperimentRow:
    """Return an experiment as one row. Raises UsageError if there is none, BadFileError for damaged files."""
    store = ExperimentStore(workspace.path)
    with store.reading(name):
        return _experiment_row(store.open(name), store.folder(name))


def _experiment_row(stored: StoredExperiment, folder: Path) -> ExperimentRow:
    name = stored.name
    files = [
        path for path in (folder / "report.json", folder / "experiment.json") if path.is_file()
    ]
    line = ExperimentRow(
        name,
        stored.kind,
        experiment_title(stored),
        experiment_summary(stored),
        stored.report is not None,
        files[0].stat().st_mtime,
        _is_automatic(stored),
    )
    report = stored.report
    if isinstance(report, RankingReport):
        return _with_variants(line, report, stored)
    if isinstance(report, TradeoffReport):
        return _with_points(line, report)
    if isinstance(report, BaselinesReport):
        return _with_baselines(line, report)
    if isinstance(report, SuiteReport):
        if outcome := find_improvement(report):
            return _with_improvement(line, report, outcome)
        return _with_parts(line, report, stored.kind)
    return line


def _is_automatic(stored: StoredExperiment) -> bool:
    """Return whether a name was generated from a time or settings, and so says less than the title."""
    if re.search(r"^[a-z]+-\d{8}-\d{6}$", stored.name):
        return True
    request = stored.request
    if stored.kind == "baselines":
        own = baseline_name(str(request.settings["run"]), "baselines")
        return stored.name in (own, f"{own} {LONG}")
    if stored.kind not in SUITES:
        return False
    return stored.name == suite_name(stored.kind, request.llm, request.settings, request.limit)


def experiment_title(stored: StoredExperiment) -> str:
    """Return the title of an experiment: its fields, its paper or its kind."""
    settings = stored.request.settings
    if stored.kind == "sweep":
        names = [field_label(text.partition("=")[0]) for text in settings.get("vary", ())]
        return f"Sweep of {join_names(dict.fromkeys(names))}"
    if stored.kind in NAMED:
        of = settings.get("run") or settings.get("title") or ""
        if stored.kind == IMPROVE:
            of = base_chain(settings).name
        return f"{NAMED[stored.kind]}{f' of {of}' if of else ''}"
    title, part = benchmark_title(benchmark_name(stored.kind)), suite_part(stored.kind)
    return f"{title}, {part}" if part else title


def experiment_summary(stored: StoredExperiment) -> str:
    """Describe its runs, questions and model."""
    request = stored.request
    settings = request.settings
    count = len(stored.runs) or len(settings.get("indexes", ()))
    if stored.kind == "sweep" and stored.report is None:
        with suppress(RalleError):  # the file of a prompt may be missing
            count = len(sweep_variants(settings))
    noun = {"sweep": "variant", "tradeoff": "index", "batch": "chain"}.get(stored.kind, "run")
    first = f"first {request.limit}" if request.limit else ""
    words = [plural(count, noun), settings.get("dataset", ""), request.llm, first]
    return " · ".join(str(word) for word in words if word)


COLUMNS: tuple[ListColumn[ExperimentRow], ...] = (
    ListColumn("name", "Experiment", "text", lambda row: f"{row.title} {row.name}", searched=True),
    ListColumn("kind", "Kind", "text", lambda row: row.kind, searched=True),
    ListColumn("about", "About", "text", lambda row: row.about, searched=True),
    ListColumn("winner", "Winner", "text", lambda row: row.winner, searched=True),
    ListColumn("result", "Result", "share", lambda row: row.mean.value if row.mean else None),
    ListColumn("metric", "Metric", "text", lambda row: row.metric),
    ListColumn("difference", "Compared with", "share", lambda row: row.difference, "in points"),
    ListColumn("state", "State", "text", lambda row: "ended" if row.ended else "not ended"),
    ListColumn(
        "changed", "When", "date", lambda row: _iso(row.changed), aliases=("created", "date")
    ),
)
"""The columns of the list of experiments."""


def _iso(seconds: float) -> str | None:
    return datetime.fromtimestamp(seconds).isoformat(timespec="seconds") if seconds else None


# metrics


def _traits(name: str) -> Mapping[str, Any]:
    """Return the traits of a metric; {} for a benchmark's own metric."""
    try:
        return metric(name).traits
    except RalleError:
        return {}


def decides(name: str) -> bool:
    """Return whether a metric can rank runs, because higher or lower values are better."""
    traits = _traits(name)
    return bool(traits) and traits.get("higher_is_better", True) is not None


def metric_label(name: str) -> str:
    """Return a metric's label, or its name if it has no label."""
    return str(_traits(name).get("label", name))


def is_share(name: str) -> bool:
    """Return whether a metric is a share from 0 to 1; a benchmark's own metrics are."""
    traits = _traits(name)
    return not traits or traits.get("range") == (0, 1)


# winners


@dataclass(frozen=True, slots=True)
class Standing:
    """The top of a ranking. ``equal``: variants with the first one's score, including it; ``alike``: variants not
    shown to differ from it; ``few``: True if there are too few questions or articles to show a difference.
    """

    equal: list[str]
    alike: list[str]
    few: bool

    @property
    def open(self) -> str:
        """Say briefly why the first has not won; "" if it has."""
        if len(self.equal) > 1:
            return f"{len(self.equal)} are equal"
        return f"{self.equal[0]} leads" if self.alike else ""


def standing(rows: Sequence[VariantResult], name: str) -> Standing:
    """Test whether the first of the variants, sorted best first, wins by a metric."""
    first = rows[0].metrics[name]
    equal, alike, few = [], [], first.n < FEW
    for row in rows:
        label, p = plain_label(row.variant), row.p_corrected
        if round((row.metrics[name].value or 0.0) - (first.value or 0.0), 9) == 0:
            equal.append(label)
        elif p is None or p >= LEVEL:
            alike.append(label)
            few = few or p is None
    return Standing(equal, alike, few)


def _with_variants(
    line: ExperimentRow, report: RankingReport, stored: StoredExperiment
) -> ExperimentRow:
    rows, name = report.variants, report.metric
    if not rows or not name:
        return line
    base = _base_label(stored)
    beside, difference, corrected = "", None, None
    row = next((row for row in rows[1:] if row.variant == base), next(iter(rows[1:]), None))
    if row is not None and row.difference is not None:
        is_base = row.variant == base and rows[0].variant != base
        beside = "the chain as it is" if is_base else row.variant
        difference, corrected = -row.difference, row.p_corrected
    return replace(
        line,
        winner=plain_label(rows[0].variant),
        open=standing(rows, name).open,
        mean=rows[0].metrics.get(name),
        metric=metric_label(name),
        share=is_share(name),
        beside=plain_label(beside),
        difference=difference,
        sure=None if corrected is None else corrected < LEVEL,
    )


def _base_label(stored: StoredExperiment) -> str:
    """Return the label of the unchanged chain; "" if it is not among the variants."""
    settings = stored.request.settings
    if stored.kind != "sweep":
        return ""
    try:
        base, variants = base_chain(settings), sweep_variants(settings)
    except (RalleError, KeyError):
        return ""  # the file of a prompt is missing; the report has the labels
    same = (v.label for v in variants if not v.index and v.chain.actions == base.actions)
    return next(same, "")


def _with_points(line: ExperimentRow, report: TradeoffReport) -> ExperimentRow:
    timed = [p for p in report.points if not p.error and p.single_ms]
    name = "recall"
    values = [(p.recall, p.single_ms, p) for p in timed if p.recall is not None]
    if not values:
        name = "Rprec"
        values = [(share, p.single_ms, p) for p in timed if (share := p.quality.get("Rprec"))]
    if not values:
        return line
    best = max(value for value, _, _ in values)
    share, fastest, winner = min(
        (entry for entry in values if entry[0] >= ALMOST * best), key=lambda entry: entry[1] or 0.0
    )
    _, longest, slowest = max(values, key=lambda entry: entry[1] or 0.0)
    times = (longest or 0.0) / (fastest or 1.0)
    beside = f"{times:.1f} times as fast as {slowest.label}" if winner is not slowest else ""
    low, high = winner.intervals.get(name, (None, None))
    mean = Estimate(share, low, high, winner.n)
    return replace(line, winner=winner.label, mean=mean, metric=name, beside=beside)


def _with_baselines(line: ExperimentRow, report: BaselinesReport) -> ExperimentRow:
    name = deciding_metric(report.metrics) or next(iter(report.metrics), "")
    row = report.metrics.get(name, {})
    if "run" not in row:
        return line
    others = [(LABELS.get(c, c), row[c].value) for c in row if c != "run"]
    beside = ", ".join(f"{label} {100 * v:.1f} %" for label, v in others if v is not None)
    return replace(line, mean=row["run"], metric=name, beside=beside)


def _with_improvement(
    line: ExperimentRow, report: SuiteReport, outcome: Improvement
) -> ExperimentRow:
    """Add the mean of the best variant on the unseen articles, and its difference from the chain there."""
    means = {part.run: part.metrics.get(outcome.metric) for part in report.parts}
    return replace(
        line,
        winner=outcome.variant if outcome.confirmed else "",
        open="" if outcome.confirmed else "not confirmed",
        mean=means.get(outcome.runs[-1]) if outcome.runs else None,
        metric=outcome.label,
        share=outcome.is_share,
        beside="the chain on unseen articles" if outcome.runs else "",
        difference=outcome.difference,
        sure=outcome.confirmed,
    )


def _with_parts(line: ExperimentRow, report: SuiteReport, kind: str) -> ExperimentRow:
    """Add the first figure that the paper prints too. Without one, add the parts' values of the first share that all
    have: the best if the parts compete, otherwise the lowest and highest.
    """
    for table in report.tables:
        if pair := _beside_paper(table):
            head, mean, printed = pair
            figure = f"{100 * printed:.1f} %" if table.percent else f"{printed:g}"
            beside = f"paper: {figure}"
            return replace(line, mean=mean, metric=head, share=table.percent, beside=beside)
    parts = report.parts
    shares = [
        (n, values) for n in (parts[0].metrics if parts else ()) if (values := _shares(parts, n))
    ]
    if not shares:
        return line
    name, values = shares[0]
    ranked = sorted(zip(values, parts), key=lambda pair: pair[0], reverse=True)
    best, metric = ranked[0][1], metric_label(name)
    if competing(kind):
        return replace(line, winner=best.label, mean=best.metrics[name], metric=metric)
    if len(parts) == 1:
        return replace(line, mean=best.metrics[name], metric=metric)
    ends = (
        f"{plain_label(part.label)}: {metric} {100 * value:.1f} %"
        for value, part in (ranked[-1], ranked[0])
    )
    return replace(line, metric=metric, beside=" · ".join(ends))


def competing(kind: str) -> bool:
    """Return whether the runs of an experiment are alternatives, so that one of them can win."""
    return bool(EXPERIMENTS.entry(kind).traits.get("competes", False))


def _shares(parts: Sequence[PartResult], name: str) -> list[float]:
    """Return each part's value of a metric if it is a share and higher is better; [] unless all parts have one."""
    if name.partition(":")[0] not in DECIDING:
        return []
    values = [part.metrics[name].value for part in parts if name in part.metrics]
    known = [value for value in values if value is not None and 0 <= value <= 1]
    return known if len(known) == len(parts) else []


def _beside_paper(table: Table) -> tuple[str, Estimate, float] | None:
    """Return (heading, our mean, the paper's figure) of the first column that both have."""
    ours = next((row for row in table.rows if not is_printed(str(row[0]))), None)
    printed = next((row for row in table.rows if is_printed(str(row[0]))), None)
    if ours is None or printed is None:
        return None
    for head, mean, figure in zip(table.labels[1:], ours[1:], printed[1:]):
        if isinstance(mean, Estimate) and mean.value is not None and isinstance(figure, float):
            return head, mean, figure
    return None


def is_printed(name: str) -> bool:
    """Return whether a row of a report's table comes from the paper.

    >>> is_printed("RGB's paper: ChatGPT"), is_printed("reader: right")
    (True, False)
    """
    return "paper" in name.lower()
