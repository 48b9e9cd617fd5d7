"""Compare two runs of a suite question by question, and test whether their means differ by more than chance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.analysis.paired import Sides, compare_all
from rallebench.analysis.ranking import read_scores
from rallebench.core.comparison import PairedComparison
from rallebench.core.experiment_reports import SuiteReport
from rallebench.core.experiments import StoredExperiment
from rallebench.core.numbers import LEVEL, plural
from rallebench.core.report import RunReport
from rallebench.core.tables import Column, Table
from rallebench.engine.clusters import find_clusters
from rallebench.engine.score import stored_examples
from rallebench.engine.store import RunFolder
from rallebench.workspace.paths import WorkspaceFolder

TITLE = "Differences, question by question"


def match_runs(first: StoredExperiment, other: StoredExperiment) -> dict[str, tuple[str, str]]:
    """Part → its run in each of the two. Parts are matched by label; if no label is shared, by position, provided
    that both have equally many parts.
    """
    if not isinstance(first.report, SuiteReport) or not isinstance(other.report, SuiteReport):
        return {}
    mine, theirs = first.report.parts, other.report.parts
    runs = {part.label: part.run for part in theirs}
    pairs = {part.label: (part.run, runs[part.label]) for part in mine if part.label in runs}
    if not pairs and len(mine) == len(theirs):
        pairs = {f"{a.label} / {b.label}": (a.run, b.run) for a, b in zip(mine, theirs)}
    return pairs


def suite_scores(folder: RunFolder) -> dict[str, dict[str, float | None]]:
    """Metric → question → value, for the suite's own metrics. Raises BadFileError if the run is damaged."""
    return read_scores(folder, tuple((folder.report() or RunReport()).own))


def differences(
    workspace: WorkspaceFolder, first: StoredExperiment, other: StoredExperiment
) -> Table:
    """Return the differences of means (``other`` minus ``first``) per part and metric, over the questions that both
    have scored. All rows count as comparisons of one test over articles, with Holm's p and Bonferroni
    intervals.
    """
    sides: dict[tuple[str, str], Sides] = {}
    bounds: dict[str, tuple[float | None, float | None]] = {}
    for label, (a, b) in match_runs(first, other).items():
        folder = RunFolder.open(workspace.runs, a)
        left, right = suite_scores(folder), suite_scores(RunFolder.open(workspace.runs, b))
        clusters = find_clusters(stored_examples(folder)).of
        own = (folder.report() or RunReport()).own
        bounds |= {name: result.column.range for name, result in own.items()}
        for name in left:
            if name in right:
                sides[label, name] = name, left[name], right[name], clusters
    return paired_table(
        TITLE, "part", compare_all(sides, bounds), f"{other.name} less {first.name}"
    )


def paired_table(
    title: str,
    head: str,
    pairs: Mapping[tuple[str, str], PairedComparison],
    what: str,
    unit: float = 1,
) -> Table:
    """Return comparisons, keyed by (row, metric), as a table with intervals, Holm's p and wins. ``head``: heading of
    the first column; ``what``: the subtraction, for the note; ``unit``: factor for the differences.
    """
    points = " in points of 100" if unit == 100 else ""
    note = (
        f"{what}{points}, over the questions that both have scored. Interval and p come from one test over articles "
        f"and count {plural(len(pairs), 'comparison')}: p by Holm, the intervals, which hold together at 95 %, by Bonferroni. "
        f"Below {LEVEL} a difference is shown."
    )
    numbers = (Column("difference", "delta"), Column("p, corrected", "p"))
    columns = (head, "metric", *numbers, "shown", "higher", "equal", "lower")
    rows = tuple(_row(label, name, pair, unit) for (label, name), pair in pairs.items())
    return Table(title, columns, rows, note=note)


def _row(label: str, name: str, pair: PairedComparison, unit: float) -> tuple[Any, ...]:
    verdict = "" if pair.corrected is None else "yes" if pair.significant else "no"
    p = pair.note or pair.corrected
    return label, name, pair.gap.times(unit), p, verdict, pair.wins, pair.ties, pair.losses
