"""Retries: their number, the pauses between them, and the error after the last."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TypeVar

from rallebench.core.errors import BackendError
from rallebench.http.endpoint import Endpoint
from rallebench.http.failures import Failure, unloaded
from rallebench.http.limiter import LimiterClient, Permit

MAX_RETRY_AFTER = 120.0
"""Seconds: a server that asks for a longer pause is reported instead."""

MAX_PAUSE = 60.0
"""Seconds: the longest pause of our own choice."""

T = TypeVar("T")


def attempts(
    attempt: Callable[[Permit], Iterator[T]],
    endpoint: Endpoint,
    client: LimiterClient,
    *,
    tokens: float = 0.0,
    at_once: bool = False,
) -> Iterator[T]:
    """Yield from ``attempt``; after a Failure try again, if it is worth it and nothing was yielded before.

    Every attempt takes a permit, for a request of about so many ``tokens``; the pauses between attempts take
    none. ``at_once``: see :meth:`RateLimiter.enter`.

    Raises BackendError after the last attempt, and as soon as the client is closed.
    """
    tries = 0
    name, closed, limiter = client.name, client.closed, client.limiter
    while True:
        begun = False
        permit = limiter.enter(client, tokens, at_once)
        try:
            for piece in attempt(permit):
                begun = True
                yield piece
            limiter.answered(permit)
            return
        except Failure as error:
            failure = error
            limiter.failed(permit, failure)
        finally:
            limiter.leave()
        if failure.at_once and not begun:
            continue
        tries += 1
        if closed.is_set():  # the failure comes from the closing
            raise unloaded(name)
        most = endpoint.max_retries
        allowed = 0 if begun else most if failure.retries is None else min(failure.retries, most)
        if tries > allowed or _is_too_long(failure.pause):
            server = f"{name!r} at {endpoint.base_url}"
            raise BackendError(_sentence(failure, server, tries, begun))
        if closed.wait(_pause(failure, endpoint.backoff, tries)):
            raise unloaded(name)


def _is_too_long(pause: float | None) -> bool:
    return pause is not None and pause > MAX_RETRY_AFTER


def _pause(failure: Failure, backoff: float, tries: int) -> float:
    """Seconds before the next attempt: the server's wish and our own pause, doubled with every attempt."""
    ours = min(MAX_PAUSE, backoff * 2.0 ** (tries - 1))
    # Jitter, so that many throttled threads do not come back together.
    return (failure.pause or 0.0) + ours * random.uniform(0.5, 1.0)


def _sentence(failure: Failure, server: str, tries: int, begun: bool) -> str:
    often = f" (tried {tries} times)" if tries > 1 else ""
    wait = f" and asks to wait {failure.pause:.0f} s" if _is_too_long(failure.pause) else ""
    lost = " What came before is incomplete and was not kept." if begun else ""
    return f"{server} {failure.what}{wait}{often}.{lost} {failure.mend}".rstrip()
