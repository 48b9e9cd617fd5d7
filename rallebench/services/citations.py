"""Find the passages that support each sentence of an answer: quoted, cited by the model, or sharing its words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from rallebench.core.answers import find_answers
from rallebench.core.citing import MARK, marks_inside, parse_numbers
from rallebench.core.text import CJK_CHARACTER, sentences, tokenize
from rallebench.core.types import Hit
from rallebench.reader import sentence_read
from rallebench.reader.text import FUNCTION_WORDS, stem

How = Literal["quoted", "read", "same", "cited", "similar"]

HOW: dict[How, str] = {
    "quoted": "the reader copied these words from it",
    "read": "the reader judged by this sentence",
    "same": "it holds the same words",
    "cited": "the model cites it",
    "similar": "its words are the closest; the model does not cite it",
}
"""Kind of support → its display name."""

MAX_CITED_PASSAGES = 3
"""Maximum number of passages cited for words that all of them contain."""
SUPPORT, LEAST = 2 / 3, 3
"""A passage supports a sentence if it contains this share of the sentence's content words, and at least this many."""
MAX_SENTENCE_CHARACTERS = 400
"""In characters. Longer sentences are not searched for word by word."""

_NAME = re.compile(r"\b[A-Z][^\W\d_]*")


@dataclass(frozen=True, slots=True)
class Citation:
    """``number``: the number of the passage, from 1. ``place``: the supporting span of its text; None for the whole
    text.
    """

    number: int
    how: How
    place: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence of an answer with the white space after it, without the model's citation marks."""

    text: str
    citations: tuple[Citation, ...] = ()


def cite_sentences(
    answer: str, hits: Sequence[Hit], note: str = "", *, copies: bool = False
) -> tuple[CitedSentence, ...]:
    """Split an answer into sentences with their supporting passages, if any. The sentences join to the answer.

    ``note``: the note of the reply. If the reader only copies (``copies``), its note names the sentence it read.
    """
    whole = answer.strip()
    if copies and len(whole) <= MAX_SENTENCE_CHARACTERS and (places := _places(whole, hits)):
        return (CitedSentence(answer, (_read(places, hits, note),)),)
    if copies and (places := _places(sentence_read(note), hits)) and len(sentences(whole)) == 1:
        number, *place = places[0]
        return (CitedSentence(answer, (Citation(number, "read", (place[0], place[1])),)),)
    parts = [_cite_sentence(text, hits) for text in sentences(marks_inside(answer))]
    if not copies:
        return tuple(parts)
    quoted = (
        replace(part, citations=tuple(replace(c, how="quoted") for c in part.citations[:1]))
        if all(citation.how == "same" for citation in part.citations)
        else replace(part, citations=())
        for part in parts
    )
    return tuple(quoted)


def _cite_sentence(text: str, hits: Sequence[Hit]) -> CitedSentence:
    """Return a sentence with its citations."""
    numbers: list[int] = []

    def collect(match: re.Match[str]) -> str:
        named = parse_numbers(match[1])
        if not all(1 <= number <= len(hits) for number in named):
            return match[0]  # the number belongs to no passage
        numbers.extend(named)
        return ""

    plain = MARK.sub(collect, text)
    if numbers:
        places = ((n, _support(plain, hits[n - 1], 1)[1]) for n in dict.fromkeys(numbers))
        return CitedSentence(plain, tuple(Citation(n, "cited", place) for n, place in places))
    core = plain.strip().rstrip(".!?。！？")
    if places_of_words := _places(core, hits) if 1 < len(core) <= MAX_SENTENCE_CHARACTERS else []:
        first = {n: (start, end) for n, start, end in reversed(places_of_words)}
        return CitedSentence(
            plain, tuple(Citation(n, "same", first[n]) for n in sorted(first)[:MAX_CITED_PASSAGES])
        )
    scores = [(*_support(plain, hit), -n) for n, hit in enumerate(hits, 1)]
    score, place, n = max(scores, key=lambda score: (score[0], score[2]), default=(0.0, None, 0))
    return CitedSentence(plain, (Citation(-n, "similar", place),) if score >= SUPPORT else ())


def _places(words: str, hits: Sequence[Hit]) -> list[tuple[int, int, int]]:
    """Return (passage number, start, end) for every occurrence of the words."""
    return [
        (number, start, end)
        for number, hit in enumerate(hits, 1)
        for start, end, _ in find_answers(hit.passage.text, (words,))
    ]


def _read(places: Sequence[tuple[int, int, int]], hits: Sequence[Hit], note: str) -> Citation:
    """Return the span that the reader copied: in the sentence named by its note, otherwise the first occurrence."""
    sentence = sentence_read(note)
    for number, start, end in places:
        around = find_answers(hits[number - 1].passage.text, (sentence,)) if sentence else []
        if any(first <= start and end <= last for first, last, _ in around):
            return Citation(number, "quoted", (start, end))
    number, start, end = places[0]
    return Citation(number, "quoted", (start, end))


@lru_cache(maxsize=4096)  # each sentence is compared with the same passages
def _telling(text: str) -> frozenset[str]:
    """Return the stems of a text's content words; for Chinese, its pairs of characters."""
    words = (word for word in tokenize(text) if word not in FUNCTION_WORDS)
    return frozenset(word if CJK_CHARACTER.match(word) else stem(word) for word in words)


def _support(sentence: str, hit: Hit, least: int = LEAST) -> tuple[float, tuple[int, int] | None]:
    """Return the best share of the sentence's content words found in one or two consecutive sentences of the
    passage, and that span.

    Words of the title count too. The share is 0 if fewer than ``least`` words match, or if a number or name of the
    sentence is missing.
    """
    telling = _telling(sentence)
    names = _telling(" ".join(_NAME.findall(sentence.strip()[1:])))
    needed = {word for word in telling if word in names or any(map(str.isdigit, word))}
    title, parts = _telling(hit.passage.title), sentences(hit.passage.text)
    best: tuple[float, tuple[int, int] | None] = (0.0, None)
    ends = [sum(map(len, parts[: i + 1])) for i in range(len(parts))]
    for count in (1, 2):
        for first in range(len(parts) - count + 1):
            text = "".join(parts[first : first + count])
            held = telling & (_telling(text) | title)
            share = len(held) / len(telling) if telling else 0.0
            if len(held) >= least and needed <= held and share > best[0]:
                start = ends[first] - len(parts[first])
                best = share, (start, start + len(text.rstrip()))
    return best
