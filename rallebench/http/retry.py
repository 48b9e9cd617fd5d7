"""Trying again: how often, after which pause, and what the user reads when it was in vain."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TypeVar

from rallebench.core.errors import BackendError
from rallebench.http import Endpoint
from rallebench.http.failures import Failure, unloaded
from rallebench.http.limiter import Seat, Turn

MAX_RETRY_AFTER = 120.0
"""Seconds: a server that asks to wait for longer is reported instead."""

MAX_PAUSE = 60.0
"""Seconds: the longest pause that we choose ourselves."""

T = TypeVar("T")


def attempts(
    once: Callable[[Turn], Iterator[T]],
    given: Endpoint,
    seat: Seat,
    *,
    kind: str = "",
    tokens: float = 0.0,
    at_once: bool = False,
) -> Iterator[T]:
    """What ``once`` yields (it raises Failure); tried again while nothing was handed out and the failure deserves it.

    Every try goes through the gate of ``seat``, as a request of this ``kind`` that takes about so many
    ``tokens``; a pause between tries takes no room there. ``at_once``: see :meth:`Seat.enter`.

    Raises BackendError when it does not, and as soon as the seat is closed.
    """
    tries = 0
    name, closed = seat.name, seat.closed
    while True:
        begun = False
        turn = seat.enter(kind, tokens, at_once)
        try:
            for piece in once(turn):
                begun = True
                yield piece
            turn.answered()
            return
        except Failure as caught:
            failure = caught
            turn.failed(failure)
        finally:
            turn.end()
        if failure.at_once and not begun:
            continue
        tries += 1
        if closed.is_set():  # then every failure comes from that
            raise unloaded(name)
        most = given.max_retries
        allowed = 0 if begun else most if failure.retries is None else min(failure.retries, most)
        if tries > allowed or _is_too_long(failure.pause):
            raise BackendError(_sentence(failure, f"{name!r} at {given.base_url}", tries, begun))
        if closed.wait(_pause(failure, given.backoff, tries)):
            raise unloaded(name)


def _is_too_long(pause: float | None) -> bool:
    return pause is not None and pause > MAX_RETRY_AFTER


def _pause(failure: Failure, backoff: float, tries: int) -> float:
    """Seconds before the next try: what the server asked for, and our own, doubled with every try."""
    ours = min(MAX_PAUSE, backoff * 2.0 ** (tries - 1))
    # Jitter, so that many threads turned away together do not come back together.
    return (failure.pause or 0.0) + ours * random.uniform(0.5, 1.0)


def _sentence(failure: Failure, who: str, tries: int, begun: bool) -> str:
    often = f" (tried {tries} times)" if tries > 1 else ""
    wait = f" and asks to wait {failure.pause:.0f} s" if _is_too_long(failure.pause) else ""
    lost = " What came before is incomplete and was not kept." if begun else ""
    return f"{who} {failure.what}{wait}{often}.{lost} {failure.mend}".rstrip()
