"""Successive halving: all variants answer a few articles, the better ones more of them (Jamieson and Talwalkar 2016)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rallebench.core.errors import UsageError
from rallebench.engine.statistics import FEWEST_PAIRED
from rallebench.experiments.improving.parts import Article, list_questions

FEWEST_IN_A_ROUND = 5
"""Articles of a round, if there are enough for as many rounds."""


@dataclass(frozen=True, slots=True)
class Round:
    """``contenders`` variants, and the chain itself, answer the questions of these articles, which no earlier round has."""

    contenders: int
    articles: tuple[Article, ...]

    @property
    def cost(self) -> int:
        """The number of questions asked."""
        return (self.contenders + 1) * len(list_questions(self.articles))


def plan_rounds(
    contenders: int, articles: Sequence[Article], budget: int | None = None
) -> list[Round]:
    """Return the rounds for ``contenders`` variants. Each costs about the same, so later ones ask fewer variants more.

    ``budget``: the most questions of all rounds together; the last articles are then left out. Raises UsageError if it is too
    small for FEWEST_PAIRED articles.
    """
    for count in range(len(articles), FEWEST_PAIRED - 1, -1):
        rounds = _divide(contenders, articles[:count])
        cost = sum(each.cost for each in rounds)
        if budget is None or cost <= budget:
            return rounds
    raise UsageError(
        f"To choose among {contenders} variants takes at least {cost:,} questions, and the budget leaves {max(0, budget or 0):,}; "
        "raise it, or try fewer variants."
    )


def _divide(contenders: int, articles: Sequence[Article]) -> list[Round]:
    most = max(1, len(articles) // FEWEST_IN_A_ROUND)
    number = min(most, max(1, math.ceil(math.log2(contenders))))
    sizes = [math.ceil(contenders ** (1 - i / number) - 1e-9) for i in range(number)]
    weights = [1 / (size + 1) for size in sizes]
    least = min(FEWEST_IN_A_ROUND, len(articles) // number)
    rounds: list[Round] = []
    begin, total = 0, len(list_questions(articles))
    for i, size in enumerate(sizes):
        target = total * sum(weights[: i + 1]) / sum(weights)
        after = (number - i - 1) * least  # articles that the later rounds need
        end = begin + least
        while (
            end < len(articles) - after
            and len(list_questions(articles[: end + 1])) <= target + 1e-9
        ):
            end += 1
        if i == number - 1:
            end = len(articles)
        rounds.append(Round(size, tuple(articles[begin:end])))
        begin = end
    return rounds
