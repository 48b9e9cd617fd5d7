"""The length of an answer."""

from __future__ import annotations

from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import final_answer
from rallebench.metrics.words import count_words


@METRICS.register(
    "length", needs="", higher_is_better=None, label="Length", unit="characters", range=(0, None)
)
def length(episode: Episode, gold: Gold) -> float | None:
    """The number of characters of the answer.

    Normalisation: white space at both ends is removed, white space inside counts.
    Not scored: never; an empty answer has length 0.
    Source: CRUD-RAG, Lyu et al. 2024, arXiv:2401.17043.
    Traps: Unicode code points: a separate accent counts. A Chinese text says more in as many characters.
    """
    return float(len(final_answer(episode)))


@METRICS.register(
    "length_words", needs="", higher_is_better=None, label="Words", unit="words", range=(0, None)
)
def length_words(episode: Episode, gold: Gold) -> float | None:
    """The number of words of the answer, separated by white space, or by jieba if it contains Chinese characters.

    Normalisation: punctuation alone is not counted as a word.
    Not scored: never; an empty answer has no words.
    Source: this project.
    Traps: Thai, Lao, Khmer and Burmese are written without spaces and are not split.
    """
    return float(count_words(final_answer(episode)))
