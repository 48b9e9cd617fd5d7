"""Streams: the patches of a continuing action, fetched by the page at its own pace."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from rallebench.core.stopping import Stop, obey
from rallebench.gui.patches import Meanwhile, Patch, problem
from rallebench.services.jobs import start_thread

PACE = 0.08
"""Seconds between two patches of a stream, because redrawing a page is slow."""

FIRST = 0.02
"""Seconds that the first patch of a stream waits for the end, so that an answer from the cache is drawn once."""

PATIENCE = 2.0
"""Seconds before a request to a silent stream is answered with its ``meanwhile``."""


class PatchStream:
    """Patches of a generator that runs in its own thread, fetched by the page at its own pace."""

    def __init__(self, patches: Iterator[Patch], number: int = 0) -> None:
        self.id = uuid.uuid4().hex
        self.number = number
        self._patches = patches
        self._waiting = Patch()
        self._meanwhile: Meanwhile = lambda stopped: Patch()
        self._change = threading.Condition()
        self._stopped = False
        self._ended = False
        self._hang_up = Stop()
        self._waits: list[Callable[[], object]] = []
        self._waited = False
        self._pace = FIRST

    @property
    def over(self) -> bool:
        """True once the generator has ended and the page has fetched every patch."""
        with self._change:
            return self._ended and not self._waiting

    def start(self) -> None:
        """Start the generator's thread."""
        start_thread(self._read, "page stream")

    def stop(self, *, shows: bool = True) -> None:
        """End the stream. The page gets its last patch at once; the generator stops waiting for servers and ends at
        its next value.

        ``shows``: tell the page; False if a newer stream of the same action replaces this one.
        """
        with self._change:
            if not self._ended:
                last = self._meanwhile(True)
                self._waiting = self._waiting | last if shows else Patch()
            self._stopped = self._ended = True
            self._tell()
        self._hang_up.set()

    def take(self) -> Patch:
        """Return all patches since the last call, merged. Waits up to PATIENCE seconds for the first."""
        with self._change:
            waited, self._waited = self._waited, False
            if not waited:
                self._change.wait_for(lambda: self._waiting or self._ended, PATIENCE)
                self._change.wait_for(lambda: self._ended, self._pace)
            patch, self._waiting, self._pace = self._waiting, Patch(), PACE
            if self._ended:
                return replace(patch, over=True)
            return patch or self._meanwhile(False)

    async def wait(self) -> None:
        """Wait until ``take`` would return at once."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the page was closed in the meantime
                loop.call_soon_threadsafe(news.set)

        async def until(condition: Callable[[], object]) -> None:
            while not condition():
                await news.wait()
                news.clear()

        with self._change:
            self._waits.append(wake)
        for condition, seconds in (
            (lambda: self._waiting or self._ended, PATIENCE),
            (lambda: self._ended, self._pace),
        ):
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(until(condition), seconds)
        with self._change:
            self._waits.remove(wake)
        self._waited = True

    def _tell(self) -> None:
        """Wake all waiting threads. The caller must hold the lock."""
        self._change.notify_all()
        for wake in self._waits:
            wake()

    def _put(self, patch: Patch) -> None:
        with self._change:
            if not self._stopped:
                self._meanwhile = patch.meanwhile or self._meanwhile
                self._waiting |= replace(patch, meanwhile=None)
                self._tell()

    def _read(self) -> None:
        obey(self._hang_up)
        try:
            for patch in self._patches:
                if self._stopped:
                    break
                self._put(patch)
        except Exception as error:
            self._put(problem(error))
        finally:
            self._patches.close()  # type: ignore[attr-defined]  # a generator: this ends the model's own stream
            with self._change:
                self._ended = True
                self._tell()
