"""Tasks to measure a reader with: a question with its paragraph among others, and without it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rallebench.core.answers import f1_score
from rallebench.core.types import Passage
from rallebench.encoders import Encoder
from rallebench.metrics.exact_match import exact_match_score
from rallebench.reader import ReaderAnswer, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ParagraphQuestion:
    """A question, its accepted answers, and the number of the paragraph that holds one."""

    question: str
    answers: tuple[str, ...]
    gold: int


def rankings(
    questions: Sequence[ParagraphQuestion], paragraphs: Sequence[str], encoder: Encoder
) -> NDArray[np.int64]:
    """(questions, paragraphs): the paragraphs by falling similarity to each question."""
    import numpy as np

    passages = encoder.encode(list(paragraphs), role="passage")
    queries = encoder.encode([a.question for a in questions], role="query")
    order: NDArray[np.int64] = np.argsort(-np.round(queries @ passages.T, 5), axis=1, kind="stable")
    return order


def task_of(question: ParagraphQuestion, numbers: Iterable[int], paragraphs: Sequence[str]) -> Task:
    """A short task over the paragraphs of these numbers."""
    passages = tuple(Passage(str(number), paragraphs[number]) for number in numbers)
    return Task("short", question.question, passages)


def with_gold(
    question: ParagraphQuestion, ranking: Sequence[int], rng: random.Random, count: int = 5
) -> list[int]:
    """The gold paragraph and the ``count`` − 1 most similar others, shuffled."""
    numbers = [question.gold, *[int(n) for n in ranking if n != question.gold][: count - 1]]
    rng.shuffle(numbers)
    return numbers


def without_gold(
    question: ParagraphQuestion, ranking: Sequence[int], paragraphs: Sequence[str], count: int = 5
) -> list[int]:
    """The ``count`` most similar paragraphs that hold no accepted answer."""
    answers = [answer.lower() for answer in question.answers]
    return [
        int(n)
        for n in ranking
        if n != question.gold and not any(answer in paragraphs[n].lower() for answer in answers)
    ][:count]


def score(answer: ReaderAnswer | str, answers: Sequence[str]) -> tuple[float, float]:
    """(exact match, token F1), each the best over the accepted answers."""
    text = answer if isinstance(answer, str) else answer.text
    return max(exact_match_score(text, a) for a in answers), max(f1_score(text, a) for a in answers)


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """The chance that a positive scores above a negative, ties counting half.

    >>> auroc([0.9, 0.8, 0.3], [0.1, 0.3])
    0.9166666666666666
    """
    import numpy as np

    low = np.sort(np.asarray(negative))
    below = np.searchsorted(low, positive, "left")
    up_to = np.searchsorted(low, positive, "right")
    return float((below + up_to).mean() / 2 / len(low))


def sampled(rows: Sequence[Any], count: int, seed: int) -> list[Any]:
    """At most ``count`` rows drawn without repetition, in their order."""
    if len(rows) <= count:
        return list(rows)
    places = sorted(random.Random(seed).sample(range(len(rows)), count))
    return [rows[i] for i in places]
