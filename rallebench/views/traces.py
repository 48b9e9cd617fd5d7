"""The trace of one question: what was asked and answered step by step, the verdict, and the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rallebench.core.types import Episode, Example, Hit, Retrieve, Score
from rallebench.engine.store import RunFolder
from rallebench.views import run_questions
from rallebench.views.run_questions import TODO
from rallebench.views.support import ShownSupport, answer_support
from rallebench.views.verdicts import Verdict, stage_verdict, verdict
from rallebench.workspace.paths import WorkspaceFolder

SHOWN_ELSEWHERE = frozenset({"em", "f1", "seconds", "prompt_tokens", "completion_tokens"})
"""Metrics that a trace shows as its main numbers."""


@dataclass(frozen=True, slots=True)
class QuestionTrace:
    """``episode``, ``verdict``: None before the question is answered. ``scores``: those besides the main numbers.
    ``support``: of the answer's sentences, by each model that checked them."""

    example: Example
    episode: Episode | None = None
    verdict: Verdict | None = None
    scores: tuple[Score, ...] = ()
    support: tuple[ShownSupport, ...] = ()


def run_trace(workspace: WorkspaceFolder, run: RunFolder, qid: str) -> QuestionTrace:
    """Return the trace of a question of a run. Raises UsageError if the run does not have it."""
    example, episode = run_questions.open_question(workspace, run, qid)
    if episode is None:
        return QuestionTrace(example)
    hits = last_hits(episode)
    stages = (row.stage for row in run_questions.questions(workspace, run) if row.qid == qid)
    stage = next(stages, "")
    if stage and stage != TODO:
        judged = stage_verdict(example, episode, hits, stage)
    else:
        judged = verdict(workspace, example, episode, hits)
    scores = [score for score in run.own_scores(qid) if score.qid == qid]
    return QuestionTrace(
        example, episode, judged, beside_main(scores), answer_support(run, episode)
    )


def variant_trace(
    workspace: WorkspaceFolder,
    example: Example,
    episode: Episode,
    scores: Sequence[Score],
    dataset: Sequence[Example],
) -> QuestionTrace:
    """Return the trace of a variant's answer in the grid over a dataset."""
    judged = verdict(workspace, example, episode, last_hits(episode), dataset)
    return QuestionTrace(example, episode, judged, beside_main(scores))


def last_hits(episode: Episode) -> tuple[Hit, ...]:
    """Return the passages of the last search."""
    searches = [step.reply.hits for step in episode.steps if isinstance(step.request, Retrieve)]
    return searches[-1] if searches else ()


def beside_main(scores: Sequence[Score]) -> tuple[Score, ...]:
    """Return the scores that the main numbers leave out."""
    return tuple(score for score in scores if score.metric not in SHOWN_ELSEWHERE)
