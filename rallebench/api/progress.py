"""A progress bar for a terminal or a notebook, over the events of an operation."""

from __future__ import annotations

import logging
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from rallebench.core.events import Event, Failed, Finished, Operation, Progress, Warned, complete
from rallebench.core.interrupts import Stoppable, interruptible

if TYPE_CHECKING:
    from tqdm import tqdm

log = logging.getLogger("rallebench")
T = TypeVar("T")
ANSWERING = ("", "running")
"""Steps in which questions are answered."""


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and "IPKernelApp" in shell.config


class Bar:
    """A progress bar. ``show`` None: in a terminal or notebook only; False: nowhere.

    Warnings are written beside the bar; without a bar they go to the logger ``rallebench``, unless ``show`` is False.
    """

    def __init__(self, label: str, show: bool | None) -> None:
        self._label, self._silent = label, show is False
        self._seen: set[str] = set()
        self._visible = show if show is not None else is_notebook() or sys.stderr.isatty()
        self._bar: tqdm[None] | None = None
        self._step: tuple[str, str, int | None] = ("", "", None)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.leave = self._bar.total is not None  # steps without a count leave no line
            self._bar.close()

    def hear(self, event: Event) -> None:
        """Draw an event."""
        if isinstance(event, Progress):
            self.move(event)
        elif isinstance(event, Warned):
            self.warn(event.message)
        elif isinstance(event, Failed):
            self.warn(f"{event.task} failed: {event.error}")
        elif isinstance(event, Finished) and event.reused and self._bar is not None:
            self._bar.set_description_str(f"{self._label} (had ended before)")
            self._bar.update((self._bar.total or 0) - self._bar.n)

    def move(self, event: Progress) -> None:
        """Draw a count; a new step with a total begins the bar anew."""
        if not self._visible:
            return
        if self._bar is None:
            self._bar = _new_bar(self._label)
        message = "" if event.message in ANSWERING else event.message
        if (event.task, message, event.total) != self._step:
            self._step = (event.task, message, event.total)
            self._bar.set_description_str(
                " ".join(filter(None, [self._label, event.task, message]))
            )
            if event.total:
                self._bar.reset(total=event.total)
        if event.errors:
            self._bar.set_postfix_str(f"{event.errors} failed", refresh=False)
        self._bar.update(max(0, event.done - self._bar.n))

    def say(self, sentence: str) -> None:
        """Print a sentence beside the bar."""
        if self._bar is not None:
            self._bar.write(sentence, file=sys.stderr)
        elif not self._silent:
            log.info(sentence)

    def warn(self, sentence: str) -> None:
        """Print a warning, each once."""
        if sentence in self._seen or self._silent:
            return
        self._seen.add(sentence)
        if self._bar is not None:
            self._bar.write(f"Warning: {sentence}", file=sys.stderr)
        else:
            log.warning(sentence)


def _new_bar(label: str) -> tqdm[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a notebook without widgets gets a terminal bar
        from tqdm.auto import tqdm

    class Unwatched(tqdm):  # type: ignore[misc]
        """A bar without tqdm's own thread, which would outlive the bar."""

        monitor_interval = 0

    if is_notebook():
        return Unwatched(desc=label)
    size = shutil.get_terminal_size()  # tqdm draws nothing if a terminal does not report its width
    return Unwatched(desc=label, ncols=size.columns, nrows=size.lines)


def follow(
    operation: Operation[T],
    label: str,
    show: bool | None,
    stop: Callable[[], None] | None = None,
) -> T:
    """Run an operation to its end with a bar. ``stop``: called by the first Ctrl-C while questions are answered."""
    with Bar(label, show) as bar, Stoppable(stop, bar.say) as stoppable:

        def hear(event: Event) -> None:
            stoppable.running = isinstance(event, Progress) and event.message in ANSWERING
            bar.hear(event)

        return complete(operation, hear)


def last(pieces: Iterator[T | Progress | str], label: str, show: bool | None) -> T:
    """Return the last value of work that yields progress first, and its result last."""
    results: list[T] = []
    with Bar(label, show) as bar, interruptible(pieces):
        for piece in pieces:
            if isinstance(piece, Progress):
                bar.move(piece)
            elif isinstance(piece, str):
                bar.move(Progress("", message=piece))
            else:
                results.append(piece)
    return results[-1]


def drain(sentences: Iterator[str], label: str, show: bool | None) -> None:
    """Run work that yields sentences to its end."""
    with Bar(label, show) as bar, interruptible(sentences):
        for sentence in sentences:
            bar.move(Progress("", message=sentence))
