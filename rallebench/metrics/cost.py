"""What an answer cost: time and tokens. Every quantity is defined here, once; the page shows the definitions.

A step is counted with what it cost when it was really asked, also if this time it came from memory.
None means *not known*: a backend that counts no tokens has not worked for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rallebench.core.types import Episode, Generate, Gold, Retrieve, Step
from rallebench.metrics import METRICS

FASTEST = 10_000.0
"""Tokens per second. No model writes one answer faster; what seems to has come in one piece."""


# ── one step ─────────────────────────────────────────────────────────────────


def prompt_tokens_of(step: Step) -> int | None:
    """The tokens a language model was sent; None if it was sent something and the backend counted nothing."""
    if not isinstance(step.request, Generate):
        return 0
    empty = not any(message.content for message in step.request.messages)
    return step.reply.prompt_tokens if step.reply.prompt_tokens or empty else None


def completion_tokens_of(step: Step) -> int | None:
    """The tokens a language model wrote; 0 is believed only of an empty reply whose prompt was counted."""
    if not isinstance(step.request, Generate) or step.reply.completion_tokens:
        return step.reply.completion_tokens
    wrote = bool(step.reply.text or step.reply.tool_calls)
    return None if wrote or not step.reply.prompt_tokens else 0


def first_token_of(step: Step) -> float | None:
    """Seconds from sending a request until its first token came; None where the backend cannot say.

    None also of a request that was answered in a batch: its first token waits for all the others, while the
    seconds of the step are one question's share, so that the first token would come after the end.
    """
    return step.reply.first_token_seconds if step.batch == 1 else None


def writing_seconds(step: Step) -> float | None:
    """The seconds a language model wrote for, which is what tokens per second divide by.

    ``seconds − first token`` where the backend says when the first token came, else ``seconds``. Of a
    batch, ``seconds`` is one question's share, so the same share of the wait is taken off. An answer
    that came in one piece (over 10,000 tokens per second) was not written: then ``seconds``. None
    where no tokens were counted or no time passed.
    """
    tokens, first = completion_tokens_of(step), step.reply.first_token_seconds
    if not isinstance(step.request, Generate) or not tokens or step.seconds <= 0:
        return None
    own = step.seconds - (first or 0.0) / step.batch
    return own if own > 0 and tokens / own <= FASTEST else step.seconds


def speed(steps: Iterable[Step]) -> float | None:
    """Tokens per second over steps: all counted completion tokens / all seconds of writing them."""
    tokens, seconds = 0, 0.0
    for step in steps:
        if took := writing_seconds(step):
            tokens, seconds = tokens + step.reply.completion_tokens, seconds + took
    return tokens / seconds if seconds else None


COST: Mapping[str, Any] = {
    "needs": "",
    "reads": "cost",
    "higher_is_better": False,
    "range": (0, None),
}


# ── one question ─────────────────────────────────────────────────────────────


@METRICS.register("seconds", label="Seconds", unit="seconds", **COST)
def seconds(episode: Episode, gold: Gold) -> float | None:
    """The time that the steps of a question took, each with its share of the batch it was asked in.

    Normalisation: none.
    Not scored: never.
    Source: measured by the runner.
    Traps: "Seconds a question" is its mean over the answered questions, in the list, comparisons, reports and MLflow alike.
    Questions run side by side, so a run's time by the clock is not n times this. A remembered reply counts with what it cost when it was really asked.
    """
    return float(sum(step.seconds for step in episode.steps)) + episode.failed_seconds


@METRICS.register("generation_seconds", label="Generation seconds", unit="seconds", **COST)
def generation_seconds(episode: Episode, gold: Gold) -> float | None:
    """The part of a question's seconds that language models took.

    Normalisation: none.
    Not scored: never.
    Source: measured by the runner.
    Traps: A remembered reply counts with what it cost when it was really asked.
    """
    return float(sum(step.seconds for step in episode.steps if isinstance(step.request, Generate)))


@METRICS.register("retrieval_seconds", label="Retrieval seconds", unit="seconds", **COST)
def retrieval_seconds(episode: Episode, gold: Gold) -> float | None:
    """The part of a question's seconds that retrievers took.

    Normalisation: none.
    Not scored: never.
    Source: measured by the runner.
    Traps: A retriever that re-ranks with a language model spends the model's time here.
    """
    return float(sum(step.seconds for step in episode.steps if isinstance(step.request, Retrieve)))


@METRICS.register("first_token_seconds", label="Seconds to first token", unit="seconds", **COST)
def first_token_seconds(episode: Episode, gold: Gold) -> float | None:
    """From asking the last language model of a question until its first token was there.

    Normalisation: none.
    Not scored: no language model was asked, it answered in a batch, or its backend cannot say: a server
    tells it only while its answer streams.
    Source: measured by the backend, from when this request was sent.
    Traps: A run asks in batches, so most runs have none; Build and Chat ask singly.
    """
    calls = [step for step in episode.steps if isinstance(step.request, Generate)]
    return first_token_of(calls[-1]) if calls else None


@METRICS.register(
    "tokens_per_second",
    label="Tokens per second",
    unit="tokens/s",
    **{**COST, "higher_is_better": True},
)
def tokens_per_second(episode: Episode, gold: Gold) -> float | None:
    """Completion tokens / (seconds − seconds to first token), or / seconds where the first token's are not known.

    See ``writing_seconds`` for batches and for answers that come in one piece.

    Normalisation: none.
    Not scored: no tokens were counted, or no time passed.
    Source: counted by the backend, measured by the runner.
    Traps: Where the first token's time is not known, the time to read the prompt is in it. Of a
    batch it is the speed of the whole batch, not that of one answer alone. Tokens of different
    models are not the same thing.
    """
    return speed(episode.steps)


@METRICS.register("prompt_tokens", label="Prompt tokens", unit="tokens", **COST)
def prompt_tokens(episode: Episode, gold: Gold) -> float | None:
    """The tokens that were sent to language models for a question, over all steps.

    Normalisation: none.
    Not scored: a model was asked and its backend counts none.
    Source: counted by the backend.
    Traps: Tokens of different models are not the same thing.
    """
    return _sum(prompt_tokens_of(step) for step in episode.steps)


@METRICS.register("completion_tokens", label="Completion tokens", unit="tokens", **COST)
def completion_tokens(episode: Episode, gold: Gold) -> float | None:
    """The tokens that language models wrote for a question, over all steps.

    Normalisation: none.
    Not scored: a model was asked and its backend counts none.
    Source: counted by the backend.
    Traps: Tokens of different models are not the same thing.
    """
    return _sum(completion_tokens_of(step) for step in episode.steps)


@METRICS.register("model_calls", label="Model calls", unit="calls", **COST)
def model_calls(episode: Episode, gold: Gold) -> float | None:
    """How often a question asked a language model.

    Normalisation: none.
    Not scored: never.
    Source: counted by the runner.
    Traps: What a retriever asks of a language model for re-ranking is not in it.
    """
    return float(sum(isinstance(step.request, Generate) for step in episode.steps))


@METRICS.register("retrievals", label="Retrievals", unit="calls", **COST)
def retrievals(episode: Episode, gold: Gold) -> float | None:
    """How often a question asked a retriever.

    Normalisation: none.
    Not scored: never.
    Source: counted by the runner.
    Traps: A search that found nothing counts like any other.
    """
    return float(sum(isinstance(step.request, Retrieve) for step in episode.steps))


def _sum(parts: Iterable[int | None]) -> float | None:
    known = list(parts)
    return None if None in known else float(sum(part or 0 for part in known))
