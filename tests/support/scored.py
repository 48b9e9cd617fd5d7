"""Registered metrics over pairs of an episode and its gold, without a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rallebench.core.scoring import Pair
from rallebench.core.types import Episode, Example, Gold, Question
from rallebench.engine.score import ScoreSeries, score_metrics


def score(names: Sequence[str], pairs: Iterable[tuple[Episode, Gold]]) -> dict[str, ScoreSeries]:
    """Return canonical name → scores of the pairs, in their order."""
    return score_metrics(names, [Pair(Example(Question(e.qid, ""), gold), e) for e, gold in pairs])
