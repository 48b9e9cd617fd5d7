"""Characters in two halves: JSON writes an emoji as a surrogate pair, and a stream may separate the halves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from rallebench.core.types import Reply

_HALF = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def join_pairs(text: str) -> str:
    """Join every surrogate pair to its character; a single half stays.

    >>> join_pairs("\\ud83d\\ude00 \\ud83d") == "\\U0001f600 \\ud83d"
    True
    """
    if not _PAIR.search(text):
        return text
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def without_halves(text: str) -> str:
    """The text with every surrogate pair joined, and a replacement character for a single half, which UTF-8 cannot encode.

    >>> without_halves("\\ud83d\\ude00 \\ud83d") == "\\U0001f600 \\ufffd"
    True
    """
    if not _HALF.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def pair_stream(pieces: Iterator[str | Reply]) -> Iterator[str | Reply]:
    """A stream that holds back the first half of a character until the second arrives; its reply has whole characters,
    too.

    >>> list(pair_stream(iter(["a\\ud83d", "\\ude00b"]))) == ["a", "\\U0001f600b"]
    True
    """
    half = ""
    for piece in pieces:
        if isinstance(piece, Reply):
            if half:
                yield half
            text = join_pairs(piece.text)
            yield piece if text == piece.text else replace(piece, text=text)
            return
        text = join_pairs(half + piece)
        half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        if ready := text[: len(text) - len(half)]:
            yield ready
    if half:
        yield half
