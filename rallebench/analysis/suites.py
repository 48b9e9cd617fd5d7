"""Two suites against each other, question by question: do their means differ by more than chance?"""

from __future__ import annotations

from typing import Any

from rallebench.analysis.paired import PairedComparison, Sides, compare_all
from rallebench.analysis.ranking import scores_of
from rallebench.core.tables import Column, Mean, Table
from rallebench.engine.clusters import clusters_of
from rallebench.engine.experiment_store import StoredExperiment
from rallebench.engine.score import examples_of
from rallebench.engine.store import RunFolder
from rallebench.workspace.paths import Workspace

TITLE = "Differences, question by question"


def pairs_of(first: StoredExperiment, other: StoredExperiment) -> dict[str, tuple[str, str]]:
    """Part → its runs in both: by label, or by place where they share no label and both have as many parts."""
    if first.report is None or other.report is None:
        return {}
    mine, theirs = first.report["parts"], other.report["parts"]
    runs = {part["label"]: part["run"] for part in theirs}
    pairs = {
        part["label"]: (part["run"], runs[part["label"]]) for part in mine if part["label"] in runs
    }
    if not pairs and len(mine) == len(theirs):
        pairs = {f"{a['label']} / {b['label']}": (a["run"], b["run"]) for a, b in zip(mine, theirs)}
    return pairs


def values_of(folder: RunFolder) -> dict[str, dict[str, float | None]]:
    """Metric → question → value, of the suite's own metrics. Raises BadFileError for a damaged run."""
    return scores_of(folder, tuple((folder.report() or {}).get("suite") or ()))


def differences(workspace: Workspace, first: StoredExperiment, other: StoredExperiment) -> Table:
    """Per part and metric the other's mean less the first's over the questions that both
    have scored, with p (Holm) and intervals (Bonferroni) of one sign-flip test over articles that count all lines."""
    sides: dict[tuple[str, str], Sides] = {}
    for label, (a, b) in pairs_of(first, other).items():
        folder = RunFolder.open(workspace.runs, a)
        left, right = values_of(folder), values_of(RunFolder.open(workspace.runs, b))
        clusters = clusters_of(examples_of(folder)).of
        for name in left:
            if name in right:
                sides[label, name] = name, left[name], right[name], clusters
    rows = tuple(_row(*line, pair) for line, pair in compare_all(sides).items())
    note = (
        f"{other.name} less {first.name}, over the questions that both have scored. Both come from one sign-flip "
        f"test over articles and count {len(rows)} comparisons: p by Holm, the intervals, which hold together at 95 %, by Bonferroni."
    )
    p = Column("p, corrected", "p")
    columns = ("part", "metric", "difference", p, "higher", "equal", "lower")
    return Table(TITLE, columns, rows, note=note)


def _row(label: str, name: str, pair: PairedComparison) -> tuple[Any, ...]:
    difference = Mean(pair.difference, pair.low, pair.high, pair.n)
    p = pair.note or pair.corrected
    return (label, name, difference, p, pair.wins, pair.ties, pair.losses)
