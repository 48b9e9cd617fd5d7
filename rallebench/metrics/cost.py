"""What an answer cost: time and tokens."""

from __future__ import annotations

from rallebench.metrics import METRICS
from rallebench.types import Episode, Gold


@METRICS.register(
    "seconds",
    needs="",
    higher_is_better=False,
    label="Seconds",
    unit="seconds",
    range=(0, None),
    source="measured by the runner",
    traps="The sum over the steps; questions run side by side, so a run's wall time is not n times this. "
    "A remembered reply counts with what it cost when it was really asked.",
)
def seconds(episode: Episode, gold: Gold) -> float | None:
    """The time that the steps of a question took, each with its share of the batch it was asked in."""
    return float(sum(step.seconds for step in episode.steps))


@METRICS.register(
    "prompt_tokens",
    needs="",
    higher_is_better=False,
    label="Prompt tokens",
    unit="tokens",
    range=(0, None),
    source="counted by the backend",
    traps="0 where the backend counts none; tokens of different models are not the same thing.",
)
def prompt_tokens(episode: Episode, gold: Gold) -> float | None:
    """The tokens that were sent to language models for a question, over all steps."""
    return float(sum(step.reply.prompt_tokens for step in episode.steps))


@METRICS.register(
    "completion_tokens",
    needs="",
    higher_is_better=False,
    label="Completion tokens",
    unit="tokens",
    range=(0, None),
    source="counted by the backend",
    traps="0 where the backend counts none; tokens of different models are not the same thing.",
)
def completion_tokens(episode: Episode, gold: Gold) -> float | None:
    """The tokens that language models wrote for a question, over all steps."""
    return float(sum(step.reply.completion_tokens for step in episode.steps))
