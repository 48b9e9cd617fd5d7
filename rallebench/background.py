"""Work that goes on in a thread of its own and that several sessions may follow."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

from rallebench.errors import BackendError, RalleError

log = logging.getLogger(__name__)


class Followed:
    """A load or a build. It says what it does; whoever follows it hears all from the beginning.

    ``stopping`` asks the work to end; it looks when it next says something.
    """

    def __init__(self, failure: str) -> None:
        """``failure``: how the sentence begins if the work fails unexpectedly, as in "x could not be loaded"."""
        self._failure = failure
        self._error: RalleError | None = None
        self._said: list[Any] = []
        self._ended = False
        self._news = threading.Condition()
        self.stopping = False

    @property
    def newest(self) -> Any:
        """What was said last, '' before the first word."""
        return self._said[-1] if self._said else ""

    def start(self, work: Callable[..., None], *args: Any) -> None:
        """Do ``work`` in a daemon thread; its end or error ends the following."""
        threading.Thread(target=self._do, args=(work, args), daemon=True).start()

    def _do(self, work: Callable[..., None], args: tuple[Any, ...]) -> None:
        try:
            work(*args)
        except RalleError as error:
            self._error = error
        except Exception as error:
            log.exception("%s", self._failure)
            self._error = BackendError(f"{self._failure}: {type(error).__name__}: {str(error)[:300]}")
        finally:
            with self._news:
                self._ended = True
                self._news.notify_all()

    def say(self, piece: Any) -> None:
        """Tell all followers."""
        with self._news:
            self._said.append(piece)
            self._news.notify_all()

    def follow(self) -> Iterator[Any]:
        """Yield all that is said; raise the RalleError that ended it."""
        told = 0
        while True:
            with self._news:
                self._news.wait_for(lambda: self._ended or len(self._said) > told)  # noqa: B023
                news, told, ended = self._said[told:], len(self._said), self._ended
            yield from news
            if ended:
                if self._error is not None:
                    raise self._error
                return
