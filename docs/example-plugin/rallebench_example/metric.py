"""The first word of an answer. The docstring of a metric is its card."""

from __future__ import annotations

from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS


@METRICS.register("first-word", label="First word")
def first_word(episode: Episode, gold: Gold) -> float | None:
    """1 if the answer begins with the first word of an accepted answer, else 0.

    Normalisation: lower-case.
    Not scored: the gold has no answers.
    Source: rallebench, docs/example-plugin.
    Traps: A word with a comma is another word.
    """
    if not gold.answers:
        return None
    return float(begin(episode.answer) in {begin(answer) for answer in gold.answers})


def begin(text: str) -> str:
    return text.lower().partition(" ")[0]
