"""Verdicts of a judge before and after a change: the share that flips, by article."""

from __future__ import annotations

from collections.abc import Mapping

from rallebench.core.audits import JudgeProbe
from rallebench.core.run_results import MetricEstimate
from rallebench.core.tables import ALL_EQUAL, FEWEST, TOO_FEW
from rallebench.engine.statistics import SHARE, means

MIDDLE = 0.5
"""Scores from here on, on 0 to 1, count as right."""


def measure_flips(
    probe: str,
    about: str,
    before: Mapping[str, float | None],
    after: Mapping[str, float | None],
    clusters: Mapping[str, int],
) -> JudgeProbe:
    """Return the share of verdicts that change sides. ``before``, ``after``: question id → score from 0 to 1, None if unread; only
    questions of ``after`` count."""
    qids = [qid for qid in after if before.get(qid) is not None and after[qid] is not None]
    sides = [((before[qid] or 0.0) >= MIDDLE, (after[qid] or 0.0) >= MIDDLE) for qid in qids]
    flips = [float(old != new) for old, new in sides]
    numbers = [clusters[qid] for qid in qids]
    mean = means({"flips": flips}, numbers, {"flips": SHARE})["flips"]
    units = len(set(numbers))
    note = "" if mean.low is not None else TOO_FEW if units < FEWEST else ALL_EQUAL
    moved = [(after[qid] or 0.0) - (before[qid] or 0.0) for qid in qids]
    return JudgeProbe(
        probe,
        about,
        MetricEstimate("flips", mean.value, mean.low, mean.high, mean.n, units=units, note=note),
        sum(new and not old for old, new in sides),
        sum(old and not new for old, new in sides),
        sum(moved) / len(moved) if moved else None,
        len(after) - len(qids),
    )
