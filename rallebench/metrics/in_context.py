"""Presence of the answer or the gold title in the retrieved text, by passages instead of page ids."""

from __future__ import annotations

from rallebench.core.answers import normalize_answer, passage_has_answer
from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import retrieved_hits


@METRICS.register_at_k("answer_in_context", label="Answer in context", reads="passages")
def answer_in_context(episode: Episode, gold: Gold, k: int) -> float | None:
    """1 if a normalised accepted answer is a substring of one of the first k normalised passages, else 0.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold has no answers, or nothing was retrieved in the whole run.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Characters, not words: 'art' is in 'party', and an accepted answer 'A' is an article and in everything. Other
    Unicode forms of a word count as different words. Counts passages, not pages; titles are not searched.
    """
    return _in_context(episode, k, list(map(normalize_answer, gold.answers)))


@METRICS.register_at_k("answer_in_passage", label="Answer in passage", reads="passages")
def answer_in_passage(episode: Episode, gold: Gold, k: int) -> float | None:
    """1 if the words of an accepted answer stand side by side in one of the first k passages, else 0.

    Normalisation: NFD, lower-case; tokens are runs of letters, digits and marks, and every other visible character.
    Not scored: the gold has no answers, or nothing was retrieved in the whole run.
    Source: DPR, Karpukhin et al. 2020, arXiv:2004.04906.
    Traps: Whole words in one passage, even if it does not support the answer; titles are not searched. Chinese is not split
    into words, so an answer is found only between punctuation; answer_in_context is more useful there.
    """
    if not gold.answers:
        return None
    return float(
        any(
            passage_has_answer(hit.passage.text, gold.answers)
            for hit in retrieved_hits(episode)[:k]
        )
    )


@METRICS.register_at_k(
    "entity_in_context", label="Gold title in context", needs="provenance", reads="passages"
)
def entity_in_context(episode: Episode, gold: Gold, k: int) -> float | None:
    """1 if a normalised gold page title is a substring of one of the first k normalised passages, else 0.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold names no titles, or nothing was retrieved in the whole run.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Characters, not words: 'art' is in 'party'. Other Unicode forms of a word count as different words.
    Counts passages, not pages; titles are not searched.
    """
    return _in_context(episode, k, _titles(gold))


@METRICS.register_at_k(
    "answer_and_ent_in_context",
    label="Answer and gold title in context",
    needs="answers+provenance",
    reads="passages",
)
def answer_and_entity_in_context(episode: Episode, gold: Gold, k: int) -> float | None:
    """1 if one of the first k normalised passages contains both an accepted answer and a gold title, else 0.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold has no answers or names no titles, or nothing was retrieved in the whole run.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Characters, not words: 'art' is in 'party', and an accepted answer 'A' is an article and in everything. Other
    Unicode forms of a word count as different words. Counts passages, not pages; titles are not searched.
    """
    return _in_context(episode, k, list(map(normalize_answer, gold.answers)), _titles(gold))


def _in_context(episode: Episode, k: int, *groups: list[str]) -> float | None:
    """Return 1 if one of the first k passages contains a text of each group, else 0; None if a group is empty."""
    if not all(groups):
        return None
    contexts = (normalize_answer(hit.passage.text) for hit in retrieved_hits(episode)[:k])
    return float(any(all(any(t in text for t in g) for g in groups) for text in contexts))


def _titles(gold: Gold) -> list[str]:
    return [title for title in map(normalize_answer, gold.titles.values()) if title]
