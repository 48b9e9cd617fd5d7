"""Reading of episodes by metrics: answer, retrieved pages, and the best score over the accepted answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rallebench.core.declining import declines
from rallebench.core.types import Episode, Gold, Hit, Note, Retrieve


def final_answer(episode: Episode) -> str:
    """Return the final answer, stripped; '' if there is none."""
    return episode.answer.strip()


def retrieved_hits(episode: Episode) -> tuple[Hit, ...]:
    """Return the hits of all retrievals and the opened pages, in order."""
    return tuple(
        hit
        for step in episode.steps
        if isinstance(step.request, (Retrieve, Note))
        for hit in step.reply.hits
    )


def page_ids(episode: Episode) -> tuple[str, ...]:
    """Return the distinct pages of all hits in order of first appearance; passages without a page are ignored."""
    return distinct(hit.passage.page_id.strip() for hit in retrieved_hits(episode))


def passage_ids(episode: Episode) -> tuple[str, ...]:
    """Return the distinct passages of all hits in order of first appearance."""
    return distinct(hit.passage.doc_id.strip() for hit in retrieved_hits(episode))


def distinct(ids: Iterable[str]) -> tuple[str, ...]:
    """Return the ids without '' and repetitions, in order of first appearance.

    >>> distinct(["b", "a", "", "b"])
    ('b', 'a')
    """
    return tuple(dict.fromkeys(i for i in ids if i))


def best(score: Callable[[str, str], float], answer: str, gold: Gold) -> float | None:
    """Return ``max(score(answer, alias))``; 0 for an empty answer, None if there is no accepted answer."""
    if not gold.answers:
        return None
    return max(float(score(answer, alias)) for alias in gold.answers) if answer else 0.0


def best_or_declining(score: Callable[[str, str], float], answer: str, gold: Gold) -> float | None:
    """Return ``best``; for an unanswerable question 1 for an answer that declines, else 0, as in SQuAD 2.0."""
    return float(declines(answer)) if gold.unanswerable else best(score, answer, gold)
