"""Answers to be labelled, drawn at random with known chances, so that means over them can be corrected."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from rallebench.core.errors import UsageError
from rallebench.core.labels import AnswerKey, RunAnswer, SampledAnswer

APART_SHARE = 2 / 3
"""Share of a sample that is drawn from the answers on which graders disagree."""


def draw_sample(
    answers: Sequence[RunAnswer], size: int, *, seed: int = 0, apart: Collection[str] = ()
) -> tuple[SampledAnswer, ...]:
    """Draw distinct answers without replacement, in the order in which they are to be labelled. ``apart``: the ids of questions
    on which graders disagree; they get APART_SHARE of the sample, or all of it that they can fill.

    Within each of the two groups every answer has the same chance. Raises UsageError for a sample of no answer.
    """
    if size < 1:
        raise UsageError(f"A sample of {size} answers is empty; draw at least 1.")
    distinct: dict[AnswerKey, RunAnswer] = {}
    for answer in answers:
        distinct.setdefault(answer.key, answer)
    groups = [[x for x in distinct.values() if (x.qid in apart) is side] for side in (True, False)]
    sizes = share_out(min(size, len(distinct)), len(groups[0]), len(groups[1]))
    order = random.Random(seed)
    drawn = [
        SampledAnswer(x.qid, x.key.question, x.key.answer, count / len(group), x.qid in apart)
        for group, count in zip(groups, sizes)
        for x in order.sample(group, count)
    ]
    order.shuffle(drawn)
    return tuple(drawn)


def share_out(size: int, apart: int, together: int) -> tuple[int, int]:
    """Return the numbers of answers to draw from two groups. No group that has answers is left out, so that every answer has a
    chance.

    >>> share_out(30, 100, 100), share_out(30, 5, 100), share_out(30, 0, 100), share_out(2, 50, 50)
    ((20, 10), (5, 25), (0, 30), (1, 1))
    """
    least = min(1, together) if size > 1 or not apart else 0
    first = min(apart, max(round(size * APART_SHARE), size - together), size - least)
    return first, size - first
