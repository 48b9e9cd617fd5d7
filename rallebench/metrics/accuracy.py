"""KILT's accuracy: strict string equality."""

from __future__ import annotations

from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import best_or_declining, final_answer


@METRICS.register("accuracy", label="Accuracy", declining=True)
def accuracy(episode: Episode, gold: Gold) -> float | None:
    """1 if the stripped answer equals an accepted answer character by character, else 0.

    An empty answer scores 0.

    Normalisation: only white space at both ends is removed.
    Not scored: the gold has no answers.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Case, punctuation and articles all count: 'supports' is not 'SUPPORTS'.
    """
    return best_or_declining(lambda answer, alias: answer == alias, final_answer(episode), gold)
