"""Replies to other programs, as JSON objects with fixed keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from typing_extensions import TypedDict

from rallebench.core.live import heading
from rallebench.core.types import Episode, Hit, Step
from rallebench.services.jobs import Job
from rallebench.views.steps import sent_text

State = Literal["running", "stopping", "finished", "stopped", "failed"]


class HitJson(TypedDict):
    """A retrieved passage. ``rank`` counts from 1; a higher ``score`` is better."""

    rank: int
    doc_id: str
    page_id: str
    title: str
    text: str
    score: float


class StepJson(TypedDict):
    """A step of a chain. ``name``: such as "retrieve docs-bm25"; ``sent``: its query or prompt, exactly as sent."""

    name: str
    sent: str
    reply: str
    hits: list[HitJson]
    seconds: float
    cached: bool


class AnswerJson(TypedDict):
    """The answer to a question, with the steps that led to it."""

    answer: str
    seconds: float
    steps: list[StepJson]


class RunStatusJson(TypedDict):
    """The state of a run. ``share``: from 0 to 1, None while the total is unknown; ``seconds_left``: None while unknown;
    ``error``: the sentence of a failed run, or ''."""

    run: str
    state: State
    done: int
    total: int
    share: float | None
    seconds_left: float | None
    message: str
    error: str


def hits_json(hits: Sequence[Hit]) -> list[HitJson]:
    """Passages in order, best first."""
    return [
        {
            "rank": rank,
            "doc_id": hit.passage.doc_id,
            "page_id": hit.passage.page_id,
            "title": hit.passage.title,
            "text": hit.passage.text,
            "score": float(hit.score),
        }
        for rank, hit in enumerate(hits, 1)
    ]


def answer_json(episode: Episode) -> AnswerJson:
    """The answer and the steps of an episode."""
    return {
        "answer": episode.answer,
        "seconds": sum(step.seconds for step in episode.steps),
        "steps": [_step_json(step) for step in episode.steps],
    }


def _step_json(step: Step) -> StepJson:
    return {
        "name": heading(step.request),
        "sent": sent_text(step),
        "reply": step.reply.text,
        "hits": hits_json(step.reply.hits),
        "seconds": step.seconds,
        "cached": step.cached,
    }


def job_json(job: Job) -> RunStatusJson:
    """The state of a run that is at work, or has failed."""
    standing = job.standing
    return {
        "run": job.name,
        "state": job.status,
        "done": standing.done if standing else 0,
        "total": standing.total if standing else 0,
        "share": standing.share if standing else None,
        "seconds_left": standing.left if standing else None,
        "message": job.message,
        "error": str(job.error) if job.error and job.status == "failed" else "",
    }
