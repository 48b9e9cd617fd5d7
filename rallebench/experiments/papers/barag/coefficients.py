"""How far a judge agrees with given scores: correlations, distance, bias, with bootstrap intervals (SciPy's coefficients)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.engine.statistics import Mean

Array = NDArray[np.float64]
RESAMPLES = 1000
FEWEST = 3
"""Two points always lie on a line."""
NAMES = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "mae": "Mean absolute error",
    "bias": "Bias (judge − given)",
    "exact": "Exactly equal",
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """``n`` pairs; ``unparsed`` answers that the judge gave no score. A coefficient is None where a side is constant or
    there are fewer than three pairs."""

    n: int
    unparsed: int
    pearson: Mean
    spearman: Mean
    mae: Mean
    bias: Mean
    exact: Mean
    mean_given: float | None
    judged: float | None

    @property
    def cells(self) -> tuple[Any, ...]:
        """As a row of a table."""
        means = (getattr(self, name) for name in NAMES)
        return (
            self.n,
            self.unparsed,
            self.mean_given,
            self.judged,
            *(mean if mean.value is not None else None for mean in means),
        )

    def as_json(self) -> dict[str, Any]:
        """For a report."""
        return {name.removeprefix("mean_"): value for name, value in asdict(self).items()}


COLUMNS = ("Pairs", "Unparsed", "Given", "Judged", *NAMES.values())


def agreement_of(
    scores: Sequence[float],
    judged: Sequence[float | None],
    articles: Sequence[str] | None = None,
    *,
    seed: int = 0,
) -> Agreement:
    """Of scores in the same order; None is a judgement that could not be read, which is counted and left out.

    ``articles``: the article of each answer; the intervals resample whole articles, without it answers.

    >>> agreement = agreement_of([1, 2, 4, 5], [1, 3, 4, None])
    >>> agreement.n, agreement.unparsed, *(round(getattr(agreement, name).value, 4) for name in ("mae", "exact", "spearman"))
    (3, 1, 0.3333, 0.6667, 1.0)
    """
    rows = [i for i, score in enumerate(judged) if score is not None]
    x = np.array([scores[i] for i in rows], dtype=np.float64)
    y = np.array([judged[i] for i in rows], dtype=np.float64)
    n = len(rows)
    draws = _draws([articles[i] for i in rows] if articles else list(range(n)), seed)
    measured = {name: _mean(measure, x, y, draws, n) for name, measure in MEASURES.items()}
    return Agreement(
        n,
        len(scores) - n,
        **measured,
        mean_given=float(x.mean()) if n else None,
        judged=float(y.mean()) if n else None,
    )


def _mean(
    measure: Callable[[Array, Array], Array],
    x: Array,
    y: Array,
    draws: Sequence[NDArray[np.int64]],
    n: int,
) -> Mean:
    value = float("nan")
    if n and (n >= FEWEST or measure not in (_pearson, _spearman)):
        value = float(measure(x[None, :], y[None, :])[0])
    if np.isnan(value):
        return Mean(None, None, None, n)
    resampled = np.concatenate([measure(x[rows], y[rows]) for rows in draws])
    resampled = resampled[~np.isnan(resampled)]
    if not len(resampled):
        return Mean(value, value, value, n)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Mean(value, float(low), float(high), n)


def _draws(labels: Sequence[Any], seed: int) -> list[NDArray[np.int64]]:
    """Resamples of whole articles, as arrays of (resamples, answers); those with equally many answers are one array."""
    members: dict[Any, list[int]] = {}
    for row, label in enumerate(labels):
        members.setdefault(label, []).append(row)
    groups = [np.array(rows, dtype=np.int64) for rows in members.values()]
    count = len(groups)
    if not count:
        return [np.zeros((0, 0), dtype=np.int64)]
    draws = np.random.default_rng(seed).integers(0, count, size=(RESAMPLES, count))
    if count == len(labels):
        return [draws]
    by_size: dict[int, list[NDArray[np.int64]]] = {}
    for choice in draws:
        rows = np.concatenate([groups[i] for i in choice])
        by_size.setdefault(len(rows), []).append(rows)
    return [np.stack(resamples) for resamples in by_size.values()]


def _pearson(x: Array, y: Array) -> Array:
    """Row by row; NaN where a side is constant."""
    from scipy.stats import pearsonr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant resamples give NaN, which is left out
        return np.asarray(pearsonr(x, y, axis=1).statistic, dtype=np.float64)


def _spearman(x: Array, y: Array) -> Array:
    """Pearson's of the ranks, ties sharing theirs."""
    from scipy.stats import rankdata

    return _pearson(rankdata(x, axis=1), rankdata(y, axis=1))


MEASURES: Mapping[str, Callable[[Array, Array], Array]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "mae": lambda x, y: np.abs(y - x).mean(axis=1),
    "bias": lambda x, y: (y - x).mean(axis=1),
    "exact": lambda x, y: (y == x).mean(axis=1),
}


def by_given(scores: Sequence[float], judged: Sequence[float | None]) -> dict[float, list[float]]:
    """Given score, rounded to a whole number → the judge's scores of those answers.

    >>> by_given([5, 4.6, 1], [5, 3, None])
    {5.0: [5, 3]}
    """
    by_score: dict[float, list[float]] = {}
    for score, judgement in zip(scores, judged, strict=True):
        if judgement is not None:
            by_score.setdefault(float(int(score + 0.5)), []).append(judgement)
    return dict(sorted(by_score.items()))
