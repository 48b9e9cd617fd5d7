"""Which documents a question is asked with, and in which order: RGB's rules, word for word.

The random generator is seeded anew for every record, so a record's list does not depend on the others.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rallebench.experiments.papers.rgb.records import RgbRecord

SEED = 2333

Kinded = tuple[str, str]
"""(``positive``, ``negative`` or ``wrong``, the document)."""


@dataclass(frozen=True, slots=True)
class Documents:
    """A record's list. ``short``: it holds fewer documents than were asked for."""

    items: tuple[Kinded, ...]
    short: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The documents as they are sent."""
        return tuple(text for _, text in self.items)

    @property
    def negatives(self) -> int:
        """How many of them are noise."""
        return sum(kind == "negative" for kind, _ in self.items)


def share(number: int, rate: float, original: bool = False) -> int:
    """``number`` × ``rate`` rounded up. In floating point, as in the original, 100 × 0.07 is 7.000000000000001.

    >>> share(5, 0.2), share(5, 0.25), share(100, 0.07), share(100, 0.07, original=True)
    (1, 2, 7, 8)
    """
    return math.ceil(number * rate) if original else math.ceil(number * Fraction(str(rate)))


def base(record: RgbRecord, number: int, noise: float, *, original: bool = False) -> Documents:
    """The first positives and negatives; what lacks of one kind is made up from the other, but never at noise 1."""
    negatives = share(number, noise, original)
    positives = number - negatives
    if noise == 1:
        negatives, positives = number, 0
    elif negatives > len(record.negative):
        negatives = len(record.negative)
        positives = number - negatives
    elif positives > len(record.flat):
        positives = len(record.flat)
        negatives = number - positives
    return _shuffled(
        [*_of("positive", record.flat[:positives]), *_of("negative", record.negative[:negatives])],
        number,
        random.Random(SEED),
    )


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
    groups = []
    for group in record.positive:
        mixed = list(group)
        chance.shuffle(mixed)
        groups.append(mixed)
    deepest = max(map(len, groups), default=0)
    chosen = [group[0] for group in groups if group]
    later = [group[depth] for depth in range(1, deepest) for group in groups if len(group) > depth]
    chosen += later[: max(0, positives - len(chosen))]
    noisy = record.negative[: max(0, number - len(chosen))]
    return _shuffled([*_of("positive", chosen), *_of("negative", noisy)], number, chance)


def counterfactual(
    record: RgbRecord, number: int, noise: float, correct: float, *, original: bool = False
) -> Documents:
    """Wrong copies of some positives, true ones of others, then noise: of no passage are both copies there."""
    if not number:
        return Documents(())
    negatives, trues = share(number, noise, original), share(number, correct, original)
    chance = random.Random(SEED)
    places = list(range(len(record.wrong)))
    # With shares that exceed the whole, the original asks for a negative sample and fails.
    wrong = chance.sample(places, min(len(places), max(0, number - negatives - trues)))
    rest = [place for place in places if place not in wrong]
    right = chance.sample(rest, min(len(rest), trues)) if trues and rest else []
    items = [
        *_of("wrong", [record.wrong[place] for place in wrong]),
        *_of("positive", [record.flat[place] for place in right]),
        *_of("negative", record.negative[:negatives]),
    ]
    return _shuffled(items, number, chance)


def _of(kind: str, texts: Sequence[str]) -> list[Kinded]:
    return [(kind, text) for text in texts]


def _shuffled(items: list[Kinded], number: int, chance: random.Random) -> Documents:
    chance.shuffle(items)
    return Documents(tuple(items), len(items) < number)
