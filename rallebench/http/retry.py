"""A server: requests that keep to its limits and are tried again, and the error after the last try."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TypeVar

from rallebench.core.errors import BackendError
from rallebench.http.client import Connection
from rallebench.http.endpoint import MAX_PAUSE, Endpoint
from rallebench.http.failures import Failure, unloaded
from rallebench.http.limiter import LONGEST_PAUSE, Permit, limiter_of

T = TypeVar("T")


class Server(Connection):
    """Connections to one server, shared limits, and retries. Thread-safe."""

    def __init__(self, name: str, endpoint: Endpoint, key: str) -> None:
        super().__init__(name, endpoint, key)
        self.limiter = limiter_of(self)

    def close(self) -> None:
        """Break the connections, and wake the threads that wait for a permit or another try."""
        super().close()
        self.limiter.remove(self)

    def attempts(
        self,
        attempt: Callable[[Permit], Iterator[T]],
        tokens: float = 0.0,
        at_once: bool = False,
    ) -> Iterator[T]:
        """Yield from ``attempt``; after a Failure try again, if it is worth it and nothing was yielded before.

        Every attempt takes a permit, for a request of about so many ``tokens``; the pauses between attempts take
        none. ``at_once``: see :meth:`RateLimiter.enter`. Raises BackendError after the last attempt, and once closed.
        """
        tries = 0
        while True:
            begun = False
            permit = self.limiter.enter(self, tokens, at_once)
            try:
                for piece in attempt(permit):
                    begun = True
                    yield piece
                self.limiter.answered(permit)
                return
            except Failure as error:
                failure = error
                self.limiter.failed(permit, failure)
            finally:
                self.limiter.leave()
            if failure.at_once and not begun:
                continue
            tries += 1
            if self.closed.is_set():  # the failure comes from the closing
                raise unloaded(self.name)
            most = self.endpoint.max_retries
            allowed = (
                0 if begun else min(most, most if failure.retries is None else failure.retries)
            )
            if tries > allowed or _is_too_long(failure.pause):
                raise BackendError(self._sentence(failure, tries, begun))
            ours = min(MAX_PAUSE, self.endpoint.backoff * 2.0 ** (tries - 1))
            # Jitter, so that many throttled threads do not come back together.
            if self.closed.wait((failure.pause or 0.0) + ours * random.uniform(0.5, 1.0)):
                raise unloaded(self.name)

    def _sentence(self, failure: Failure, tries: int, begun: bool) -> str:
        often = f" (tried {tries} times)" if tries > 1 else ""
        wait = f" and asks to wait {failure.pause:.0f} s" if _is_too_long(failure.pause) else ""
        lost = " What came before is incomplete and was not kept." if begun else ""
        server = f"{self.name!r} at {self.endpoint.base_url}"
        return f"{server} {failure.what}{wait}{often}.{lost} {failure.mend}".rstrip()


def _is_too_long(pause: float | None) -> bool:
    return pause is not None and pause > LONGEST_PAUSE
