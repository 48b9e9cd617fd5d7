"""Events of a running chain for a page that draws slowly: made in a thread of their own, shown at a pace."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, Union

PULSE = 0.2
"""Seconds of silence after which the page may look whether it was stopped."""

PACE = 0.1
"""Seconds between two redraws of a streamed answer."""

T = TypeVar("T")


def pulsed(events: Iterator[T], name: str) -> Iterator[Union[T, None]]:
    """The same events, made in a thread called ``name``, and None whenever nothing came for ``PULSE`` seconds.

    What a step took is measured in that thread: it holds none of the time in which the page is drawn. A page is
    stopped between two values: without the pulse it would wait for a model that thinks. A stopped thread ends
    at its next event, and nobody reads what it still says.
    """
    came: queue.SimpleQueue[Any] = queue.SimpleQueue()
    left = threading.Event()
    threading.Thread(target=_feed, args=(events, came, left), name=name, daemon=True).start()
    try:
        while True:
            try:
                event = came.get(timeout=PULSE)
            except queue.Empty:
                yield None
                continue
            if isinstance(event, _End):
                if event.error is not None:
                    raise event.error
                return
            yield event
    finally:
        left.set()


@dataclass(frozen=True, slots=True)
class _End:
    """No more events come; ``error`` ended them."""

    error: Exception | None = None


def _feed(events: Iterator[Any], came: queue.SimpleQueue[Any], left: threading.Event) -> None:
    end = _End()
    try:
        for event in events:
            if left.is_set():
                break
            came.put(event)
    except Exception as error:
        end = _End(error)
    finally:
        events.close()  # type: ignore[attr-defined]  # a generator: this stops the model's stream
        came.put(end)
