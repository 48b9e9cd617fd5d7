"""The results of one experiment: ranking, tables, figures, files, and errors to be labelled by a person."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from rallebench.analysis import deployment
from rallebench.analysis.baselines import COLUMNS
from rallebench.analysis.suites import differences, match_runs
from rallebench.core.errors import UsageError
from rallebench.core.experiment_reports import (
    BaselinesReport,
    Point,
    RankingReport,
    SuiteReport,
    VariantResult,
)
from rallebench.core.experiments import StoredExperiment
from rallebench.core.files import write_text
from rallebench.core.memory import size
from rallebench.core.numbers import plural
from rallebench.core.report import Estimate, RunReport
from rallebench.core.run_results import Ranking
from rallebench.core.run_titles import field_label, plain_label
from rallebench.core.spreadsheets import unquote_cell
from rallebench.core.table_files import csv_lines
from rallebench.core.tables import Column, Figure, Table, Unit
from rallebench.engine.experiment_store import REPORT, ExperimentStore
from rallebench.engine.store import RunFolder
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.sweeps.results import open_sweep
from rallebench.views.experiment_groups import (
    decides,
    is_share,
    metric_label,
    standing,
)
from rallebench.workspace.paths import WorkspaceFolder

MOST_BYTES = 20_000_000
ERRORS = ("qid", "category", "question", "required", "prediction")
"""Columns of a file of errors that the page needs."""


def ranking(workspace: WorkspaceFolder, stored: StoredExperiment, by: str = "") -> Ranking:
    """Return the ranking by a metric, by default the experiment's own. Raises UsageError if the metric cannot rank."""
    if stored.kind == "sweep":
        by = by or str(stored.request.settings.get("metric") or "")
        result = open_sweep(workspace, stored.name, by)
    elif isinstance(stored.report, RankingReport):
        result = stored.report
    else:
        result = RankingReport()
    reports = {
        row.run: RunFolder.open(workspace.runs, row.run).report() or RunReport()
        for row in result.variants
    }
    names = tuple(filter(decides, result.variants[0].metrics)) if result.variants else ()
    return Ranking(result, names, reports)


def replayed_runs(value: Ranking) -> set[str]:
    """Return the runs of a ranking whose answers came from the cache; their times cannot be compared with the
    others.
    """
    return {run for run, report in value.reports.items() if report.is_replayed}


def verdict(value: Ranking) -> tuple[str, str]:
    """Return the winner and the reason, in sentences that claim no more than the numbers show."""
    rows, name = value.result.variants, value.result.metric
    if not name or len(rows) < 2:
        return "No winner.", value.result.verdict
    first, place = rows[0].metrics[name], standing(rows, name)
    best = first.value or 0.0
    score = f"{100 * best:.1f} %" if is_share(name) else f"{best:.4g}"
    reason = [f"{metric_label(name)} {score} on {plural(first.n, 'question')}."]
    if len(place.equal) > 1:
        reason.append(f"The cheapest is {place.equal[0]}.")
    others = len(rows) - len(place.equal)
    if place.few and (place.alike or not others):
        count = "1 question is" if first.n == 1 else f"{first.n:,} questions are"
        reason.append(f"{count} too few to show a difference.")
    elif place.alike:
        names = ", ".join(place.alike[:4])
        more = f" and {len(place.alike) - 4} more" if len(place.alike) > 4 else ""
        reason.append(f"No difference is shown to {names}{more}.")
    elif others:
        better = "the other variant" if others == 1 else f"each of the {others} others"
        count = f", corrected for {len(rows) - 1} comparisons" if len(rows) > 2 else ""
        reason.append(f"Better than {better} (p < .05{count}).")
    head = f"No winner: {place.open}." if place.open else f"{place.equal[0]} wins."
    return head, " ".join(reason)


def ranking_table(value: Ranking) -> Table:
    """Return the ranking as a table for files, with every metric that all variants have."""
    result = value.result
    columns = [Column("variant", "text"), *(Column(metric_label(n)) for n in value.metrics)]
    columns += [Column("to the best", "delta"), Column("p, corrected", "p"), Column("run", "text")]
    rows = tuple(
        (
            row.variant,
            *(row.metrics.get(n) for n in value.metrics),
            row.difference,
            row.p_corrected,
            row.run,
        )
        for row in result.variants
    )
    return Table(result.sweep, tuple(columns), rows, note=result.verdict)


def figures(value: Ranking) -> list[Figure]:
    """Return figures: means over a varied number, or one bar per variant; and quality against seconds and tokens."""
    name, variants = value.result.metric, value.result.variants
    if not name or not variants:
        return []
    drawn = [_over(variants, name)]
    measured = [(plain_label(row.variant), value.reports[row.run]) for row in variants]
    stale = replayed_runs(value)
    timed = [row for row, variant in zip(measured, variants) if variant.run not in stale]
    for across in [*deployment.COST_AXES][:2]:
        of = timed if across == "seconds_per_question" else measured
        points = deployment.points(of, name, across)
        if len(points) > 1:
            drawn.append(deployment.draw(points, across, metric_label(name), is_share(name)))
    return drawn


