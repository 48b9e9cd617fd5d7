"""What a run records of a question. Predictions of another program say what was answered, or which pages were found,
and nothing of what that cost: what they do not say is not scored, never 0."""

from __future__ import annotations

from typing import Any

from rallebench.core.registry import Entry
from rallebench.core.types import Episode, Note, Retrieve

IMPORTED = "imported"
"""The workflow of a run that was made of a file of predictions."""

_COSTS = ("seconds", "tokens", "tokens/s", "calls")
"""Units of what an answer cost."""
_OF_PASSAGES = ("_in_context", "_in_passage")
"""In the names of metrics that read the text of passages."""


def has_answer(episode: Episode) -> bool:
    """Whether an imported question has an answer, though it may be empty."""
    return any(isinstance(step.request, Note) for step in episode.steps)


def has_pages(episode: Episode) -> bool:
    """Whether an imported question has pages."""
    return any(isinstance(step.request, Retrieve) for step in episode.steps)


def unrecorded(episode: Episode, entry: Entry[Any]) -> str:
    """Why a metric has nothing to judge in an imported question; '' where it has, and for every run of our own."""
    if episode.workflow != IMPORTED or episode.error:
        return ""
    needs = entry.traits.get("needs", "").split("+")
    if entry.traits.get("unit") in _COSTS:
        return "not scored: the predictions do not say what they cost"
    if any(part in entry.name for part in _OF_PASSAGES):
        return "not scored: the predictions hold no passages' text"
    if "provenance" in needs and not has_pages(episode):
        return "not scored: no retrieval is recorded"
    if ("answers" in needs or not needs[0]) and not has_answer(episode):
        return "not scored: no answer is recorded"
    return ""
