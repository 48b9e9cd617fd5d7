"""A cache of one model, for metrics that use it repeatedly."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def single(load: Callable[P, T]) -> Callable[P, T]:
    """Return ``load`` with a cache of its last result, which is released before the next load: two are never in memory.

    >>> twice = single(lambda word: [word, word])
    >>> twice("a") is twice("a"), twice("b")
    (True, ['b', 'b'])
    """
    lock = threading.Lock()
    held: dict[object, T] = {}

    @functools.wraps(load)
    def load_once(*args: P.args, **kwargs: P.kwargs) -> T:
        key = (args, tuple(sorted(kwargs.items())))
        with lock:  # runs that are scored at the same time share one load
            if key not in held:
                held.clear()
                held[key] = load(*args, **kwargs)
            return held[key]

    return load_once
