"""Sentences merged to a budget of tokens (CRUD-RAG, arXiv:2401.17043; SPEC section 5.3), Chinese and English.

A token here is a word, a punctuation mark or a CJK character (``_cutting.PIECES``). The original counts
tokens of GPT-3.5's vocabulary, which must be downloaded: for Chinese it counts about one to one and a half a
character, for English about 1.3 a word, so equal sizes hold somewhat more text here.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from rallebench.corpora._cutting import PIECES, Spans, pieces, windows

ABBREVIATION = re.compile(
    r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|cf|No|Fig|Vol|pp|approx|Inc|Ltd|Co|Gen|Col|Lt|Sgt|Rev"
    r"|Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec)|\b(?:e\.g|i\.e|a\.m|p\.m|U\.S|U\.K))\.$"
)
LATIN_END = r"[.!?]+[\"'\u201d\u2019)\]]*(?=\s)"
END = re.compile(rf"[。！？；…]+[”’」』）》]*|{LATIN_END}|\n\s*\n")
ENGLISH_END = re.compile(LATIN_END)
CLAUSE = re.compile(r"[,;:，、；：]+")
LOOK_BACK = 12

PARTS = re.compile(r"[^,.;。？！]+[,.;。？！]?|[,.;。？！]")
"""The original's second rule, which would lose a mark that follows another one; here it is kept."""
PARAGRAPHS, SPACE = re.compile("\n\n\n"), re.compile(" ")
METADATA_TOKENS = 2


def ends_of(
    text: str, end: re.Pattern[str], start: int = 0, stop: int | None = None
) -> Iterator[int]:
    """Where sentences end, but not behind an abbreviation."""
    for match in end.finditer(text, start, len(text) if stop is None else stop):
        if match[0] == "." and ABBREVIATION.search(
            text, max(start, match.end() - LOOK_BACK), match.end()
        ):
            continue
        yield match.end()


def sentences(text: str, size: int, overlap: int) -> Spans:
    """Whole sentences, at most ``size`` tokens together. The next chunk begins with as many of the last
    sentences as have at most ``overlap`` tokens and leave room for one more. A sentence that is too long by
    itself is cut at its commas, else between tokens.

    >>> [text for text in ("A b. C d. E f."[a:b] for a, b in sentences("A b. C d. E f.", 6, 3))]
    ['A b. C d.', 'C d. E f.']
    """
    starts, ends = pieces(text, "tokens")
    atoms: Spans = []  # (first token, beyond the last)
    for first, last in _ranges(
        [bisect_left(starts, at) for at in ends_of(text, END)], 0, len(starts)
    ):
        if last - first <= size:
            atoms.append((first, last))
            continue
        clauses = CLAUSE.finditer(text, starts[first], ends[last - 1])
        for low, high in _ranges(
            [bisect_left(starts, match.end()) for match in clauses], first, last
        ):
            atoms.extend((low + a, low + b) for a, b in windows(high - low, size, 0))
    found: Spans = []
    held: Spans = []
    for atom in atoms:
        if held and atom[1] - held[0][0] > size:
            found.append((held[0][0], held[-1][1]))
            keep = len(held)
            while (
                keep > 0
                and held[-1][1] - held[keep - 1][0] <= overlap
                and atom[1] - held[keep - 1][0] <= size
            ):
                keep -= 1
            held = held[keep:]
        held.append(atom)
    if held:
        found.append((held[0][0], held[-1][1]))
    return [(starts[first], ends[last - 1]) for first, last in found]


def _ranges(cuts: list[int], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The ranges between ``cuts``, those without anything left out."""
    return ((a, b) for a, b in pairwise([first, *cuts, last]) if a < b)


def original_sentences(text: str, size: int, overlap: int, document: str) -> Spans:
    """The cuts of the splitter that CRUD-RAG runs (llama_index 0.9.32's), as far as they can be had offline.

    From ``size`` the tokens of ``file_path: <document>`` and two more are taken away, as there; a text that fits
    is not cut; paragraphs (two blank lines), English sentence ends, commas and full stops, spaces, characters
    are tried in this order; a repeated end may make a chunk longer than its size. To have chunks cross the
    borders of articles, too, read the corpus with the format ``parts``.
    """
    budget = size - len(PIECES["tokens"].findall(f"file_path: {document}")) - METADATA_TOKENS
    budget = max(1, budget)
    starts, _ = pieces(text, "tokens")

    def tokens(start: int, end: int) -> int:
        return bisect_left(starts, end) - bisect_left(starts, start)

    found: Spans = []
    held: list[tuple[int, int, int]] = []  # start, end, tokens
    length = 0
    for start, end in _splits(text, budget, tokens):
        count = tokens(start, end)
        if held and length + count > budget:
            found.append((held[0][0], held[-1][1]))
            last, held, length = held, [], 0
            for piece in reversed(last):
                if length + piece[2] > overlap:
                    break
                held.insert(0, piece)
                length += piece[2]
        held.append((start, end, count))
        length += count
    if held:
        found.append((held[0][0], held[-1][1]))
    return [span for span in (_stripped(text, *span) for span in found) if span[0] < span[1]]


def _splits(text: str, budget: int, tokens: Callable[[int, int], int]) -> Iterator[tuple[int, int]]:
    """Pieces that fit; an explicit stack, for texts are long."""
    stack = [(0, len(text))]
    while stack:
        start, end = stack.pop()
        if tokens(start, end) <= budget or end - start == 1:
            yield start, end
            continue
        cuts = _best_cuts(text, start, end)
        stack.extend((a, b) for a, b in reversed([*pairwise([start, *cuts, end])]) if a < b)


def _best_cuts(text: str, start: int, end: int) -> Iterable[int]:
    """Where the first rule that divides a piece divides it."""
    rules: tuple[Callable[[], Iterable[int]], ...] = (
        lambda: (match.start() for match in PARAGRAPHS.finditer(text, start, end)),
        lambda: ends_of(text, ENGLISH_END, start, end),
        lambda: (match.end() for match in PARTS.finditer(text, start, end)),
        lambda: (match.start() for match in SPACE.finditer(text, start, end)),
    )
    for rule in rules:
        if cuts := [at for at in rule() if start < at < end]:
            return cuts
    return range(start + 1, end)


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    chunk = text[start:end]
    return start + len(chunk) - len(chunk.lstrip()), end - len(chunk) + len(chunk.rstrip())
