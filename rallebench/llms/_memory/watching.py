"""What a load says while a library works, and where it can be ended.

A library's call that reads gigabytes cannot be interrupted from outside. transformers, however, draws a
progress bar over the tensors that it reads, and the hub one over what it downloads: there a load says how
far it is, and a load that was cancelled ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Tell = Callable[[str], None]
"""Is told a sentence, '' for none; raises StoppedError if the load was cancelled."""

PACE = 0.25
"""Seconds between two sentences about the same bar."""


def _nobody(said: str) -> None:
    """Nobody listens."""


_tell: ContextVar[Tell] = ContextVar("tell", default=_nobody)


@contextmanager
def telling(tell: Tell) -> Iterator[None]:
    """Whatever is loaded in this thread meanwhile tells ``tell`` how far it is."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


@contextmanager
def counting_tensors(said: str) -> Iterator[None]:
    """transformers loads in this thread meanwhile: say ``said`` and the count of tensors at each one."""
    from transformers.utils import logging

    tell, thread = _tell.get(), threading.get_ident()

    def hook(factory: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bar = before(factory, args, kwargs) if before else factory(*args, **kwargs)
        ours = threading.get_ident() == thread and str(kwargs.get("desc", "")).startswith("Loading")
        return (
            _counted(bar, len(args[0]), said, tell)
            if ours and args and hasattr(args[0], "__len__")
            else bar
        )

    before = logging.set_tqdm_hook(hook)
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)


def _counted(bar: Any, total: int, said: str, tell: Tell) -> Iterator[Any]:
    told = 0.0
    for done, tensor in enumerate(bar, 1):
        due = time.monotonic() - told > PACE
        tell(f"{said} {done}/{total}" if due else "")
        told = time.monotonic() if due else told
        yield tensor


def download_bar() -> type:
    """A bar for the hub's downloads, which come in threads of their own; it ends a load that was cancelled."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    tell = _tell.get()

    class Bar(tqdm):  # type: ignore[misc]
        def update(self, n: float | None = 1) -> Any:
            tell("")
            return super().update(n)

    return Bar
