"""Work that goes on in a thread of its own and that several sessions may follow."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

from rallebench.core.errors import BackendError, RalleError, StoppedError, UsageError
from rallebench.core.events import Operation

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
            self._error = self.unexpected(error)
        finally:
            with self._news:
                self._ended = True
                self._news.notify_all()

    def unexpected(self, error: Exception) -> BackendError:
        """What followers are told of an error that nobody thought of."""
        return BackendError(f"{self._failure}: {type(error).__name__}: {str(error)[:300]}")

    def said(self) -> list[Any]:
        """All that was said so far."""
        with self._news:
            return list(self._said)

    def say(self, piece: Any) -> None:
        """Tell all followers."""
        with self._news:
            self._said.append(piece)
            self._news.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait for the end, at most so many seconds; whether it has come."""
        with self._news:
            return self._news.wait_for(lambda: self._ended, seconds)

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


def streamed(operation: Operation[Any]) -> Generator[Any, None, None]:
    """The events of an operation, then its result."""
    yield (yield from operation)


class Works:
    """Named work of one sort, each in a thread of its own: builds of indexes, for instance.

    Whoever asks for work that goes on already follows it; other work under its name is refused.
    """

    def __init__(self, noun: str, result: type) -> None:
        """``noun``: what one piece of work is called in sentences, as in "build"; ``result``: what it says last."""
        self._noun, self._result = noun, result
        self._going: dict[str, tuple[Any, Followed]] = {}
        self._ended: dict[str, Any] = {}
        self._lock = threading.Lock()

    def follow(
        self, name: str, what: Any, make: Callable[[], Generator[Any, None, None]]
    ) -> Iterator[Any]:
        """Start ``make()`` under ``name``, or follow it; yields all it says, raises the RalleError that ends it.

        ``what``: all that tells this work from another. Raises UsageError if other work has the name.
        """
        with self._lock:
            there, followed = self._going.get(name, (what, None))
            if there != what:
                raise UsageError(
                    f"Another {self._noun} is making {name!r} now; wait for its end or choose another name."
                )
            if followed is None:
                followed = Followed(f"The {self._noun} of {name!r} failed")
                self._going[name] = (what, followed)
                self._ended.pop(name, None)
                followed.start(self._do, name, make(), followed)
        yield from followed.follow()

    def stop(self, name: str = "") -> None:
        """Ask work to stop at its next step, all of it without a name; its followers get a StoppedError."""
        with self._lock:
            for known, (_, followed) in self._going.items():
                followed.stopping = followed.stopping or name in ("", known)

    def going_on(self) -> dict[str, Any]:
        """Name → what the work said last."""
        with self._lock:
            return {name: followed.newest for name, (_, followed) in self._going.items()}

    def said(self, name: str) -> list[Any]:
        """All that work which goes on has said so far; [] if none of that name does."""
        with self._lock:
            return self._going[name][1].said() if name in self._going else []

    def stopping(self) -> frozenset[str]:
        """The names of work that was asked to stop and has not ended yet."""
        with self._lock:
            return frozenset(
                name for name, (_, followed) in self._going.items() if followed.stopping
            )

    def ended(self) -> dict[str, Any]:
        """Name → the result of work that ended, or the RalleError that ended it; the newest last.

        It is kept until work of that name starts again, so that a page opened later can tell what came out.
        """
        with self._lock:
            return dict(self._ended)

    def forget(self, name: str) -> None:
        """Tell no more how the work of that name ended."""
        with self._lock:
            self._ended.pop(name, None)

    def wait(self, seconds: float) -> None:
        """Wait until nothing goes on, at most ``seconds``."""
        deadline = time.monotonic() + seconds
        while self._going and time.monotonic() < deadline:
            time.sleep(0.05)

    def _do(self, name: str, pieces: Generator[Any, None, None], followed: Followed) -> None:
        end: Any = None
        try:
            for piece in pieces:
                followed.say(piece)
                end = piece
                if followed.stopping and not isinstance(piece, self._result):
                    raise StoppedError(
                        f"The {self._noun} of {name!r} was stopped; start it again to continue."
                    )
        except RalleError as error:
            end = error
            raise
        except Exception as error:
            end = followed.unexpected(error)
            raise
        finally:
            pieces.close()
            with self._lock:
                del self._going[name]
                if isinstance(end, (self._result, RalleError)):
                    self._ended[name] = end
