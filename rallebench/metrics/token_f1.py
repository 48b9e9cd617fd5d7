"""Bag-of-words F1 (SQuAD's, as KILT uses it)."""

from __future__ import annotations

from collections import Counter

from rallebench.metrics import METRICS
from rallebench.metrics._reading import answer_of, best
from rallebench.metrics.text import answer_tokens
from rallebench.types import Episode, Gold


@METRICS.register(
    "f1",
    needs="answers",
    higher_is_better=True,
    label="F1",
    unit="fraction",
    range=(0, 1),
    source="KILT, Petroni et al. 2021, arXiv:2009.02252",
    traps="Words are what spaces part, so it says little about Chinese; yes and no are plain words.",
)
def token_f1(episode: Episode, gold: Gold) -> float | None:
    """The harmonic mean of word precision and recall against the best-fitting accepted answer.

    Words are those of the normal form (see EM), counted with their multiplicities. An empty answer
    scores 0; None where the gold has no answers.
    """
    return best(f1_score, answer_of(episode), gold)


def f1_score(answer: str, alias: str) -> float:
    """F1 of the two bags of words; 0.0 if they share none (also if both are empty).

    >>> f1_score("the red red car", "red car")
    0.8
    """
    said, wanted = answer_tokens(answer), answer_tokens(alias)
    common = sum((Counter(said) & Counter(wanted)).values())
    if not common:
        return 0.0
    precision, recall = common / len(said), common / len(wanted)
    return 2 * precision * recall / (precision + recall)
