"""Stop strings: every backend ends its text before the first one, even if a server ignores them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rallebench.core.thinking import answer_begins
from rallebench.core.types import Reply


def cut_at(text: str, stops: Iterable[str]) -> tuple[str, bool]:
    """Return the text before the earliest stop string, and whether there is one. Empty stop strings are ignored.

    Thoughts before the answer are not searched.

    >>> cut_at("a b\\nQ: c", ("Q:", "\\n"))
    ('a b', True)
    """
    begin = answer_begins(text)
    places = [place for stop in stops if stop and (place := text.find(stop, begin)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def held_back(text: str, stops: Iterable[str]) -> int:
    """Return the number of characters at the end of ``text`` that may begin a stop string.

    >>> held_back("Paris\\nObs", ["\\nObservation", "s!"])
    4
    """
    sizes = (size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size]))
    return max(sizes, default=0)


def cut_reply(reply: Reply, stops: Sequence[str]) -> Reply:
    """Cut a reply's text at the first stop string; token counts stay the backend's."""
    text, stopped = cut_at(reply.text, stops)
    return replace(reply, text=text, finish_reason="stop") if stopped else reply


def cut_stream(pieces: Iterator[str | Reply], stops: Sequence[str]) -> Iterator[str | Reply]:
    """Cut a stream of text and its Reply at the first stop string.

    Later pieces are read but not yielded, because the token counts come last. A possible beginning of a stop string is
    held back until the next piece.
    """
    if not stops:
        yield from pieces
        return
    written, yielded = "", 0
    for piece in pieces:
        if isinstance(piece, Reply):
            if tail := cut_at(written, stops)[0][yielded:]:
                yield tail
            yield cut_reply(piece, stops)
            return
        written += piece
        text, stopped = cut_at(written, stops)
        ready = len(text) if stopped else len(text) - held_back(text, stops)
        if ready > yielded:
            yield text[yielded:ready]
            yielded = ready
