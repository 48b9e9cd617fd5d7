"""The verdict on one question: right or wrong, the stage at which it was lost, and the rank of the first gold page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rallebench.analysis.waterfall import waterfall
from rallebench.core.types import Episode, Example, Hit, Retrieve
from rallebench.core.waterfall import SHORT
from rallebench.engine.score import score_episode
from rallebench.metrics.recorded import has_retrieval
from rallebench.workspace.coverage import MOST_PASSAGES, corpus_pages
from rallebench.workspace.paths import WorkspaceFolder

DEPTH = 100
"""Depth of the search for the first gold page."""

VerdictKind = Literal["right", "wrong", "lost", "format", "failed", "none"]

STATIONS = ("Retrieved", "In the prompt", "In the answer", "Format")
AT_STAGE: Mapping[str, tuple[VerdictKind, int | None]] = {
    "failed": ("failed", None),
    "not_in_corpus": ("lost", 0),
    "not_retrieved": ("lost", 0),
    "not_found": ("lost", 0),
    "not_given": ("lost", 0),
    "not_in_prompt": ("wrong", 1),
    "not_in_answer": ("wrong", 2),
    "lost_by_format": ("format", 3),
    "right_without_support": ("right", None),
    "right": ("right", None),
}
"""Stage of the waterfall → verdict and the position in the chain at which the question was lost. Other stages have
no gold answer.
"""
UNKNOWN: tuple[VerdictKind, None] = ("none", None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on an episode. ``stage``: stage of the waterfall; ``lost_at``: position in the chain at which it
    was lost, from 0; None if it was not lost. ``em``, ``f1``: None without gold answers, or if the chain gives no
    answer. ``rank``: rank of the first gold page within DEPTH; None if not found or unknown. ``retrieves``: False for
    a closed book.
    """

    kind: VerdictKind
    stage: str
    lost_at: int | None
    em: float | None
    f1: float | None
    rank: int | None = None
    deeper: tuple[Hit, ...] = ()
    retrieves: bool = True

    @property
    def reason(self) -> str:
        """The stage in plain words."""
        return SHORT.get(self.stage, self.stage)


def verdict(
    workspace: WorkspaceFolder, example: Example, episode: Episode, hits: Sequence[Hit]
) -> Verdict:
    """Judge an episode. ``hits``: results of its last search, down to DEPTH; see ``Asking.deeper_hits``."""
    pages = corpus_pages(
        workspace,
        [s.request.retriever for s in episode.steps if isinstance(s.request, Retrieve)],
        at_most=MOST_PASSAGES,
    )
    stage = waterfall((example,), (episode,), pages).placed[0].stage
    em, f1 = (score.value for score in score_episode(episode, example, ("em", "f1")))
    ranks = (n for n, hit in enumerate(hits, 1) if hit.passage.page_id in example.gold.pages)
    kind = verdict_kind(episode.error, em, stage)
    lost_at = AT_STAGE.get(stage, UNKNOWN)[1]
    return Verdict(
        kind, stage, lost_at, em, f1, next(ranks, None), tuple(hits), has_retrieval(episode)
    )


def lost_in_words(stage: str) -> str:
    """Describe the stage at which a chain lost a question; '' if it was not lost or has no gold answer.

    >>> lost_in_words("not_retrieved"), lost_in_words("right")
    ('not retrieved', '')
    """
    lost = AT_STAGE.get(stage, UNKNOWN)[0] in ("failed", "lost", "wrong", "format")
    return SHORT[stage] if lost else ""


def verdict_kind(error: str, em: float | None, stage: str = "") -> VerdictKind:
    """Return the verdict on an answer, from its exact match or else from its stage of the waterfall, if known."""
    if error:
        return "failed"
    if em == 1:
        return "right"
    if stage:
        return AT_STAGE.get(stage, UNKNOWN)[0]
    return "none" if em is None else "wrong"
