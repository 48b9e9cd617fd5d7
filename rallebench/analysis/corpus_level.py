"""Corpus-level scores of several runs, such as corpus BLEU and chrF. They are not means of questions' scores.

Intervals come from resampling articles (Efron 1979; Koehn 2004 for BLEU), with the same resamples for every run. For
each resample, the counts of a metric are summed. With fewer than FEWEST_PAIRED articles there is no interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rallebench.core.comparison import CorpusScore
from rallebench.core.types import Episode, Example
from rallebench.engine.clusters import find_clusters
from rallebench.engine.statistics import FEWEST_PAIRED
from rallebench.metrics import Counted, metric
from rallebench.metrics.scorers import sum_counts

RESAMPLES, PIECE = 1000, 100


def corpus_level(
    name: str,
    examples: Sequence[Example],
    episodes: Sequence[Mapping[str, Episode]],
    *,
    seed: int = 0,
) -> tuple[CorpusScore, ...]:
    """Return one score per run over ``examples``, which every run must have answered and the metric must score; ()
    if the metric has no corpus-level score.
    """
    import numpy as np

    traits = metric(name).traits
    over_all, option = traits.get("over_all"), traits.get("chosen", "")
    if over_all is None:
        return ()
    if not examples:
        return tuple(CorpusScore(None, None, None, 0) for _ in episodes)
    runs = [
        over_all([(answered[e.question.qid], e.gold) for e in examples], option)
        for answered in episodes
    ]
    values = [sum_counts(counted) for counted in runs]
    gaps = [None, *(value - values[0] for value in values[1:])]
    scores = [CorpusScore(v, None, None, len(examples), gap) for v, gap in zip(values, gaps)]
    clusters = find_clusters(examples)
    if clusters.counts.n < FEWEST_PAIRED:
        return tuple(scores)
    weights = _weights(clusters.labels([e.question.qid for e in examples]), seed)
    draws = [_resampled_scores(counted, weights) for counted in runs]
    for number, own in enumerate(draws):
        low, high = map(float, np.percentile(own, [2.5, 97.5]))
        scores[number] = replace(scores[number], low=low, high=high)
        if number:
            low, high = map(float, np.percentile(own - draws[0], [2.5, 97.5]))
            scores[number] = replace(scores[number], difference_low=low, difference_high=high)
    return tuple(scores)


def _weights(labels: Sequence[int], seed: int) -> list[Any]:
    """Return how often each resample draws each question (questions of an article are drawn together), in arrays of
    shape (PIECE, questions).
    """
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


def _resampled_scores(counted: Counted, weights: Sequence[Any]) -> Any:
    """Return the score of every resample, shape (RESAMPLES,)."""
    import numpy as np

    counts, figure = counted
    per_answer = np.array(counts, dtype=np.int64)
    return np.array(
        [figure([int(n) for n in total]) for piece in weights for total in piece @ per_answer]
    )
