"""Exact match after normalisation (SQuAD's, as KILT uses it)."""

from __future__ import annotations

from rallebench.core.answers import normalize_answer
from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import best_or_declining, final_answer


@METRICS.register("em", label="EM", declining=True)
def exact_match(episode: Episode, gold: Gold) -> float | None:
    """1 if the answer equals an accepted answer after normalisation, else 0; the best over all of them.

    An empty answer scores 0.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold has no answers.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Only ASCII punctuation and English articles are dropped; an answer inside a sentence scores 0.
    An accepted answer 'A' is an article and vanishes, so it equals 'The'. Other Unicode forms of a word (NFD, full
    width, a soft hyphen, vowel marks) count as different words.
    """
    return best_or_declining(exact_match_score, final_answer(episode), gold)


def exact_match_score(answer: str, alias: str) -> float:
    """Return 1.0 if both have the same normal form, else 0.0.

    >>> exact_match_score("The Beatles!", "beatles")
    1.0
    """
    return float(normalize_answer(answer) == normalize_answer(alias))
