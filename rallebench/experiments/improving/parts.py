"""The articles of a dataset in three parts: to learn from, to choose with, and to prove with."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from rallebench.core.errors import UsageError
from rallebench.core.types import Example
from rallebench.engine.clusters import list_articles
from rallebench.engine.statistics import FEWEST_PAIRED

Article = tuple[Example, ...]
FEWEST_TRAIN = 2


@dataclass(frozen=True, slots=True)
class Parts:
    """Articles without a question in common. ``train``: may be quoted in prompts; ``choose``: variants compete on them;
    ``confirm``: only the best variant and the chain itself answer them."""

    train: tuple[Article, ...]
    choose: tuple[Article, ...]
    confirm: tuple[Article, ...]

    @property
    def held_out(self) -> list[Example]:
        """The questions that no prompt may quote."""
        return list_questions((*self.choose, *self.confirm))


def list_questions(articles: Iterable[Article]) -> list[Example]:
    """Return the questions of some articles, in their order."""
    return list(chain.from_iterable(articles))


def split_articles(
    examples: Sequence[Example], seed: int, train: float = 0.2, confirm: float = 0.4
) -> Parts:
    """Draw the parts by ``seed``, whole articles each. ``train``, ``confirm``: their shares of the articles; the rest is to
    choose with. The order within a part is random, too.

    Raises UsageError for too few articles.
    """
    articles = [tuple(article) for article in list_articles(examples)]
    random.Random(seed).shuffle(articles)
    count = len(articles)
    first = max(FEWEST_TRAIN, round(train * count))
    last = max(FEWEST_PAIRED, round(confirm * count))
    if count - first - last < FEWEST_PAIRED:
        least = FEWEST_TRAIN + 2 * FEWEST_PAIRED
        mend = (
            f"it takes at least {least}: {FEWEST_TRAIN} to learn from, {FEWEST_PAIRED} to choose with and {FEWEST_PAIRED} for the "
            "proof. Use more questions."
        )
        if count >= least:
            mend = f"{first} to learn from and {last} for the proof leave fewer than {FEWEST_PAIRED} to choose with; lower these shares."
        raise UsageError(f"The questions are about {count} articles; {mend}")
    return Parts(
        tuple(articles[:first]), tuple(articles[first : count - last]), tuple(articles[-last:])
    )
