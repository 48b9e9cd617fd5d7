"""Means with percentile bootstrap intervals (Efron 1979), all metrics of a run in one go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over ``n`` scored questions with its 95 % interval; None where nothing was scored."""

    value: float | None
    low: float | None
    high: float | None
    n: int


def means(
    columns: Mapping[str, Sequence[float | None]], *, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Mean]:
    """Metric → Mean. Columns have equal length, one entry per question, None = not scored.

    Questions are resampled with replacement, the same resamples for every metric; a resample in
    which a metric has no scored question is left out of its interval.
    """
    import numpy as np

    names = list(columns)
    length = len(columns[names[0]]) if names else 0
    if not length:
        return {name: Mean(None, None, None, 0) for name in names}
    values = np.array([[np.nan if v is None else float(v) for v in columns[name]] for name in names])
    scored = ~np.isnan(values)
    filled = np.where(scored, values, 0.0)
    rng = np.random.default_rng(seed)
    totals, counts = [], []
    for start in range(0, resamples, 200):
        drawn = rng.integers(0, length, size=(min(200, resamples - start), length))
        weights = np.stack([np.bincount(row, minlength=length) for row in drawn]).astype(float)
        totals.append(weights @ filled.T)
        counts.append(weights @ scored.T.astype(float))
    total, count = np.concatenate(totals), np.concatenate(counts)
    found = {}
    for column, name in enumerate(names):
        n = int(scored[column].sum())
        if n == 0:
            found[name] = Mean(None, None, None, 0)
            continue
        usable = count[:, column] > 0
        draws = total[usable, column] / count[usable, column]
        low, high = np.percentile(draws, [2.5, 97.5])
        found[name] = Mean(float(filled[column].sum() / n), float(low), float(high), n)
    return found
