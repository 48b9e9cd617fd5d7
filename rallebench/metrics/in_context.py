"""Did the retrieved text hold the answer, or name the gold page? Looks at passages, not at page ids."""

from __future__ import annotations

from rallebench.core.answers import normalize_answer, passage_has_answer
from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import retrieved


@METRICS.register_at_k("answer_in_context", label="Answer in context", reads="passages")
def answer_in_context(episode: Episode, gold: Gold, k: int) -> float | None:
    """1 if a normalised accepted answer is a substring of one of the first k normalised passages, else 0.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold has no answers, or nothing was retrieved in the whole run.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Characters, not words: 'art' is in 'party', and an accepted answer 'A' is an article and in everything. Other forms
        of a word in Unicode are other words. Counts passages, not pages; titles are not read.
    """
    return _in_context(episode, k, list(map(normalize_answer, gold.answers)))


@METRICS.register_at_k("answer_in_passage", label="Answer in passage", reads="passages")
def answer_in_passage(episode: Episode, gold: Gold, k: int) -> float | None:
    """1 if the words of an accepted answer stand side by side in one of the first k passages, else 0.

    Normalisation: NFD, lower-case; runs of letters, digits and marks, and every other visible character, are tokens.
    Not scored: the gold has no answers, or nothing was retrieved in the whole run.
    Source: DPR, Karpukhin et al. 2020, arXiv:2004.04906.
    Traps: Whole words in one passage, whether or not it supports the answer; titles are not read. Chinese is not parted
        into words, so an answer is found only between punctuation: there answer_in_context says more.
    """
    if not gold.answers:
        return None
    return float(
        any(passage_has_answer(hit.passage.text, gold.answers) for hit in retrieved(episode)[:k])
    )


@METRICS.register_at_k(
    "entity_in_context", label="Gold title in context", needs="provenance", reads="passages"
)
def entity_in_context(episode: Episode, gold: Gold, k: int) -> float | None:
    """1 if a normalised gold page title is a substring of one of the first k normalised passages, else 0.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold names no titles, or nothing was retrieved in the whole run.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Characters, not words: 'art' is in 'party'. Other forms of a word in Unicode are other words.
        Counts passages, not pages; titles are not read.
    """
    return _in_context(episode, k, _titles(gold))


@METRICS.register_at_k(
    "answer_and_ent_in_context",
    label="Answer and gold title in context",
    needs="answers+provenance",
    reads="passages",
)
def answer_and_entity_in_context(episode: Episode, gold: Gold, k: int) -> float | None:
    """1 if one of the first k normalised passages holds both an accepted answer and a gold title, else 0.

    Normalisation: lower-case, ASCII punctuation deleted, a/an/the dropped, single spaces.
    Not scored: the gold has no answers or names no titles, or nothing was retrieved in the whole run.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Characters, not words: 'art' is in 'party', and an accepted answer 'A' is an article and in everything. Other forms
        of a word in Unicode are other words. Counts passages, not pages; titles are not read.
    """
    return _in_context(episode, k, list(map(normalize_answer, gold.answers)), _titles(gold))


def _in_context(episode: Episode, k: int, *groups: list[str]) -> float | None:
    """1 if one of the first k passages holds a text of each group, else 0; None where a group is empty."""
    if not all(groups):
        return None
    contexts = (normalize_answer(hit.passage.text) for hit in retrieved(episode)[:k])
    return float(any(all(any(t in text for t in g) for g in groups) for text in contexts))


def _titles(gold: Gold) -> list[str]:
    return [title for title in map(normalize_answer, gold.titles.values()) if title]
