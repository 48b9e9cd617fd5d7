"""Two suite runs against each other, question by question: is what their means differ by more than chance?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rallebench.analysis.paired import PairedComparison, compare, shared_scores, with_holm
from rallebench.core.errors import BadFileError
from rallebench.core.tables import Column, Table
from rallebench.engine.clusters import clusters_of
from rallebench.engine.experiment_store import StoredExperiment
from rallebench.engine.score import examples_of
from rallebench.engine.statistics import Mean
from rallebench.engine.store import SCORES, RunFolder
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
    found: dict[str, dict[str, float | None]] = {
        name: {} for name in (folder.report() or {}).get("suite") or ()
    }
    try:
        for line in folder.scores():
            if line["metric"] in found:
                found[line["metric"]][line["qid"]] = line["value"]
    except (KeyError, TypeError):
        raise BadFileError(
            f"{folder.path / SCORES} was damaged by another program; run the suite again to score it."
        ) from None
    return found


def differences(workspace: Workspace, first: StoredExperiment, other: StoredExperiment) -> Table:
    """Per part and metric the other's mean less the first's over the questions that both
    have scored, with p (Holm) and intervals (Bonferroni) of one sign-flip test over articles that count all lines."""
    sides: list[tuple[str, str, Any, Any, RunFolder]] = []
    for label, (a, b) in pairs_of(first, other).items():
        folder = RunFolder.open(workspace.runs, a)
        left, right = values_of(folder), values_of(RunFolder.open(workspace.runs, b))
        names = [name for name in left if name in right and shared_scores(left[name], right[name])]
        sides += [(label, name, left[name], right[name], folder) for name in names]
    clusters = {folder.name: clusters_of(examples_of(folder)).of for *_, folder in sides}
    pairs = with_holm(
        [
            compare(name, mine, theirs, clusters=clusters[folder.name], comparisons=len(sides))
            for _, name, mine, theirs, folder in sides
        ]
    )
    rows = []
    for (label, name, *_), pair in zip(sides, pairs):
        rows.append(
            [
                label,
                name,
                gap_cell(pair),
                pair.note or pair.corrected,
                pair.wins,
                pair.ties,
                pair.losses,
            ]
        )
    note = (
        f"{other.name} less {first.name}, over the questions that both have scored. Both come from one sign-flip "
        f"test over articles and count {len(rows)} comparisons: p by Holm, the intervals, which hold together at 95 %, by Bonferroni."
    )
    p = Column("p, corrected", "p")
    columns = ("part", "metric", "difference", p, "higher", "equal", "lower")
    return Table(TITLE, columns, tuple(map(tuple, rows)), note=note)


def gap_cell(pair: PairedComparison) -> dict[str, Any]:
    """A difference as a table's cell: a mean in JSON."""
    return asdict(Mean(pair.difference, pair.low, pair.high, pair.n))


def by_question(
    values: Mapping[str, Mapping[str, float | None]],
) -> dict[str, dict[str, float | None]]:
    """Metric → question → value turned about: question → metric → value."""
    found: dict[str, dict[str, float | None]] = {}
    for name, column in values.items():
        for qid, value in column.items():
            found.setdefault(qid, {})[name] = value
    return found
