"""How a metric reads an episode: its answer, the pages it found, the best over the accepted answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rallebench.core.types import Episode, Gold, Hit, Note, Retrieve


def answer_of(episode: Episode) -> str:
    """The final answer, stripped; '' if there is none."""
    return episode.answer.strip()


def retrieved(episode: Episode) -> tuple[Hit, ...]:
    """The hits of all retrievals and the pages that were opened, in order."""
    return tuple(
        hit
        for step in episode.steps
        if isinstance(step.request, (Retrieve, Note))
        for hit in step.reply.hits
    )


def page_ids(episode: Episode) -> tuple[str, ...]:
    """The distinct pages of all hits in order of first appearance; a passage without a page is ignored."""
    return distinct(hit.passage.page_id.strip() for hit in retrieved(episode))


def passage_ids(episode: Episode) -> tuple[str, ...]:
    """The distinct passages of all hits in order of first appearance."""
    return distinct(hit.passage.doc_id.strip() for hit in retrieved(episode))


def distinct(ids: Iterable[str]) -> tuple[str, ...]:
    """The ids without '' and repetitions, in order of first appearance.

    >>> distinct(["b", "a", "", "b"])
    ('b', 'a')
    """
    return tuple(dict.fromkeys(i for i in ids if i))


def best(score: Callable[[str, str], float], answer: str, gold: Gold) -> float | None:
    """``max(score(answer, alias))``; 0 for an empty answer, None where the gold accepts nothing."""
    if not gold.answers:
        return None
    return max(float(score(answer, alias)) for alias in gold.answers) if answer else 0.0
