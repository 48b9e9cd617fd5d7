"""Relevance of sentences to the question: similarity of meaning, shared rare words, position.

Text vectors are cached, so that a benchmark that repeats the same passages encodes each sentence
only once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rallebench.core.types import Passage
from rallebench.encoders import Encoder
from rallebench.reader.text import (
    ADVERBS,
    FUNCTION_WORDS,
    Rarity,
    Word,
    clean,
    sentences,
    weight_share,
    words,
)

Vector = NDArray[np.float32]

CAPACITY = 20_000
"""Cached vectors: about 30 MB at 384 dimensions."""

ENCODED = 10
"""Sentences per task that are encoded; the others share too few words with the question."""

NEAREST = 5
"""Sentences per task that a claim is compared with."""

CHUNK = 24
"""Texts of similar length per batch; larger batches are mostly padding on a CPU."""

ROUNDING = 4
"""Decimals of a similarity: batching changes the seventh, and must not change answers."""


class Vectors:
    """Cache of text → unit vector; the least recently used are dropped first.

    Not thread-safe.
    """

    def __init__(self, encoder: Encoder, capacity: int = CAPACITY) -> None:
        self._encoder = encoder
        self._capacity = capacity
        self._known: OrderedDict[str, Vector] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, texts: Iterable[str]) -> dict[str, Vector]:
        """Return the vectors of all distinct texts, encoding those that are not cached."""
        distinct = list(dict.fromkeys(texts))
        vectors = {}
        for text in distinct:
            if text in self._known:
                self._known.move_to_end(text)
                vectors[text] = self._known[text]
        missing = [text for text in distinct if text not in vectors]
        missing.sort(key=len)
        for start in range(0, len(missing), CHUNK):
            texts = missing[start : start + CHUNK]
            encoded = self._encoder.encode([clean(text) for text in texts], role="passage")
            for text, vector in zip(texts, encoded):
                # copied, because a row of the batch would keep the whole batch alive
                vectors[text] = self._known[text] = vector.copy()
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)
        return vectors


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of passage number ``passage`` with its words.

    ``own``: the share of the question's content words in it; ``around``: in it, its title or the
    previous sentence. ``near_text``: the text that is encoded.
    """

    passage: int
    text: str
    title: str
    words: tuple[Word, ...]
    own: float
    around: float

    @property
    def near_text(self) -> str:
        """The sentence, preceded by its title if visible, because 'He was born in Bath' names no subject."""
        return f"{self.title}. {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Ranked:
    """A sentence with its similarity to the question (−1..1) and its score; higher is better."""

    sentence: Sentence
    similarity: float
    score: float


def telling_words(text: str, rarity: Rarity) -> dict[str, float]:
    """Return stem → weight (0..1] of the words that are not function words."""
    weights: dict[str, float] = {}
    for word in words(text):
        weight = rarity(word.low) if word.is_word else 0.0
        if weight > 0:
            weights[word.stem] = max(weights.get(word.stem, 0.0), weight)
    return weights


@lru_cache(maxsize=512)
def _read(text: str) -> tuple[tuple[str, tuple[Word, ...], frozenset[str]], ...]:
    parts = []
    for start, end in sentences(text):
        part = text[start:end]
        tokens = words(part)
        # 'and' is its stem, too, but must not match the Andes
        stems = frozenset(w.stem for w in tokens if w.low not in FUNCTION_WORDS)
        parts.append((part, tokens, stems))
    return tuple(parts)


def lead_name(passage: Passage) -> str:
    """Return the subject of a passage without a visible title: the first name in its first sentence.

    >>> lead_name(Passage("1", "In 1843 Ada Lovelace wrote notes. She was a countess."))
    'Ada Lovelace'
    """
    if passage.title:
        return passage.title
    for text, tokens, _ in _read(passage.text)[:1]:
        named = [is_name(word, initial=i == 0) for i, word in enumerate(tokens)]
        names = [i for i, is_name in enumerate(named[:20]) if is_name]
        if names:
            last = names[0]
            while last + 1 < len(named) and named[last + 1]:
                last += 1
            return text[tokens[names[0]].start : tokens[last].end]
    return ""


def is_name(word: Word, *, initial: bool = False) -> bool:
    """Return whether a word is part of a name. An adverb's capital at the beginning of a sentence does not count."""
    plain = word.low in FUNCTION_WORDS or (initial and word.low in ADVERBS)
    return word.is_word and word.is_capital and not word.is_number and not plain


def choose_candidates(passages: Sequence[Passage], weights: Mapping[str, float]) -> list[Sentence]:
    """Return the ``ENCODED`` sentences that share most with the question, best first."""
    scored: list[tuple[float, Sentence]] = []
    for number, passage in enumerate(passages):
        title = lead_name(passage)
        titled = {w.stem for w in words(title)}
        before: frozenset[str] = frozenset()
        for place, (text, tokens, stems) in enumerate(_read(passage.text)):
            own = weight_share(weights, stems)
            around = weight_share(weights, stems | titled | before)
            # earlier passages and sentences win ties, because the retriever ranked them and first sentences define
            key = own + 0.5 * around - 0.02 * min(number, 10) - 0.001 * place
            scored.append((key, Sentence(number, text, title, tokens, own, around)))
            before = stems
    scored.sort(key=lambda pair: -pair[0])
    return [sentence for _, sentence in scored[:ENCODED]]


def rank(
    question: str, candidates: Sequence[Sentence], vectors: Mapping[str, Vector]
) -> list[Ranked]:
    """Return the ``NEAREST`` best sentences, best first."""
    target = vectors[question]
    ranked = []
    for sentence in candidates:
        similarity = round(float(vectors[sentence.near_text] @ target), ROUNDING)
        score = (
            similarity
            + 0.5 * sentence.own
            + 0.25 * sentence.around
            - 0.02 * min(sentence.passage, 10)
        )
        ranked.append(Ranked(sentence, similarity, score))
    return sorted(ranked, key=lambda r: -r.score)[:NEAREST]
