"""Means of groups against the mean of the rest, by article; an article may have questions on both sides."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rallebench.core.numbers import LEVEL, NOISE
from rallebench.core.tables import FEWEST, TOO_FEW
from rallebench.engine.label_corrected import cluster_part, welch_freedom
from rallebench.engine.statistics import Difference, t_quantile

Floats = NDArray[np.float64]


def contrast(
    values: Floats,
    inside: NDArray[np.bool_],
    clusters: Sequence[int] | NDArray[np.intp],
    comparisons: int = 1,
) -> Difference:
    """The mean of (n,) values from 0 to 1 ``inside`` a group less the mean of the rest, both not empty.

    The standard error sums the deviations of both sides by article, corrected as CR2 is (Bell and McCaffrey 2002), and counts at
    least one deviating article on each side, since few equal values do not show that all are. Student's t with Welch's degrees of
    freedom; ``comparisons``: the interval is simultaneous with so many (Bonferroni), and p is corrected alike. No interval below
    FEWEST articles on a side.
    """
    from scipy import special

    _, numbers = np.unique(np.asarray(clusters), return_inverse=True)
    total = int(numbers.max()) + 1
    sides = [
        cluster_part(np.ones(int(side.sum())), values[side], numbers[side], total)
        for side in (inside, ~inside)
    ]
    value = float(values[inside].mean() - values[~inside].mean())
    if min(part.clusters for part in sides) < FEWEST:
        return Difference(value, None, None, None, None, 0.0, total, TOO_FEW)
    own = [float((part.shares**2).sum()) for part in sides]
    floors = [(1 / (part.freedom + 1)) ** 2 for part in sides]
    variances = [max(pair) for pair in zip(own, floors)]
    together = float(((sides[0].shares - sides[1].shares) ** 2).sum())
    error = math.sqrt(together + sum(variances) - sum(own))
    freedom = welch_freedom(*((v, part.freedom) for v, part in zip(variances, sides)))
    half = t_quantile(freedom, LEVEL / comparisons) * error
    p = 2 * float(special.stdtr(freedom, -abs(value) / max(error, NOISE)))
    low, high = max(-1.0, value - half), min(1.0, value + half)
    corrected = min(1.0, comparisons * p)
    return Difference(value, low, high, p, corrected, error, total, "", freedom)
