"""Cut documents into passages: by words, by tokens (of the embedded encoder), or by characters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from rallebench.errors import UsageError
from rallebench.types import Passage

Unit = Literal["words", "tokens", "characters"]


@dataclass(frozen=True, slots=True)
class Chunking:
    """``size`` and ``overlap`` in ``unit``s; 0 <= overlap < size. A ``token`` is a word or one
    punctuation mark or one CJK character, so it needs no model."""

    size: int
    overlap: int = 0
    unit: Unit = "words"

    def __post_init__(self) -> None:
        if self.unit not in ("words", "tokens", "characters"):
            raise UsageError(f"The chunk unit {self.unit!r} is not known; use words, tokens or characters.")
        if self.size < 1:
            raise UsageError(f"The chunk size is {self.size}; it must be at least 1.")
        if not 0 <= self.overlap < self.size:
            raise UsageError(
                f"The chunk overlap is {self.overlap}; it must lie between 0 and {self.size - 1}."
            )


_PIECES = {
    "words": re.compile(r"\S+"),
    "tokens": re.compile(
        r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[^\w\s]"
    ),
    "characters": re.compile(r".", re.DOTALL),
}


def spans(text: str, chunking: Chunking) -> list[tuple[int, int]]:
    """Offsets (start, end) of the chunks in ``text``; together they cover every piece.

    >>> spans("one two three four five", Chunking(3, 1))
    [(0, 13), (8, 23)]
    """
    pieces = [match.span() for match in _PIECES[chunking.unit].finditer(text)]
    step = chunking.size - chunking.overlap
    cut: list[tuple[int, int]] = []
    for first in range(0, len(pieces), step):
        window = pieces[first : first + chunking.size]
        cut.append((window[0][0], window[-1][1]))
        if first + chunking.size >= len(pieces):
            break
    return cut


def chunk(documents: Iterable[Passage], chunking: Chunking | None) -> Iterator[Passage]:
    """Yield passages; a document that is cut in several gets ids ``doc#0``, ``doc#1`` …

    Title and page id are kept. None leaves the documents as they are.
    """
    for document in documents:
        cut = spans(document.text, chunking) if chunking else []
        if len(cut) <= 1:
            yield document
            continue
        for n, (start, end) in enumerate(cut):
            yield replace(document, doc_id=f"{document.doc_id}#{n}", text=document.text[start:end])
