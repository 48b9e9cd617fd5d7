"""Chunks of whole sentences, Chinese and English (CRUD-RAG, arXiv:2401.17043).

A token is a word, a punctuation mark or a CJK character (``_blocks.PIECES``). The original counts tokens of
GPT-3.5's vocabulary, which needs a download: about 1 to 1.5 per Chinese character, about 1.3 per English
word. So a chunk of the same size holds somewhat more text here.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from rallebench.core.text import LATIN_END, SENTENCE_END, find_sentence_ends
from rallebench.corpora._blocks import (
    LONG_WORD,
    PIECES,
    Piece,
    Spans,
    pack_pieces,
    strip_spans,
    units,
    windows,
)

TokenStarts = Callable[[str], Sequence[int]]
"""The first character of each token of a text, in order."""

ENGLISH_END = re.compile(LATIN_END)
CLAUSE = re.compile(r"[,;:，、；：]+")

PARTS = re.compile(r"[^,.;。？！]+[,.;。？！]?|[,.;。？！]")
"""The original's second rule, except that the original drops a mark that follows another."""
PARAGRAPHS, SPACE = re.compile("\n\n\n"), re.compile(" ")
METADATA_TOKENS = 2


def sentences(text: str, size: int, overlap: int) -> Spans:
    """Return chunks of whole sentences, at most ``size`` tokens. A chunk begins with the last sentences of the previous one, up to
    ``overlap`` tokens, if another sentence still fits. A longer sentence is split at its commas, else between tokens.

    >>> [text for text in ("A b. C d. E f."[a:b] for a, b in sentences("A b. C d. E f.", 6, 3))]
    ['A b. C d.', 'C d. E f.']
    """
    starts, ends = units(text, "tokens")
    atoms: Spans = []  # (first token, last token + 1)
    sentence_ends = [bisect_left(starts, at) for at in find_sentence_ends(text, SENTENCE_END)]
    for first, last in _ranges(sentence_ends, 0, len(starts)):
        if last - first <= size:
            atoms.append((first, last))
            continue
        clauses = CLAUSE.finditer(text, starts[first], ends[last - 1])
        clause_ends = [bisect_left(starts, match.end()) for match in clauses]
        for low, high in _ranges(clause_ends, first, last):
            atoms.extend((low + a, low + b) for a, b in windows(high - low, size, 0))
    pieces = ((first, last, last - first) for first, last in atoms)
    return [(starts[first], ends[last - 1]) for first, last in pack_pieces(pieces, size, overlap)]


def encoder_sentences(text: str, size: int, overlap: int, token_starts: TokenStarts) -> Spans:
    """Return ``sentences``, counted in the tokens of an encoder; words of up to 64 characters are never cut.

    >>> def letters(text): return [place for place, letter in enumerate(text) if letter.isalpha()]
    >>> [text for text in ("Ab c. De f. Gh." [a:b] for a, b in encoder_sentences("Ab c. De f. Gh.", 5, 2, letters))]
    ['Ab c.', 'De f. Gh.']
    """
    starts, ends = units(text, "short tokens")
    weights = _weights(text, starts, ends, token_starts)
    before = [0, *accumulate(weights)]
    sentence_ends = [bisect_left(starts, at) for at in find_sentence_ends(text, SENTENCE_END)]
    pieces: list[Piece] = []
    for first, last in _ranges(sentence_ends, 0, len(starts)):
        if before[last] - before[first] <= size:
            pieces.append((first, last, before[last] - before[first]))
            continue
        clauses = CLAUSE.finditer(text, starts[first], ends[last - 1])
        clause_ends = [bisect_left(starts, match.end()) for match in clauses]
        for low, high in _ranges(clause_ends, first, last):
            words = ((place, place + 1, weights[place]) for place in range(low, high))
            pieces.extend((a, b, before[b] - before[a]) for a, b in pack_pieces(words, size, 0))
    return [(starts[first], ends[last - 1]) for first, last in pack_pieces(pieces, size, overlap)]


def _weights(
    text: str, starts: Sequence[int], ends: Sequence[int], token_starts: TokenStarts
) -> list[int]:
    """Count the tokens that begin in each piece of a text. Encoders read a very long word, or long text without spaces, as one
    unknown token, but not its parts; so each of its characters counts.
    """
    weights = [0] * len(starts)
    place = 0
    for at in token_starts(text) if weights else ():
        before = place
        while place + 1 < len(starts) and starts[place + 1] <= at:
            place += 1
        _weigh_unknown(weights, starts, ends, before, place)
        weights[place] += 1
    _weigh_unknown(weights, starts, ends, place, len(starts))
    long_word_end = -1
    for place, (start, end) in enumerate(zip(starts, ends)):
        if end - start == LONG_WORD or start == long_word_end:
            weights[place] = end - start
            long_word_end = end
    return weights


def _weigh_unknown(
    weights: list[int], starts: Sequence[int], ends: Sequence[int], first: int, last: int
) -> None:
    """Count the characters of the pieces ``first`` … ``last - 1`` if together they are one token longer than a word."""
    if last - first > 1 and ends[last - 1] - starts[first] > LONG_WORD:
        for place in range(first, last):
            weights[place] = max(weights[place], ends[place] - starts[place])


def _ranges(cuts: list[int], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the non-empty ranges between ``cuts``."""
    return ((a, b) for a, b in pairwise([first, *cuts, last]) if a < b)


def original_sentences(text: str, size: int, overlap: int, document: str) -> Spans:
    """Return the chunks of CRUD-RAG's splitter (llama_index 0.9.32), as closely as possible offline.

    ``size`` is reduced by the tokens of ``file_path: <document>`` and two more; a text within it stays whole. Splitting
    rules, in order: paragraphs (two blank lines), English sentence ends, commas and full stops, spaces, characters. The
    overlap may make a chunk longer than ``size``. For chunks across articles, read the corpus with the format ``parts``.
    """
    budget = size - len(PIECES["tokens"].findall(f"file_path: {document}")) - METADATA_TOKENS
    budget = max(1, budget)
    starts, _ = units(text, "tokens")

    def tokens(start: int, end: int) -> int:
        return bisect_left(starts, end) - bisect_left(starts, start)

    splits = _splits(text, budget, tokens)
    pieces: Iterator[Piece] = ((start, end, tokens(start, end)) for start, end in splits)
    return strip_spans(text, pack_pieces(pieces, budget, overlap, exact=False))


def _splits(text: str, budget: int, tokens: Callable[[int, int], int]) -> Iterator[tuple[int, int]]:
    """Yield pieces within ``budget``; uses an explicit stack, because texts are long."""
    stack = [(0, len(text))]
    while stack:
        start, end = stack.pop()
        if tokens(start, end) <= budget or end - start == 1:
            yield start, end
            continue
        cuts = _best_cuts(text, start, end)
        stack.extend((a, b) for a, b in reversed([*pairwise([start, *cuts, end])]) if a < b)


def _best_cuts(text: str, start: int, end: int) -> Iterable[int]:
    """Return the cuts of the first rule that divides the piece."""
    rules: tuple[Callable[[], Iterable[int]], ...] = (
        lambda: (match.start() for match in PARAGRAPHS.finditer(text, start, end)),
        lambda: find_sentence_ends(text, ENGLISH_END, start, end),
        lambda: (match.end() for match in PARTS.finditer(text, start, end)),
        lambda: (match.start() for match in SPACE.finditer(text, start, end)),
    )
    for rule in rules:
        if cuts := [at for at in rule() if start < at < end]:
            return cuts
    return range(start + 1, end)
