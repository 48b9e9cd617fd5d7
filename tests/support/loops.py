"""Event loops for tests: Playwright keeps one running in the main thread once a browser is open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import anyio

T = TypeVar("T")


def run_apart(work: Callable[[], Awaitable[T]]) -> T:
    """Await the result of ``work`` in a thread of its own, which has no event loop yet."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(anyio.run, work).result()
