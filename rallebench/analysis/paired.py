"""Two runs of one dataset, question by question: is the difference more than chance?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rallebench.engine.statistics import FEWEST_PAIRED, LEVEL, NOISE, Difference
from rallebench.engine.statistics import difference as difference_of

Z_95, Z_POWER_80 = 1.959964, 0.841621


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Run B against run A on the ``n`` questions that both have scored.

    ``difference`` = mean of B − mean of A. ``p``, ``corrected`` (for ``comparisons``) and ``low``..``high``
    (95 % for all comparisons together) come from one sign-flip test over ``clusters``
    (``engine.statistics.Difference``): 0 lies outside if and only if ``corrected`` < .05. ``note``: why
    there is no interval, or ''. All None if n is 0. ``wins``, ``ties``, ``losses``: questions on which B is
    better, equal, worse. ``flipped``: their ids, B's gains first. ``needed``: questions for 80 % power at
    the 5 % level, given this difference, or None.
    """

    metric: str
    n: int
    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    wins: int
    ties: int
    losses: int
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    needed: int | None
    corrected: float | None = None
    comparisons: int = 1
    clusters: int = 0
    note: str = ""

    @property
    def significant(self) -> bool:
        """Whether the difference is more than chance, corrected for all comparisons."""
        return self.corrected is not None and self.corrected < LEVEL

    @property
    def flipped(self) -> tuple[str, ...]:
        """The questions on which the runs differ."""
        return self.gained + self.lost


def compare(
    metric: str,
    a: Mapping[str, float | None],
    b: Mapping[str, float | None],
    *,
    higher_is_better: bool = True,
    clusters: Mapping[str, int | str] | None = None,
    comparisons: int = 1,
) -> PairedComparison:
    """Compare two runs, question id → score. Questions without a score in one of them are left out.

    NaN counts as not scored. ``wins`` follow ``higher_is_better``; the difference keeps its sign.
    ``clusters``: question id → cluster; default: every question is its own. ``comparisons``: the number
    of comparisons in the table.
    """
    import numpy as np

    common = shared_scores(a, b)
    if not common:
        return PairedComparison(
            metric, 0, None, None, None, None, None, None, 0, 0, 0, (), (), None
        )
    left, right = (np.array([scores[qid] for qid in common], dtype=np.float64) for scores in (a, b))
    gaps = np.where(np.isclose(left, right, rtol=NOISE, atol=NOISE), 0.0, right - left)
    better = gaps if higher_is_better else -gaps
    pair = difference_of(
        gaps, None if clusters is None else [clusters[qid] for qid in common], comparisons
    )
    return PairedComparison(
        metric=metric,
        n=len(common),
        a=float(left.mean()),
        b=float(right.mean()),
        difference=float(gaps.mean()),
        low=pair.low,
        high=pair.high,
        p=pair.p,
        wins=int((better > 0).sum()),
        ties=int((better == 0).sum()),
        losses=int((better < 0).sum()),
        gained=tuple(qid for qid, gap in zip(common, better) if gap > 0),
        lost=tuple(qid for qid, gap in zip(common, better) if gap < 0),
        needed=questions_needed(pair, len(common)),
        corrected=pair.corrected,
        comparisons=comparisons,
        clusters=pair.clusters,
        note=pair.note,
    )


def shared_scores(a: Mapping[str, float | None], b: Mapping[str, float | None]) -> list[str]:
    """The questions that both have scored, in the order of ``a``."""
    return [qid for qid in a if _is_number(a[qid]) and _is_number(b.get(qid))]


def _is_number(value: Any) -> bool:
    return value is not None and not math.isnan(value)


def questions_needed(pair: Difference, n: int) -> int | None:
    """Questions, with articles of the same size, at which this difference is significant with 80 % power.

    At least FEWEST_PAIRED: fewer articles are never significant. None if the difference is 0 or has no
    standard error.
    """
    if not pair.value or pair.error <= NOISE * abs(pair.value):
        return None
    return max(FEWEST_PAIRED, math.ceil(n * ((Z_95 + Z_POWER_80) * pair.error / pair.value) ** 2))
