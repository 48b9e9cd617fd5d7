"""The verdict on one question: right or wrong, the stage at which it was lost, and the rank of the first gold page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rallebench.analysis.waterfall import waterfall
from rallebench.core.types import Episode, Example, Hit, Retrieve
from rallebench.core.waterfall import AT_STAGE, SHORT, UNKNOWN, VerdictKind, verdict_kind
from rallebench.engine.score import score_episode
from rallebench.metrics.recorded import has_retrieval
from rallebench.workspace.coverage import MOST_PASSAGES, corpus_pages
from rallebench.workspace.paths import WorkspaceFolder

DEPTH = 100
"""Depth of the search for the first gold page."""

STATIONS = ("Retrieved", "In the prompt", "In the answer", "Format")


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
    workspace: WorkspaceFolder,
    example: Example,
    episode: Episode,
    hits: Sequence[Hit],
    dataset: Sequence[Example] = (),
) -> Verdict:
    """Judge an episode. ``hits``: results of its last search, down to DEPTH; see ``Asking.deeper_hits``. ``dataset``: the
    questions whose answers decide, as in a run, whether exact match means anything; () for the question alone.
    """
    pages = corpus_pages(
        workspace,
        [s.request.retriever for s in episode.steps if isinstance(s.request, Retrieve)],
        at_most=MOST_PASSAGES,
    )
    stage = waterfall((*dataset, example), (episode,), pages).placed[0].stage
    return stage_verdict(example, episode, hits, stage)


def stage_verdict(example: Example, episode: Episode, hits: Sequence[Hit], stage: str) -> Verdict:
    """Judge an episode whose ``stage`` in the waterfall is known; ``hits``: as in ``verdict``."""
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
