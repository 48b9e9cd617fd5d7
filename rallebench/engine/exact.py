"""Exact methods for questions that are right or wrong and share no article: means, differences, and the power to show one.

Means: the interval of Clopper and Pearson (1934). Differences: McNemar's test in its exact form, that is, the sign test over
the questions that changed (Dixon and Mood 1946), and the interval of Fay and Lumbard (2021, Stat. Med. 40, 1147–1159), which
excludes 0 if and only if that test rejects.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rallebench.core.numbers import LEVEL, NOISE

Floats = NDArray[np.float64]
_BINS, _HALVINGS, _TAIL, _SPREADS = 200, 30, 1e-13, 9.0
"""Bins of a confidence distribution, halvings of a search for a quantile, mass left out at each side, and the standard
deviations around a binomial mean beyond which its mass is left out."""


def clopper_pearson(share: float, trials: float) -> tuple[float, float]:
    """The 95 % interval of a share of ``trials``, which need not be a whole number."""
    from scipy import special

    hits, misses = share * trials, (1 - share) * trials
    low = 0.0 if hits <= NOISE else float(special.betaincinv(hits, misses + 1, LEVEL / 2))
    return low, 1.0 if misses <= NOISE else float(
        special.betaincinv(hits + 1, misses, 1 - LEVEL / 2)
    )


def mcnemar_p(wins: int, losses: int) -> float:
    """The two-sided p of McNemar's exact test.

    >>> mcnemar_p(5, 0), mcnemar_p(6, 0), mcnemar_p(3, 3)
    (0.0625, 0.03125, 1.0)
    """
    from scipy import special

    return min(1.0, 2 * float(special.bdtr(min(wins, losses), wins + losses, 0.5)))


def mcnemar_interval(wins: int, losses: int, n: int, level: float) -> tuple[float, float]:
    """The interval of the difference of two shares, (wins − losses) / n, at 1 − ``level``; at least one of ``wins`` and
    ``losses`` is above 0."""
    return _lower_end(wins, losses, n, level / 2), -_lower_end(losses, wins, n, level / 2)


def _lower_end(wins: int, losses: int, n: int, tail: float) -> float:
    """The quantile of changed · (2 · won − 1), two confidence distributions melded: the share of questions that changed, and
    the share of these that are won. With ``won`` below a half, more changed questions mean a smaller difference, so there
    the upper distribution of ``changed`` counts."""
    from scipy import special

    changed = wins + losses

    def beyond(end: float, edges: Floats) -> float:
        """The mass of values below ``end``, whose sign is that of 2 · won − 1."""
        mass = np.diff(special.betainc(wins, losses + 1, edges))
        at = end / (edges[:-1] + edges[1:] - 1)
        if end >= 0:
            return float(mass @ special.betainc(changed, n - changed + 1, np.minimum(at, 1.0)))
        if changed == n:
            return float(mass @ (at < 1.0))
        return float(mass @ special.betaincc(changed + 1, n - changed, np.minimum(at, 1.0)))

    if not wins:
        return (
            -1.0 if changed == n else -float(special.betaincinv(changed + 1, n - changed, 1 - tail))
        )
    least, most = special.betaincinv(wins, losses + 1, [_TAIL, 1 - _TAIL])
    under = float(special.betainc(wins, losses + 1, 0.5))
    if under < tail:
        edges = np.linspace(max(0.5, least), most, _BINS + 1)
        low, high, missing = 0.0, 1.0, tail - under
    else:
        edges = np.linspace(least, min(0.5, most), _BINS + 1)
        low, high, missing = -1.0, 0.0, tail
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle, edges) < missing else (low, middle)
    return (low + high) / 2


def mcnemar_power(n: int, wins: float, losses: float) -> float:
    """The probability that McNemar's exact test over ``n`` questions has p < .05, if these shares of all questions are won
    and lost.

    >>> round(mcnemar_power(100, 0.2, 0.05), 3)
    0.837
    """
    from scipy import special

    share = wins + losses
    middle, spread = n * share, (n * share * (1 - share)) ** 0.5
    changed = np.arange(
        max(0, int(middle - _SPREADS * spread) - 1), min(n, int(middle + _SPREADS * spread) + 1) + 1
    )
    log = special.gammaln(n + 1) - special.gammaln(changed + 1) - special.gammaln(n - changed + 1)
    mass = np.exp(log + special.xlogy(changed, share) + special.xlog1py(n - changed, -share))
    # The largest number on the rarer side with p < .05; -1: none.
    rarer = np.floor(special.bdtrik(LEVEL / 2, changed, 0.5))
    rarer = np.where(np.isnan(rarer), -1, rarer)
    for step in (1, 0):
        tail = special.bdtr(np.maximum(rarer + step, 0), changed, 0.5)
        fits = (2 * tail < LEVEL) & (rarer + step <= changed)
        rarer = np.where(fits, rarer + step, rarer - (step == 0))
    rarer = np.maximum(rarer, -1)
    shows = rarer >= 0
    k = np.maximum(rarer, 0)
    won = wins / share
    rejects = special.bdtr(k, changed, won) + special.bdtr(k, changed, 1 - won)
    return float((mass * np.where(shows, rejects, 0.0)).sum())
