"""RaLLe's has_answer, with both denominators."""

from __future__ import annotations

from rallebench.core.answers import normalize_answer
from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import best_or_declining, final_answer


@METRICS.register("has_answer", label="has_answer", declining=True)
def has_answer(episode: Episode, gold: Gold) -> float | None:
    """1 if the normalised answer contains an accepted one, normalised, else 0; empty answers do not count.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the answer is empty (RaLLe's denominator), or the gold has no answers.
    Source: RaLLe, Hoshi et al. 2023, arXiv:2308.10633.
    Traps: Characters, not words: 'art' is in 'party'. An accepted answer that is an article vanishes and is in everything:
    with the gold 'A' of a multiple-choice question the answer 'C' is right. Other Unicode forms of a word (NFD, full
    width, a soft hyphen, vowel marks) count as different words. Empty answers are left out of the mean, so a system that
    often stays silent looks better; has_answer_all counts them.
    """
    answer = final_answer(episode)
    return best_or_declining(has_answer_score, answer, gold) if answer else None


@METRICS.register("has_answer_all", label="has_answer (all)", declining=True)
def has_answer_all(episode: Episode, gold: Gold) -> float | None:
    """1 if the normalised answer contains an accepted one, normalised, else 0; an empty answer scores 0.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold has no answers.
    Source: RaLLe, Hoshi et al. 2023, arXiv:2308.10633, over all questions.
    Traps: Characters, not words: 'art' is in 'party'. An accepted answer that is an article vanishes and is in everything:
    with the gold 'A' of a multiple-choice question the answer 'C' is right. Other Unicode forms of a word (NFD, full
    width, a soft hyphen, vowel marks) count as different words.
    """
    return best_or_declining(has_answer_score, final_answer(episode), gold)


def has_answer_score(answer: str, alias: str) -> float:
    """Return 1.0 if the alias's normal form is a substring of the answer's.

    >>> has_answer_score("It was a party.", "art")
    1.0
    """
    return float(normalize_answer(alias) in normalize_answer(answer))
