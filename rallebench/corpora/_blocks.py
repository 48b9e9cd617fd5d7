"""Chunks of equal size (blocks), and chunks that end at the best separator (recursive)."""

from __future__ import annotations

import re
from array import array
from collections import deque
from collections.abc import Iterable, Iterator

Spans = list[tuple[int, int]]
Piece = tuple[int, int, int]
"""Start, end and length of a piece of a text."""


_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
LONG_WORD = 64
"""Longest word, in characters, that is kept whole when an encoder's tokens are counted."""
PIECES = {
    "words": re.compile(r"\S+"),
    "tokens": re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|[^\w\s]"),
    "short tokens": re.compile(rf"[{_CJK}]|[^\W{_CJK}]{{1,{LONG_WORD}}}|[^\w\s]"),
}
SEPARATORS = ("\n\n", "\n", " ")


def units(text: str, unit: str) -> tuple[array[int], array[int]]:
    """Return the starts and ends of the words or tokens of a text; 16 bytes each."""
    starts, ends = array("q"), array("q")
    for match in PIECES[unit].finditer(text):
        starts.append(match.start())
        ends.append(match.end())
    return starts, ends


def windows(count: int, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield (first, last + 1) of windows of ``size`` over ``count`` items.

    >>> list(windows(5, 3, 1)), list(windows(3, 3, 1)), list(windows(0, 3, 1))
    ([(0, 3), (2, 5)], [(0, 3)], [])
    """
    for first in range(0, count, size - overlap):
        yield first, min(first + size, count)
        if first + size >= count:
            return


def blocks(text: str, size: int, overlap: int, unit: str) -> Spans:
    """Return spans of ``size`` words, tokens or characters; neighbours share ``overlap`` of them."""
    if unit == "characters":
        return list(windows(len(text), size, overlap))
    starts, ends = units(text, unit)
    return [(starts[first], ends[last - 1]) for first, last in windows(len(starts), size, overlap)]


def recursive(text: str, size: int, overlap: int) -> Spans:
    """Return chunks of at most ``size`` characters, split at blank lines; longer pieces at newlines, then at spaces, then anywhere.
    Pieces are joined up to ``size``; the last ones are repeated up to ``overlap`` characters; white space at both ends is
    removed.

    Equal to LangChain's RecursiveCharacterTextSplitter, whose chunks BARAG indexes.
    """
    return strip_spans(text, _recursive(text, 0, len(text), 0, size, overlap))


def strip_spans(text: str, spans: Iterable[tuple[int, int]]) -> Spans:
    """Trim white space from the spans and drop blank ones."""
    chunks = ((start, end, text[start:end]) for start, end in spans)
    ends = (
        (start + len(chunk) - len(chunk.lstrip()), end - len(chunk) + len(chunk.rstrip()))
        for start, end, chunk in chunks
    )
    return [(start, end) for start, end in ends if start < end]


def _recursive(
    text: str, start: int, end: int, level: int, size: int, overlap: int
) -> Iterator[tuple[int, int]]:
    while level < len(SEPARATORS) and text.find(SEPARATORS[level], start, end) < 0:
        level += 1
    if level == len(SEPARATORS):
        for first, last in windows(end - start, size, overlap):
            yield start + first, start + last
        return
    small: list[Piece] = []
    for first, last in _split(text, start, end, SEPARATORS[level]):
        if last - first < size:
            small.append((first, last, last - first))
            continue
        yield from pack_pieces(small, size, overlap)
        small = []
        yield from _recursive(text, first, last, level + 1, size, overlap)
    yield from pack_pieces(small, size, overlap)


def _split(text: str, start: int, end: int, separator: str) -> Iterator[tuple[int, int]]:
    """Yield pieces that begin with ``separator``, except the first."""
    at = text.find(separator, start, end)
    while at >= 0:
        if at > start:
            yield start, at
        start = at
        at = text.find(separator, at + len(separator), end)
    if start < end:
        yield start, end


def pack_pieces(
    pieces: Iterable[Piece], size: int, overlap: int, *, exact: bool = True
) -> Iterator[tuple[int, int]]:
    """Join adjacent pieces up to ``size``. A chunk begins with the last pieces of the previous one, up to ``overlap``;
    ``exact``: repeats only as many as leave room for the next piece, so that only a single long piece can exceed ``size``."""
    chunk: deque[Piece] = deque()
    length = 0
    for piece in pieces:
        if chunk and length + piece[2] > size:
            yield chunk[0][0], chunk[-1][1]
            while length > overlap or (exact and length > 0 and length + piece[2] > size):
                length -= chunk.popleft()[2]
            while chunk and not chunk[0][2]:  # the tail of a token does not count as a token
                chunk.popleft()
        chunk.append(piece)
        length += piece[2]
    if chunk:
        yield chunk[0][0], chunk[-1][1]
