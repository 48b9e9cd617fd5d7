"""Cuts by counting (blocks), and at the best separator that makes the pieces small enough (recursive)."""

from __future__ import annotations

import re
from array import array
from collections import deque
from collections.abc import Iterator

Spans = list[tuple[int, int]]

_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
PIECES = {
    "words": re.compile(r"\S+"),
    "tokens": re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|[^\w\s]"),
}
SEPARATORS = ("\n\n", "\n", " ")


def pieces(text: str, unit: str) -> tuple[array[int], array[int]]:
    """Starts and ends of the words or tokens of a text: 16 bytes each, for a text may be long."""
    starts, ends = array("q"), array("q")
    for match in PIECES[unit].finditer(text):
        starts.append(match.start())
        ends.append(match.end())
    return starts, ends


def windows(count: int, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """(first, beyond the last) of windows of ``size`` over ``count`` things.

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
    """At most ``size`` characters each: cut at blank lines; a piece that is too long at newlines; then at
    spaces; then anywhere. Pieces are joined while they fit, the last ones repeated up to ``overlap``
    characters, and white space at both ends is left out.

    Cuts where LangChain's RecursiveCharacterTextSplitter does, whose chunks BARAG indexes (SPEC section 4.2).
    """
    found: Spans = []
    for start, end in _recursive(text, 0, len(text), 0, size, overlap):
        chunk = text[start:end]
        start += len(chunk) - len(chunk.lstrip())
        end -= len(chunk) - len(chunk.rstrip())
        if start < end:
            found.append((start, end))
    return found


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
    """Pieces that begin with ``separator``, but for the first one."""
    at = text.find(separator, start, end)
    while at >= 0:
        if at > start:
            yield start, at
        start = at
        at = text.find(separator, at + len(separator), end)
    if start < end:
        yield start, end


def _joined(small: Spans, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Adjoining pieces, joined while they fit."""
    held: deque[tuple[int, int]] = deque()
    length = 0
    for start, end in small:
        if length + end - start > size and held:
            yield held[0][0], held[-1][1]
            while length > overlap or (length + end - start > size and length > 0):
                first = held.popleft()
                length -= first[1] - first[0]
        held.append((start, end))
        length += end - start
    if held:
        yield held[0][0], held[-1][1]
