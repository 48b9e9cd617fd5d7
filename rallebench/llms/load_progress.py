"""Progress of a load during a library call, and points at which it can be cancelled.

A library call that reads gigabytes cannot be interrupted from outside. But transformers draws a progress bar over the
tensors that it reads, and the hub one over its downloads. These bars report the progress, and end a cancelled load.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Report = Callable[[str], None]
"""Receives a sentence, '' for none; raises StoppedError if the load was cancelled."""

PACE = 0.25
"""Seconds between two reports of the same bar."""


def _ignore(message: str) -> None:
    """Report nothing."""


_report: ContextVar[Report] = ContextVar("tell", default=_ignore)


@contextmanager
def reporting(report: Report) -> Iterator[None]:
    """During the block, loads in this thread report their progress to ``report``."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def report_stage(message: str) -> None:
    """Report a stage of the load in this thread; a cancelled load ends here."""
    _report.get()(message)


@contextmanager
def counting_tensors(message: str) -> Iterator[None]:
    """During the block, report ``message`` with the count of tensors that transformers loads in this thread."""
    from transformers.utils import logging

    report, thread = _report.get(), threading.get_ident()

    def hook(factory: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bar = before(factory, args, kwargs) if before else factory(*args, **kwargs)
        is_load = threading.get_ident() == thread and str(kwargs.get("desc", "")).startswith(
            "Loading"
        )
        return (
            counting(bar, len(args[0]), message, report)
            if is_load and args and hasattr(args[0], "__len__")
            else bar
        )

    before = logging.set_tqdm_hook(hook)
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)


def counting(
    tensors: Iterable[Any], total: int, message: str, report: Report | None = None
) -> Iterator[Any]:
    """Yield the tensors, with a regular report of ``message`` and the count; a cancelled load ends here."""
    report = report or _report.get()
    reported_at = 0.0
    for done, tensor in enumerate(tensors, 1):
        due = time.monotonic() - reported_at > PACE
        report(f"{message} {done}/{total}" if due else "")
        reported_at = time.monotonic() if due else reported_at
        yield tensor


def download_bar() -> type:
    """Return a bar for the hub's downloads, which run in other threads; it ends a cancelled load."""
    from tqdm.auto import tqdm

    report = _report.get()

    class Bar(tqdm):  # type: ignore[misc]
        def update(self, n: float | None = 1) -> Any:
            report("")
            return super().update(n)

    return Bar