def _over(variants: Sequence[VariantResult], name: str) -> Figure:
    """Draw a line over the numbers of one field for each combination of the other fields, or else bars."""
    split = [dict(part.partition("=")[::2] for part in row.variant.split(", ")) for row in variants]
    fields, label = list(split[0]), metric_label(name)
    units: tuple[Unit, Unit] = ("", "share" if is_share(name) else "")
    for axis in fields:
        if all(list(s) == fields and _is_number(s[axis]) for s in split):
            series: dict[str, list[tuple[float, Estimate, str]]] = {}
            for values, row in zip(split, variants):
                rest = ", ".join(f"{field_label(k)} {v}" for k, v in values.items() if k != axis)
                point = (float(values[axis]), row.metrics[name], row.run)
                series.setdefault(rest or label, []).append(point)
            if max(map(len, series.values())) > 1:
                ordered = {k: sorted(v, key=lambda point: point[0]) for k, v in series.items()}
                lines = {k: tuple((x, mean) for x, mean, _ in v) for k, v in ordered.items()}
                runs = {k: tuple(run for *_, run in v) for k, v in ordered.items()}
                title, across = f"{label} over {field_label(axis)}", field_label(axis)
                return Figure(title, across, label, lines, "line", units=units, runs=runs)
    bars = {label: tuple((plain_label(row.variant), row.metrics[name]) for row in variants)}
    runs = {label: tuple(row.run for row in variants)}
    return Figure(label, "", label, bars, "bar", units=units, runs=runs)


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        float(text)
        return True
    return False


AXES: Mapping[str, str] = {
    "recall": "Recall at k",
    "Rprec": "R-precision",
    "success_rate@1": "Success at 1",
    "success_rate@5": "Success at 5",
    "success_rate@10": "Success at 10",
    "single_ms": "Milliseconds, one query",
    "batch_ms": "Milliseconds a query, in batches",
    "ram": "Memory, bytes",
    "disk": "Disk, bytes",
    "build_seconds": "Seconds to build",
}
"""Figure that a trade-off plot can use as an axis → its label."""


AXIS_UNITS: Mapping[str, Unit] = {
    "single_ms": "ms",
    "batch_ms": "ms",
    "ram": "bytes",
    "disk": "bytes",
    "build_seconds": "seconds",
}
"""Axis of a trade-off plot → its unit; the others are shares."""


def tradeoff_figure(points: Sequence[Point], across: str, up: str) -> Figure:
    """Draw one bubble per index and setting; its area is the memory used while searching. Times and sizes that differ
    by more than a factor of WIDE stand on a logarithmic axis.
    """
    known = [
        (point, x, y)
        for point in points
        if (x := _axis(point, across)) is not None and (y := _axis(point, up)) is not None
    ]
    series = {}
    for point, x, y in known:
        held = f"memory: {size(point.ram)}" if point.ram is not None else "memory unknown"
        low, high = point.intervals.get(up, (None, None))
        mean = Estimate(y, low, high, _questions(point, up))
        series[point.label] = ((x, mean, point.ram, held),)
    xs = [x for _, x, _ in known]
    wide = across in AXIS_UNITS and bool(xs) and 0 < WIDE * min(xs) < max(xs)
    units = (AXIS_UNITS.get(across, "share"), AXIS_UNITS.get(up, "share"))
    title = f"{AXES[up]} against {AXES[across]}"
    log: Literal["", "x"] = "x" if wide else ""
    return Figure(title, AXES[across], AXES[up], series, "bubble", units=units, log=log)


WIDE = 20
"""Ratio of the largest to the smallest value, beyond which an axis is logarithmic."""


def _questions(point: Point, axis: str) -> int:
    return 0 if axis in AXIS_UNITS else point.n if axis == "recall" else point.n_gold


def _axis(point: Point, axis: str) -> float | None:
    if point.error:
        return None
    return point.quality.get(axis) if axis in point.quality else getattr(point, axis, None)


def _mean(point: Point, axis: str) -> Estimate | float | None:
    """A mean with its interval; a number alone in reports without intervals."""
    value, ends = _axis(point, axis), point.intervals.get(axis)
    if value is None or ends is None:
        return value
    return Estimate(value, *ends, _questions(point, axis))


