"""Figures over all answers at once (corpus BLEU, chrF), which are no means, of several runs.

Their intervals come from resampling articles (Efron 1979; for BLEU Koehn 2004), the same resamples for every run:
what a metric counts in each answer is summed anew. Of a metric that cannot count so there is no interval,
nor where there are fewer than FEWEST_PAIRED articles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rallebench.core.types import Episode, Example
from rallebench.engine.clusters import clusters_of
from rallebench.engine.statistics import FEWEST_PAIRED
from rallebench.metrics import metric

RESAMPLES, PIECE = 1000, 100


@dataclass(frozen=True, slots=True)
class Together:
    """A run's figure over the ``n`` answers that all runs have, and its ``difference`` from the first run's; both
    with 95 % percentile bootstrap intervals. None: no interval, or for the first run no difference."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None


def together(
    name: str,
    examples: Sequence[Example],
    episodes: Sequence[Mapping[str, Episode]],
    *,
    seed: int = 0,
) -> tuple[Together, ...]:
    """One figure per run over ``examples``, which every run has answered and the metric scores; () for a metric
    that has none."""
    import numpy as np

    traits = metric(name).traits
    over_all, counting, chosen = (
        traits.get("over_all"),
        traits.get("over_all_counts"),
        traits.get("chosen", ""),
    )
    if over_all is None:
        return ()
    runs = [[(answered[e.question.qid], e.gold) for e in examples] for answered in episodes]
    if not examples:
        return tuple(Together(None, None, None, 0) for _ in runs)
    values = [over_all(pairs, chosen) for pairs in runs]
    clusters = clusters_of(examples)
    if counting is None or clusters.as_json()["n"] < FEWEST_PAIRED:
        first = values[0]
        gaps = [
            None,
            *(None if value is None or first is None else value - first for value in values[1:]),
        ]
        return tuple(
            Together(value, None, None, len(examples), gap) for value, gap in zip(values, gaps)
        )
    weights = _weights(clusters.labels([e.question.qid for e in examples]), seed)
    drawn = [_drawn(counting(pairs, chosen), weights) for pairs in runs]
    found = []
    for number, (value, draws) in enumerate(zip(values, drawn)):
        low, high = np.percentile(draws, [2.5, 97.5])
        one = Together(value, float(low), float(high), len(examples))
        if number:
            less, more = np.percentile(draws - drawn[0], [2.5, 97.5])
            one = replace(
                one,
                difference=value - values[0],
                difference_low=float(less),
                difference_high=float(more),
            )
        found.append(one)
    return tuple(found)


def _weights(labels: Sequence[int], seed: int) -> list[Any]:
    """How often each question is drawn, with its whole article, resample by resample, in pieces of (PIECE, questions)."""
    import numpy as np

    rng = np.random.default_rng(seed)
    pieces, length = [], max(labels) + 1
    for start in range(0, RESAMPLES, PIECE):
        drawn = rng.integers(0, length, size=(min(PIECE, RESAMPLES - start), length))
        pieces.append(
            np.stack([np.bincount(row, minlength=length) for row in drawn]).astype(np.int32)[
                :, labels
            ]
        )
    return pieces


def _drawn(
    counted: tuple[Sequence[Sequence[int]], Callable[[list[int]], float]], weights: Sequence[Any]
) -> Any:
    """(RESAMPLES,) the figure of every resample."""
    import numpy as np

    counts, score = counted
    each = np.array(counts, dtype=np.int64)
    return np.array([score([int(n) for n in total]) for piece in weights for total in piece @ each])
