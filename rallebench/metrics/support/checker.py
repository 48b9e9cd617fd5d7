"""Checkers: the probability that passages support a claim, by a model of any kind, with a cache of pairs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rallebench.core.support import AnswerClaim, Premise

CAPACITY = 200_000
"""Cached pairs."""


@dataclass(frozen=True, slots=True)
class SupportPair:
    """A claim and the passages that may support it, taken together."""

    premise: Premise
    claim: AnswerClaim


class Checker(Protocol):
    """A model that says whether passages support a claim. ``threshold``: the least score of a supported claim."""

    name: str
    threshold: float

    def score(self, pairs: Sequence[SupportPair]) -> list[float]:
        """Return the probability of support, 0..1, of each pair, in any batches."""

    def refuses(self, claim: AnswerClaim) -> str:
        """Return one clause that says why a claim cannot be read, '' if it can."""


class CachedChecker:
    """A checker that scores each pair once. The least recently used pairs are dropped first. Thread-safe."""

    def __init__(self, checker: Checker, capacity: int = CAPACITY) -> None:
        self.name, self.threshold = checker.name, checker.threshold
        self._checker, self._capacity = checker, capacity
        self._known: OrderedDict[SupportPair, float] = OrderedDict()
        self._lock = threading.Lock()  # runs that are scored at the same time share a model

    def score(self, pairs: Sequence[SupportPair]) -> list[float]:
        """Return the score of each pair."""
        with self._lock:
            return self._score(pairs)

    def _score(self, pairs: Sequence[SupportPair]) -> list[float]:
        distinct = list(dict.fromkeys(pairs))
        values = {pair: self._known[pair] for pair in distinct if pair in self._known}
        for pair in values:
            self._known.move_to_end(pair)
        missing = [pair for pair in distinct if pair not in values]
        for pair, value in zip(missing, self._checker.score(missing) if missing else ()):
            values[pair] = self._known[pair] = value
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)
        return [values[pair] for pair in pairs]

    def refuses(self, claim: AnswerClaim) -> str:
        """Return why a claim cannot be read, '' if it can."""
        with self._lock:
            return self._checker.refuses(claim)
