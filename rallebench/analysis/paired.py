"""Two runs of one question set, question by question: is the difference more than chance?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES, FLIPS, PIECE = 2000, 10_000, 200
Z_95, Z_POWER_80 = 1.959964, 0.841621
LEAST = 6
"""Questions: 2 · ½⁶ is the first two-sided p below .05."""
NOISE = 1e-9
"""Two scores nearer than this, absolutely or relatively, are one that was rounded on different ways."""


@dataclass(frozen=True, slots=True)
class Paired:
    """Run B against run A on the ``n`` questions that both have scored.

    ``difference`` = mean of B − mean of A, ``low``..``high`` its 95 % percentile bootstrap interval over
    questions (Efron 1979); ``p``: two-sided paired permutation test of the mean (Fisher 1935; for language
    systems Smucker, Allan and Carterette 2007). All None where n is 0. ``wins``, ``ties``, ``losses``: questions
    on which B is better, equal, worse. ``flipped``: their ids, B's gains first. ``needed``: questions
    that a comparison would need to see this difference with 80 % power at the 5 % level, None where there is none.
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

    @property
    def flipped(self) -> tuple[str, ...]:
        """The questions on which the two differ."""
        return self.gained + self.lost


def compare(
    metric: str,
    a: Mapping[str, float | None],
    b: Mapping[str, float | None],
    *,
    higher_is_better: bool = True,
    seed: int = 0,
) -> Paired:
    """Question id → score of two runs → Paired. Questions that one of them lacks, or has not scored, are left out.

    A score that is no number (NaN) counts as not scored. ``wins`` follow ``higher_is_better``; the difference
    never changes its sign.
    """
    import numpy as np

    common = [qid for qid in a if _is_number(a[qid]) and _is_number(b.get(qid))]
    if not common:
        return Paired(metric, 0, None, None, None, None, None, None, 0, 0, 0, (), (), None)
    left, right = (np.array([scores[qid] for qid in common], dtype=np.float64) for scores in (a, b))
    gaps = np.where(np.isclose(left, right, rtol=NOISE, atol=NOISE), 0.0, right - left)
    better = gaps if higher_is_better else -gaps
    low, high = interval(gaps, seed=seed)
    return Paired(
        metric=metric,
        n=len(common),
        a=float(left.mean()),
        b=float(right.mean()),
        difference=float(gaps.mean()),
        low=low,
        high=high,
        p=sign_flip_p(gaps, seed=seed),
        wins=int((better > 0).sum()),
        ties=int((better == 0).sum()),
        losses=int((better < 0).sum()),
        gained=tuple(qid for qid, gap in zip(common, better) if gap > 0),
        lost=tuple(qid for qid, gap in zip(common, better) if gap < 0),
        needed=questions_needed(gaps),
    )


def _is_number(value: Any) -> bool:
    return value is not None and not math.isnan(value)


def interval(gaps: NDArray[np.float64], *, seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the mean of (n,) values, n ≥ 1."""
    import numpy as np
    from scipy import stats

    if len(gaps) < 2 or (gaps == gaps[0]).all():
        return float(gaps.mean()), float(gaps.mean())
    # SciPy takes more than one resample at a time; a piece bounds the memory that 10,000 questions need.
    found = stats.bootstrap(
        (gaps,), np.mean, n_resamples=RESAMPLES, batch=PIECE, method="percentile", random_state=np.random.default_rng(seed)
    ).confidence_interval
    return float(found.low), float(found.high)


def sign_flip_p(gaps: NDArray[np.float64], *, seed: int = 0, flips: int = FLIPS) -> float:
    """Two-sided p of a mean of zero under random exchange of the two runs on each question.

    Questions without a difference change nothing and are left out. Where all differences have one size,
    as for metrics of 0 and 1, the test is the exact binomial one (SciPy's); otherwise ``flips`` random
    exchanges, counted with the observed one, so that p is never 0.
    """
    import numpy as np
    from scipy import stats

    moved = gaps[gaps != 0]
    if not len(moved):
        return 1.0
    sizes = np.abs(moved)
    if np.allclose(sizes, sizes[0], rtol=NOISE, atol=0):
        return float(stats.binomtest(int((moved > 0).sum()), len(moved)).pvalue)
    rng = np.random.default_rng(seed)
    observed = abs(moved.sum()) - NOISE * sizes.sum()
    extreme = 1
    for start in range(0, flips, PIECE):
        count = min(PIECE, flips - start)
        signs = rng.integers(0, 2, size=(count, len(moved)), dtype=np.int8) * 2.0 - 1.0
        extreme += int((np.abs(signs @ moved) >= observed).sum())
    return extreme / (flips + 1)


def questions_needed(gaps: NDArray[np.float64]) -> int | None:
    """Questions at which the seen mean difference would be significant with 80 % power; None where it is 0.

    At least six: of fewer the exchange of the runs gives no p below 5 %.
    """
    mean, deviation = float(gaps.mean()), float(gaps.std(ddof=1)) if len(gaps) > 1 else 0.0
    if abs(mean) <= NOISE * float(abs(gaps).max()):
        return None
    return max(LEAST, math.ceil(((Z_95 + Z_POWER_80) * deviation / mean) ** 2))


def holm(ps: Sequence[float]) -> list[float]:
    """p-values corrected for as many comparisons (Holm 1979), in the given order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    corrected, least = [0.0] * len(ps), 0.0
    for rank, i in enumerate(order):
        least = max(least, min(1.0, ps[i] * (len(ps) - rank)))
        corrected[i] = least
    return corrected
