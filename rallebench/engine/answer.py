"""Answer the open questions of a run: ask, append, write the state, and stop on request."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from rallebench.core.backends import Backends
from rallebench.core.errors import BackendError, Hint, StoppedError
from rallebench.core.events import Operation, Progress
from rallebench.core.spending_limit import SpendingLimit
from rallebench.core.types import Episode, Flow, Question
from rallebench.engine import loop
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.run_files import RunState
from rallebench.engine.spending import charge, charged_batch, charged_prices
from rallebench.engine.store import RunFolder

FIRST_FAILURES = 5
"""Failures without any success after which a run stops: the cause is the set-up, not a single question."""

STATE_EVERY = 0.5
"""Seconds between two writes of the state. A change in between waits for the next write."""


def answer(
    folder: RunFolder,
    make_flow: Callable[[Question], Flow],
    questions: Sequence[Question],
    backends: Backends,
    *,
    task: str = "",
    workflow: str = "chain",
    reply_cache: ReplyCache | None = None,
    batch_size: int = 20,
    max_errors: int | None = None,
    budget: SpendingLimit | None = None,
    observe: Callable[[Episode], Mapping[str, float | None]] = lambda episode: {},
) -> Operation[None]:
    """Answer the open questions of ``folder``, yielding progress of ``task``; failed questions are tried again.

    ``observe`` gives an episode's values of a few metrics; their means so far are part of the state. Ends with the state
    ``answered`` or ``stopped``. Raises BackendError when the first five all fail, or when more than ``max_errors``
    questions failed; finished answers are kept. Raises StoppedError when ``budget`` is spent.
    """
    finished = {qid for qid, head in folder.heads().items() if not head.error}
    todo = [question for question in questions if question.qid not in finished]
    counter = _Counter(folder, task, len(questions), len(finished), observe)
    prices = charged_prices(backends) if budget else {}
    counter.tell("running")
    log = folder.log()
    try:
        if budget and todo:
            budget.check()
        for episode in loop.run(
            make_flow,
            todo,
            backends,
            workflow=workflow,
            reply_cache=reply_cache,
            batch_size=charged_batch(backends, prices, batch_size),
            stop=counter.stop,
        ):
            folder.append(log, episode, counter.session, counter.seconds_since_start)
            yield counter.count(episode)
            counter.check(max_errors)
            if budget:
                charge(budget, episode, prices)
    except (KeyboardInterrupt, GeneratorExit, StoppedError):
        counter.tell("stopped")
        raise
    except BaseException as error:
        counter.tell("failed", message=str(error) or type(error).__name__)
        raise
    finally:
        log.close()
    counter.tell(
        "stopped" if counter.n_done < counter.total and counter.stop(now=True) else "answered"
    )
    folder.forget_stop()


def all_failed(noun: str, count: int, message: str) -> BackendError:
    """The error of a run if its first questions or requests all failed."""
    return BackendError(f"The first {count} {noun} all failed, so the run was stopped: {message}")


def check_errors(noun: str, errors: int, max_errors: int | None, message: str) -> None:
    """Raise BackendError if more than ``max_errors`` questions or requests failed."""
    if max_errors is not None and errors > max_errors:
        raise BackendError(
            f"{errors} {noun} failed and at most {max_errors} may, so the run was stopped. "
            f"The first message: {message}",
            hint=Hint("raise-max-errors"),
        )


class _Counter:
    """Counts the answers, and writes the state for other processes."""

    def __init__(
        self,
        folder: RunFolder,
        task: str,
        total: int,
        already: int,
        observe: Callable[[Episode], Mapping[str, float | None]],
    ) -> None:
        self.folder, self.task, self.observe = folder, task, observe
        self.total, self.already = total, already
        self.sums: dict[str, list[float]] = {}
        self.new = self.errors = 0
        self.first_message = ""
        self.session = f"{time.time():.3f}"
        self._started = time.perf_counter()
        self._written, self._looked = 0.0, -STATE_EVERY
        self._unwritten = self._stop = False

    @property
    def n_done(self) -> int:
        return self.already + self.new

    @property
    def seconds_since_start(self) -> float:
        return time.perf_counter() - self._started

    def stop(self, now: bool = False) -> bool:
        """Return whether a stop was requested. The loop calls this several times a second, so a due state is written here:
        the questions of a batch end together, and the next batch may take minutes."""
        elapsed = self.seconds_since_start
        if self._unwritten and elapsed - self._written > STATE_EVERY:
            self.tell("running")
        if now or elapsed - self._looked > STATE_EVERY / 2:
            self._looked = elapsed
            self._stop = self._stop or self.folder.stop_asked()
        return self._stop

    def count(self, episode: Episode) -> Progress:
        self.new += 1
        self._unwritten = True
        if episode.error:
            self.errors += 1
            self.first_message = self.first_message or episode.error
        else:
            for name, value in self.observe(episode).items():
                if value is not None:
                    total = self.sums.setdefault(name, [0.0, 0])
                    total[0] += value
                    total[1] += 1
        return Progress(
            self.task,
            self.n_done,
            self.total,
            errors=self.errors,
            seconds=self.seconds_since_start,
            means=self._means(),
        )

    def _means(self) -> dict[str, tuple[float, float]]:
        return {name: (total / n, n) for name, (total, n) in self.sums.items()}

    def check(self, max_errors: int | None) -> None:
        if self.errors == self.new >= min(FIRST_FAILURES, self.total) and not self.already:
            raise all_failed("questions", self.new, self.first_message)
        check_errors("questions", self.errors, max_errors, self.first_message)

    def tell(self, state: str, message: str = "") -> None:
        self._unwritten = False
        self._written = seconds = self.seconds_since_start
        self.folder.set_state(
            RunState(
                state,
                self.n_done,
                self.total,
                self.errors,
                round(seconds, 3),
                message,
                rate=round(self.new / seconds, 3) if seconds > 0 else 0.0,
                means=self._means(),
            )
        )
