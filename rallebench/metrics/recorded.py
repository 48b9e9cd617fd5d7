"""Evidence that a run gives its metrics: answers, a retrieval, the text of passages, costs.

A metric without its evidence is not scored, never 0: a chain that only retrieves has no exact match, one that retrieves
nothing no R-precision. Another program's predictions contain what their file records, and no costs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rallebench.core.registry import Entry
from rallebench.core.types import Episode, Generate, Note, Retrieve, UseTool

IMPORTED = "imported"
"""Workflow of a run that was made from a file of predictions."""

ANSWER, PAGES, PASSAGES, COST = "answer", "pages", "passages", "cost"
"""Values of a metric's trait ``reads``, joined with "+"."""

NO_ANSWER = "no answer is produced: the retrieved passages are the result"
NO_RETRIEVAL = "nothing is retrieved"


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """Evidence in all episodes of a run. ``retrieves``: True if any question retrieved passages."""

    retrieves: bool

    @classmethod
    def of(cls, episodes: Iterable[Episode]) -> RunEvidence:
        """Return the evidence of a run. A question for which an agent did not search counts as one without relevant hits, as long as
        another question of the run retrieved anything.
        """
        return cls(any(has_retrieval(episode) for episode in episodes if not episode.error))


def has_answer(episode: Episode) -> bool:
    """Return whether a question has an answer, even an empty one, written by a model or passed on by an action. Retrieved passages
    that are passed on unchanged do not count.
    """
    if episode.workflow == IMPORTED:
        return any(isinstance(step.request, Note) for step in episode.steps)
    if any(isinstance(step.request, (Generate, UseTool)) for step in episode.steps):
        return True
    if episode.answer.strip():
        return episode.answer not in _texts_of_retrievals(episode)
    if not episode.steps:
        return episode.outcome is None or episode.outcome.stop_reason != "empty_template"
    return any(isinstance(step.request, Note) for step in episode.steps)


def _texts_of_retrievals(episode: Episode) -> set[str]:
    return {step.reply.text for step in episode.steps if isinstance(step.request, Retrieve)}


def has_retrieval(episode: Episode) -> bool:
    """Return whether a question searched, or opened pages; the retriever of the closed book, ``nothing:…``, does not
    count.
    """
    if not episode.steps:
        return episode.outcome is None or episode.outcome.stop_reason != "empty_template"
    return any(
        bool(step.reply.hits)
        or (
            isinstance(step.request, Retrieve)
            and not step.request.retriever.startswith(f"{NOTHING}:")
        )
        for step in episode.steps
    )


NOTHING = "nothing"
"""The combination of retrievers that returns no passage."""


def missing_evidence(episode: Episode, entry: Entry[Any], run: RunEvidence) -> str:
    """Return the reason why a metric cannot judge a question of a ``run``; '' if it can."""
    if episode.error:
        return ""
    reads = entry.traits.get("reads", "").split("+")
    imported = episode.workflow == IMPORTED
    reason = ""
    if imported and COST in reads:
        reason = "the predictions do not record their cost"
    elif imported and PASSAGES in reads:
        reason = "the predictions contain no passage texts"
    elif imported and PAGES in reads and not has_retrieval(episode):
        reason = "no retrieval is recorded"
    elif ANSWER in reads and not has_answer(episode):
        reason = "no answer is recorded" if imported else NO_ANSWER
    elif not run.retrieves and (PAGES in reads or PASSAGES in reads):
        reason = NO_RETRIEVAL
    return f"not scored: {reason}" if reason else ""
