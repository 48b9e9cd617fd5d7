"""Chunks of equal size (blocks), and chunks that end at the best separator (recursive)."""

from __future__ import annotations

import re
from array import array
from collections import deque
from collections.abc import Iterable, Iterator

Spans = list[tuple[int, int]]

_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
PIECES = {"words": re.compile(r"\S+"), "tokens": re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|[^\w\s]")}
SEPARATORS = ("\n\n", "\n", " ")


def pieces(text: str, unit: str) -> tuple[array[int], array[int]]:
    """Starts and ends of the words or tokens of a text, in 16 bytes each."""
    starts, ends = array("q"), array("q")
    for match in PIECES[unit].finditer(text):
        starts.append(match.start())
        ends.append(match.end())
    return starts, ends


def windows(count: int, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """(first, last + 1) of windows of ``size`` over ``count`` items.

    >>> list(windows(5, 3, 1)), list(windows(3, 3, 1)), list(windows(0, 3, 1))
    ([(0, 3), (2, 5)], [(0, 3)], [])
    """
    for first in range(0, count, size - overlap):
        yield first, min(first + size, count)
        if first + size >= count:
            return


def blocks(text: str, size: int, overlap: int, unit: str) -> Spans:
    """Spans of ``size`` words, tokens or characters; neighbours share ``overlap`` of them."""
    if unit == "characters":
        return list(windows(len(text), size, overlap))
    starts, ends = pieces(text, unit)
    return [(starts[first], ends[last - 1]) for first, last in windows(len(starts), size, overlap)]


def recursive(text: str, size: int, overlap: int) -> Spans:
    """Chunks of at most ``size`` characters, split at blank lines; longer pieces at newlines, then at spaces,
    then anywhere. Pieces are joined up to ``size``; the last ones are repeated up to ``overlap`` characters;
    white space at both ends is removed.

    Equal to LangChain's RecursiveCharacterTextSplitter, whose chunks BARAG indexes.
    """
    return stripped(text, _recursive(text, 0, len(text), 0, size, overlap))


def stripped(text: str, spans: Iterable[tuple[int, int]]) -> Spans:
    """The spans without white space at their ends, and without those of white space alone."""
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
    small: Spans = []
    for piece in _split(text, start, end, SEPARATORS[level]):
        if piece[1] - piece[0] < size:
            small.append(piece)
            continue
        yield from _joined(small, size, overlap)
        small = []
        yield from _recursive(text, *piece, level + 1, size, overlap)
    yield from _joined(small, size, overlap)


def _split(text: str, start: int, end: int, separator: str) -> Iterator[tuple[int, int]]:
    """Pieces that begin with ``separator``, except the first."""
    at = text.find(separator, start, end)
    while at >= 0:
        if at > start:
            yield start, at
        start = at
        at = text.find(separator, at + len(separator), end)
    if start < end:
        yield start, end


def _joined(small: Spans, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Adjacent pieces, joined up to ``size``."""
    joined: deque[tuple[int, int]] = deque()
    length = 0
    for start, end in small:
        if length + end - start > size and joined:
            yield joined[0][0], joined[-1][1]
            while length > overlap or (length + end - start > size and length > 0):
                first = joined.popleft()
                length -= first[1] - first[0]
        joined.append((start, end))
        length += end - start
    if joined:
        yield joined[0][0], joined[-1][1]
