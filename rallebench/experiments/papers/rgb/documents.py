"""Which documents a question is asked with, and in which order: RGB's rules, word for word.

The random generator is seeded anew for every record, so a record's list does not depend on the others.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from rallebench.experiments.papers.rgb.records import RgbRecord

SEED = 2333


@dataclass(frozen=True, slots=True)
class Documents:
    """A record's list of (``positive``, ``negative`` or ``wrong``, the document). ``short``: it holds fewer documents than
    were asked for."""

    items: tuple[tuple[str, str], ...]
    short: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The documents as they are sent."""
        return tuple(text for _, text in self.items)

    @property
    def negatives(self) -> int:
        """The number of noise documents."""
        return sum(kind == "negative" for kind, _ in self.items)


def share(number: int, rate: float, original: bool = False) -> int:
    """``number`` × ``rate`` rounded up. In floating point, as in the original, 100 × 0.07 is 7.000000000000001.

    >>> share(5, 0.2), share(5, 0.25), share(100, 0.07), share(100, 0.07, original=True)
    (1, 2, 7, 8)
    """
    return math.ceil(number * rate) if original else math.ceil(number * Fraction(str(rate)))


def base(record: RgbRecord, number: int, noise: float, *, original: bool = False) -> Documents:
    """The first positives and negatives. Where one kind is too few the other fills up, but never at noise 1."""
    negatives = share(number, noise, original)
    if noise == 1:
        negatives = number
    elif negatives > len(record.negative):
        negatives = len(record.negative)
    else:
        negatives = max(negatives, number - len(record.flat))
    positives = number - negatives
    kinds = {"positive": record.flat[:positives], "negative": record.negative[:negatives]}
    return _shuffled(kinds, number, random.Random(SEED))


def integration(
    record: RgbRecord, number: int, noise: float, *, original: bool = False
) -> Documents:
    """One positive of every group, also where that is more than asked; then second ones, third ones …, then noise.

    Groups without a document, which the original fails on, are passed over.
    """
    if not number:
        return Documents(())
    positives = number - share(number, noise, original)
    chance = random.Random(SEED)
    groups = [list(group) for group in record.positive]
    for group in groups:
        chance.shuffle(group)
    deepest = max(map(len, groups), default=0)
    chosen = [group[0] for group in groups if group]
    later = [group[depth] for depth in range(1, deepest) for group in groups if len(group) > depth]
    chosen += later[: max(0, positives - len(chosen))]
    noisy = record.negative[: max(0, number - len(chosen))]
    return _shuffled({"positive": chosen, "negative": noisy}, number, chance)


def counterfactual(
    record: RgbRecord, number: int, noise: float, correct: float, *, original: bool = False
) -> Documents:
    """Wrong copies of some positives, true ones of others, then noise; never both copies of one passage."""
    if not number:
        return Documents(())
    negatives, trues = share(number, noise, original), share(number, correct, original)
    chance = random.Random(SEED)
    places = list(range(len(record.wrong)))
    # With shares that exceed the whole, the original asks for a negative sample and fails.
    wrong = chance.sample(places, min(len(places), max(0, number - negatives - trues)))
    rest = [place for place in places if place not in wrong]
    right = chance.sample(rest, min(len(rest), trues)) if trues and rest else []
    kinds = {
        "wrong": [record.wrong[place] for place in wrong],
        "positive": [record.flat[place] for place in right],
        "negative": record.negative[:negatives],
    }
    return _shuffled(kinds, number, chance)


def _shuffled(
    texts_by_kind: Mapping[str, Iterable[str]], number: int, chance: random.Random
) -> Documents:
    items = [(kind, text) for kind, texts in texts_by_kind.items() for text in texts]
    chance.shuffle(items)
    return Documents(tuple(items), len(items) < number)