def tradeoff_table(points: Sequence[Point]) -> Table:
    """Return a table of all measurements."""
    columns = (
        Column("index", "text"),
        Column("recall at k"),
        Column("R-precision"),
        Column("success at 1"),
        Column("ms, one query", "quantity"),
        Column("ms, in batches", "quantity"),
        Column("ms to encode", "quantity"),
        Column("memory", "bytes"),
        Column("disk", "bytes"),
        Column("s to build", "quantity"),
    )
    rows = tuple(
        (
            p.label,
            _mean(p, "recall"),
            _mean(p, "Rprec"),
            _mean(p, "success_rate@1"),
            p.single_ms,
            p.batch_ms,
            p.encode_ms,
            p.ram,
            p.disk or None,
            p.build_seconds or None,
        )
        for p in points
        if not p.error
    )
    return Table("", columns, rows)


def baseline_table(report: BaselinesReport) -> Table:
    """Return a table of the run with its baselines."""
    names = ["run", *(c for c in report.columns if c != "run")]
    columns = (Column("metric", "text"), *(Column(COLUMNS.get(n, n)) for n in names))
    rows = tuple(
        (metric_label(m), *(row.get(n) for n in names)) for m, row in report.metrics.items()
    )
    return Table("", columns, rows)


# files, pairs, requests


def files(workspace: WorkspaceFolder, name: str) -> list[str]:
    """Return the files of an experiment, relative to its folder."""
    folder = ExperimentStore(workspace.path).folder(name)
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file()
        and not path.name.startswith(".")
        and path.name not in ("experiment.json", "report.json")
        and "measurements" not in path.relative_to(folder).parts
    )


def file_path(workspace: WorkspaceFolder, name: str, file: str) -> Path:
    """Return the path of a file of an experiment. Raises UsageError for any other file."""
    if file not in files(workspace, name):
        raise UsageError(f"The experiment {name} has no file {file}; choose one of the list.")
    path = ExperimentStore(workspace.path).folder(name) / file
    if path.stat().st_size > MOST_BYTES:
        raise UsageError(f"The file {file} is large; it is at {path}.")
    return path


def beside(
    workspace: WorkspaceFolder, first: str, other: str
) -> tuple[Table, dict[str, tuple[str, str]]]:
    """Compare two runs of a published benchmark question by question: the table of differences, and part → its runs
    in both.
    """
    store = ExperimentStore(workspace.path)
    pair = store.open(first), store.open(other)
    for stored in pair:
        if not isinstance(stored.report, SuiteReport):
            raise UsageError(
                f"{stored.name} has no parts to be compared; choose another experiment."
            )
    return differences(workspace, *pair), match_runs(*pair)


def comparable(workspace: WorkspaceFolder, stored: StoredExperiment) -> list[str]:
    """Return other finished experiments of the same kind."""
    names = ExperimentStore(workspace.path).names((stored.kind,))
    folder = ExperimentStore(workspace.path).folder
    return [n for n in names if n != stored.name and (folder(n) / "report.json").is_file()]


def experiment_runs(stored: StoredExperiment) -> Iterator[tuple[str, str]]:
    """Yield (label, run) of every run; for an unfinished experiment, of those started so far."""
    if isinstance(stored.report, SuiteReport):
        yield from ((part.label, part.run) for part in stored.report.parts)
    elif isinstance(stored.report, BaselinesReport):
        yield from stored.report.lines.items()
    else:
        yield from stored.runs.items()


# errors to be labelled by a person


def label_rows(
    workspace: WorkspaceFolder, name: str, file: str
) -> tuple[list[str], list[dict[str, str]]]:
    """Return (columns, rows) of a file of errors. Raises UsageError if it has no column ``category``."""
    path = file_path(workspace, name, file)
    with path.open(encoding="utf-8", newline="") as handle:
        reader = csv.DictReader(handle)
        columns = list(reader.fieldnames or ())
        lines = [{key: unquote_cell(row.get(key) or "") for key in columns} for row in reader]
    if not set(ERRORS) <= set(columns):
        raise UsageError(f"The file {file} has no errors to label; edit it at {path}.")
    return columns, lines


def write_labels(
    workspace: WorkspaceFolder, name: str, file: str, labels: Mapping[int, str]
) -> Path:
    """Write categories into a file of errors, given as row → category; other cells are unchanged. Return its path."""
    columns, lines = label_rows(workspace, name, file)
    for number, category in labels.items():
        if number < len(lines):
            lines[number]["category"] = category
    path = file_path(workspace, name, file)
    write_text(path, csv_lines([columns, *([line[key] for key in columns] for line in lines)]))
    return path


def categories(workspace: WorkspaceFolder, name: str) -> tuple[str, ...]:
    """Return the categories available for labelling an experiment's errors."""
    kind = ExperimentStore(workspace.path).open(name).kind
    return tuple(EXPERIMENTS.entry(kind).traits.get("error_categories", ()))


def report_text(workspace: WorkspaceFolder, name: str) -> str:
    """Return the stored report of an experiment."""
    return (ExperimentStore(workspace.path).folder(name) / REPORT).read_text(encoding="utf-8")


def baseline_label(name: str) -> str:
    """Return the column heading of a baseline or the ceiling."""
    return COLUMNS[name]
