"""Features of a claim beside a passage for the embedded support head: shared words, numbers and names, and their places.

A false claim often shares all its words with its passage, so the features compare where the words stand: a number belongs
to the words near it. English only: the word lists and stems are those of the built-in reader.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rallebench.reader.similarity import is_name
from rallebench.reader.text import FUNCTION_WORDS, QUESTION_WORDS, Word, sentences, words
from rallebench.reader.verdict import NEGATIONS, has_opposites, plain_number

FEATURES = (
    "shared",
    "shared_in_sentence",
    "shared_in_two",
    *(f"{kind}_{what}" for kind in ("numbers", "names") for what in ("missing", "not_near", "far")),
    *("has_numbers", "has_names"),
    *(
        f"{part}_{what}"
        for part in ("sentence", "window", "neighbours")
        for what in ("min", "mean")
    ),
    *(
        f"key_{part}_{what}"
        for part in ("sentence", "window", "neighbours")
        for what in ("min", "mean")
    ),
    *("pairs", "broken_pairs"),
    *("claim_negated", "passage_negated", "opposites"),
    *("rival", "rival_mean", "near_rival", "near_rival_mean", "replaced"),
    *("order", "length", "keys"),
)
"""Names of the features, in the order of ``claim_features``."""
WIDE, NARROW, PAIR = 8, 5, 4
"""Words on either side of a word that count as near; the distance of two neighbouring words of the claim."""
LONG = 20
_NEGATIONS = NEGATIONS - {"only"}


@dataclass(frozen=True, slots=True)
class PassageWords:
    """The words of a passage by place. ``normal``: the normal form of each word, '' for punctuation; ``sentence``: the
    number of its sentence; ``numbers``, ``names``: places of numbers and names; ``held``: normal forms of each sentence."""

    normal: tuple[str, ...]
    sentence: tuple[int, ...]
    numbers: tuple[int, ...]
    names: tuple[int, ...]
    held: tuple[frozenset[str], ...]
    lows: tuple[frozenset[str], ...]
    title: frozenset[str]
    all: frozenset[str]


@dataclass(frozen=True, slots=True)
class ClaimWords:
    """The content words of a claim in order, and its keys: (place in ``content``, True for a number, False for a name)."""

    content: tuple[str, ...]
    keys: tuple[tuple[int, bool], ...]
    lows: frozenset[str]
    negated: bool


@lru_cache(maxsize=4096)
def passage_words(text: str, title: str) -> PassageWords:
    """Return the words of a passage."""
    tokens, cuts = words(text), sentences(text)
    place, number = [], 0
    for token in tokens:
        while number < len(cuts) - 1 and token.start >= cuts[number][1]:
            number += 1
        place.append(number)
    normal = tuple(_normal(token) if token.is_word else "" for token in tokens)
    numbers, names = [], []
    for i, token in enumerate(tokens):
        if _is_number(token):
            numbers.append(i)
        elif is_name(token, initial=i == 0 or tokens[i - 1].text in ".!?"):
            names.append(i)
    count = len(cuts) or 1
    held: list[set[str]] = [set() for _ in range(count)]
    lows: list[set[str]] = [set() for _ in range(count)]
    for token, form, where in zip(tokens, normal, place):
        held[where].add(form)
        lows[where].add(token.low)
    titled = frozenset(token.stem for token in words(title))
    return PassageWords(
        normal,
        tuple(place),
        tuple(numbers),
        tuple(names),
        tuple(map(frozenset, held)),
        tuple(map(frozenset, lows)),
        titled,
        frozenset(normal) | titled,
    )


@lru_cache(maxsize=4096)
def claim_words(text: str) -> ClaimWords:
    """Return the content words of a claim: no function words, question words or negations."""
    tokens = words(text)
    content: list[str] = []
    keys: list[tuple[int, bool]] = []
    for i, token in enumerate(tokens):
        plain = token.low in FUNCTION_WORDS or token.low in QUESTION_WORDS
        if not token.is_word or plain or token.low in _NEGATIONS:
            continue
        if _is_number(token) or is_name(token, initial=i == 0):
            keys.append((len(content), _is_number(token)))
        content.append(_normal(token))
    lows = frozenset(token.low for token in tokens)
    return ClaimWords(tuple(content), tuple(keys), lows, _negated(lows))


def claim_features(claim: str, text: str, title: str) -> list[float]:
    """Return the values of ``FEATURES`` for a claim and a passage.

    >>> values = claim_features("It has 82 moons.", "Saturn has 146 moons and 7 rings.", "Saturn")
    >>> dict(zip(FEATURES, values))["numbers_missing"]
    1.0
    """
    claimed, passage = claim_words(claim), passage_words(text, title)
    near = _Nearness(claimed, passage)
    best = near.best_sentence
    close = passage.held[best] | passage.title
    numbers = {claimed.content[i] for i, number in claimed.keys if number}
    names = {claimed.content[i] for i, number in claimed.keys if not number}
    values = [
        _share(near.distinct & passage.all, near.distinct),
        _share(near.distinct & passage.held[best], near.distinct),
        near.two_sentences(),
    ]
    for kind in (numbers, names):
        values += [
            _share(kind - passage.all, kind),
            _share(kind - close, kind),
            float(min(len(kind - close), 3)),
        ]
    values += [float(bool(numbers)), float(bool(names)), *near.places(), *near.pairs()]
    negated = _negated(passage.lows[best])
    values += [
        float(claimed.negated and not negated),
        float(negated and not claimed.negated),
        float(has_opposites(claimed.lows, passage.lows[best])),
        *near.rivals(close),
        near.order(),
        min(len(near.distinct), LONG) / LONG,
        len(claimed.keys) / (len(near.distinct) or 1),
    ]
    return values


class _Nearness:
    """Places of the words of a claim in a passage."""

    def __init__(self, claimed: ClaimWords, passage: PassageWords) -> None:
        self.claimed, self.passage = claimed, passage
        self.distinct = frozenset(claimed.content)
        self._at = [i for i, form in enumerate(passage.normal) if form in self.distinct]
        self._forms = [passage.normal[i] for i in self._at]
        self._places: dict[str, list[int]] = {}
        for i, form in zip(self._at, self._forms):
            self._places.setdefault(form, []).append(i)
        shares = [len(self.distinct & held) for held in passage.held]
        self.best_sentence = shares.index(max(shares))

    def two_sentences(self) -> float:
        """Return the best share of the claim's words in two consecutive sentences and the title."""
        held, title = self.passage.held, self.passage.title
        pairs = zip(held, (*held[1:], frozenset[str]()))
        return max(_share(self.distinct & (a | b | title), self.distinct) for a, b in pairs)

    def places(self) -> list[float]:
        """Return minimum and mean over the claim's words, then over its keys, of three shares: other words of the claim
        in the same sentence and within ``WIDE`` words, and its neighbours in the claim within ``NARROW`` words."""
        keys = {i for i, _ in self.claimed.keys}
        every: list[tuple[float, float, float]] = []
        of_keys: list[tuple[float, float, float]] = []
        for i, form in enumerate(self.claimed.content):
            if form in self.passage.title and form not in self._places:
                continue
            every.append(self._closeness(i, form))
            if i in keys:
                of_keys.append(every[-1])
        return [*_spread(every, 0.0), *_spread(of_keys, 1.0)]

    def _closeness(self, i: int, form: str) -> tuple[float, float, float]:
        content = self.claimed.content
        titled = self.passage.title - self._places.keys()
        others = self.distinct - {form} - titled
        beside = {*content[max(0, i - 2) : i], *content[i + 1 : i + 3]} - {form}
        same = wide = narrow = 0.0
        for at in self._places.get(form, ()):
            same = max(same, self._in_sentence(at, others))
            wide = max(wide, _share(self._within(at, WIDE) & others, others))
            narrow = max(narrow, _share(self._within(at, NARROW) & beside, beside))
        return same, wide, narrow

    def _in_sentence(self, at: int, others: Collection[str]) -> float:
        held = self.passage.held[self.passage.sentence[at]]
        return _share(held.intersection(others), others)

    def _within(self, at: int, reach: int) -> set[str]:
        """Return the words of the claim within ``reach`` words of a place of the passage."""
        low, high = bisect_left(self._at, at - reach), bisect_left(self._at, at + reach + 1)
        return set(self._forms[low:high])

    def pairs(self) -> list[float]:
        """Return the share of neighbouring words of the claim that are near each other in the passage, and the number
        of the others."""
        content = self.claimed.content
        near = [self._are_near(a, b) for a, b in zip(content, content[1:])]
        return [_share([pair for pair in near if pair], near), float(min(near.count(False), 4))]

    def _are_near(self, left: str, right: str) -> bool:
        places, others = self._places.get(left, ()), self._places.get(right, ())
        return any(0 < abs(i - j) <= PAIR for i in places for j in others)

    def rivals(self, close: Collection[str]) -> list[float]:
        """Return how much nearer to the claim's words than its own numbers and names others of the same kind are: the
        most and the mean, twice; and the number of keys that the best sentence replaces."""
        passage, wide, narrow, replaced = self.passage, [], [], 0
        for i, number in self.claimed.keys:
            form = self.claimed.content[i]
            if form in passage.title and form not in self._places:
                continue
            others = self.distinct - {form}
            kin = passage.numbers if number else passage.names
            rivals = [at for at in kin if passage.normal[at] not in self.distinct]
            own = self._places.get(form, [])
            wide.append(self._nearest(rivals, others) - self._nearest(own, others))
            narrow.append(self._narrow(rivals, others) - self._narrow(own, others))
            here = any(passage.sentence[at] == self.best_sentence for at in rivals)
            replaced += form not in close and here
        shares = [
            value for rows in (wide, narrow) for value in (max(rows, default=0.0), _mean(rows, 0.0))
        ]
        return [*shares, float(min(replaced, 3))]

    def _nearest(self, places: Iterable[int], others: Collection[str]) -> float:
        return max(
            (
                _share(self._within(at, WIDE).intersection(others), others)
                + self._in_sentence(at, others)
                for at in places
            ),
            default=0.0,
        )

    def _narrow(self, places: Iterable[int], others: Collection[str]) -> float:
        shares = (_share(self._within(at, NARROW).intersection(others), others) for at in places)
        return max(shares, default=0.0)

    def order(self) -> float:
        """Return the share of the claim's words that stand in the same order in the best sentence."""
        best = [
            form
            for at, form in zip(self._at, self._forms)
            if self.passage.sentence[at] == self.best_sentence
        ]
        row = [0] * (len(best) + 1)
        for form in self.claimed.content:
            after = [0]
            for j, other in enumerate(best):
                after.append(row[j] + 1 if form == other else max(row[j + 1], after[-1]))
            row = after
        return row[-1] / (len(self.claimed.content) or 1)


def _normal(word: Word) -> str:
    return plain_number(word.low) if word.is_number else word.stem


def _is_number(word: Word) -> bool:
    return word.is_number and word.low != "one"


def _negated(lows: Iterable[str]) -> bool:
    return any(low in _NEGATIONS or re.search("n['’]t$", low) for low in lows)


def _share(part: Collection[object], whole: Collection[object]) -> float:
    return len(part) / (len(whole) or 1)


def _spread(rows: Sequence[tuple[float, float, float]], none: float) -> list[float]:
    columns = list(zip(*rows)) if rows else [(none,)] * 3
    return [value for column in columns for value in (min(column), sum(column) / len(column))]


def _mean(values: Sequence[float], none: float) -> float:
    return sum(values) / len(values) if values else none
