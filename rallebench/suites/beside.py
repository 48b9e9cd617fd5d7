"""Two suite runs against each other, question by question: is what their means differ by more than chance?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rallebench.analysis.paired import compare, holm
from rallebench.bench.statistics import Mean
from rallebench.bench.store import SCORES, RunFolder
from rallebench.errors import BadFileError
from rallebench.suites import Table
from rallebench.suites.kept import Kept
from rallebench.workspace import Workspace

TITLE = "Differences, question by question"


def pairs_of(first: Kept, other: Kept) -> dict[str, tuple[str, str]]:
    """Part → its runs in both: by label, or by place where they share no label and both have as many parts."""
    if first.report is None or other.report is None:
        return {}
    mine, theirs = first.report["parts"], other.report["parts"]
    runs = {part["label"]: part["run"] for part in theirs}
    pairs = {part["label"]: (part["run"], runs[part["label"]]) for part in mine if part["label"] in runs}
    if not pairs and len(mine) == len(theirs):
        pairs = {f"{a['label']} / {b['label']}": (a["run"], b["run"]) for a, b in zip(mine, theirs)}
    return pairs


def values_of(folder: RunFolder) -> dict[str, dict[str, float | None]]:
    """Metric → question → value, of the suite's own metrics. Raises BadFileError for a damaged run."""
    found: dict[str, dict[str, float | None]] = {name: {} for name in (folder.report() or {}).get("suite") or ()}
    try:
        for line in folder.scores():
            if line["metric"] in found:
                found[line["metric"]][line["qid"]] = line["value"]
    except (KeyError, TypeError):
        raise BadFileError(f"{folder.path / SCORES} was damaged by another program; run the suite again to score it.") from None
    return found


def differences(workspace: Workspace, first: Kept, other: Kept) -> dict[str, Any]:
    """A table, as a suite's own are in JSON: per part and metric the other's mean less the first's over the questions that both
    have scored, its paired bootstrap interval, p (paired permutation test) corrected for all lines (Holm 1979)."""
    rows: list[list[Any]] = []
    chances: list[float] = []
    for label, (a, b) in pairs_of(first, other).items():
        left, right = (values_of(RunFolder.open(workspace.runs, run)) for run in (a, b))
        for name in (name for name in left if name in right):
            found = compare(name, left[name], right[name])
            if found.n:
                gap = asdict(Mean(found.difference, found.low, found.high, found.n))
                rows.append([label, name, gap, None, found.wins, found.ties, found.losses])
                chances.append(1.0 if found.p is None else found.p)
    for row, p in zip(rows, holm(chances) if chances else ()):
        row[3] = "< 0.001" if p < 0.001 else f"{p:.3f}"
    note = (
        f"{other.name} less {first.name}, over the questions that both have scored: paired bootstrap interval (95 %), paired "
        f"permutation test, p corrected for {len(rows)} comparisons (Holm)."
    )
    columns = ("part", "metric", "difference", "p, corrected", "higher", "equal", "lower")
    return asdict(Table(TITLE, columns, tuple(map(tuple, rows)), note=note))


def by_question(values: Mapping[str, Mapping[str, float | None]]) -> dict[str, dict[str, float | None]]:
    """Metric → question → value turned about: question → metric → value."""
    found: dict[str, dict[str, float | None]] = {}
    for name, column in values.items():
        for qid, value in column.items():
            found.setdefault(qid, {})[name] = value
    return found
