"""Many flows at once: batches by kind, one worker per resource, a window of open questions.

While a model generates one batch, the retriever already searches for the next. Flows and the caller live on one thread.
Only backends run on workers, one thread each, so no backend needs to be thread-safe. A backend with ``concurrency`` n has
n workers with one request each (a sliding window).
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from rallebench.core.backends import Backends
from rallebench.core.errors import RalleError, StoppedError
from rallebench.core.stopping import Stop, obey, stop_of_thread
from rallebench.core.types import Episode, Flow, Note, Question, Reply, Request, Step
from rallebench.engine.perform import (
    ReplyOrError,
    batch_key,
    flow_error,
    perform,
    prepare_request,
    resource,
)
from rallebench.engine.reply_cache import ReplyCache, cache_key

STOP_PATIENCE = 10.0
"""Seconds for which a stopped run waits for the current batches."""

SERVER_PATIENCE = 1.0
"""Seconds after a stop until connections to servers are closed; a server may take minutes to answer."""


@dataclass
class _Open:
    """A question in progress, and its pending requests."""

    question: Question
    flow: Flow
    steps: list[Step] = field(default_factory=list)
    request: Request = field(default_factory=lambda: Note(""))
    key: str | None = None


_Finished = tuple[list[_Open], list[ReplyOrError], float]


class _Worker:
    """Threads that answer the requests of one resource, batch by batch."""

    def __init__(
        self,
        backends: Backends,
        reply_cache: ReplyCache | None,
        done: queue.SimpleQueue[_Finished],
        batch_size: int,
        threads: int,
        stop: Stop,
    ) -> None:
        self._backends, self._reply_cache, self._done = backends, reply_cache, done
        self._batch_size, self._stop = batch_size, stop
        self._waiting: deque[_Open] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self.busy = 0
        for _ in range(threads):
            threading.Thread(target=self._work, daemon=True).start()

    def add(self, waiting: list[_Open]) -> None:
        with self._wake:
            self._waiting.extend(waiting)
            self._wake.notify_all()

    def close(self) -> None:
        with self._wake:
            self._closed = True
            self._waiting.clear()
            self._wake.notify_all()

    def _take(self) -> list[_Open] | None:
        with self._wake:
            while not self._waiting and not self._closed:
                self._wake.wait()
            if self._closed:
                return None
            key = batch_key(self._waiting[0].request)
            batch: list[_Open] = []
            others: list[_Open] = []
            while self._waiting and len(batch) < self._batch_size:
                item = self._waiting.popleft()
                (batch if batch_key(item.request) == key else others).append(item)
            self._waiting.extendleft(reversed(others))
            self.busy += 1
            return batch

    def _work(self) -> None:
        obey(self._stop)
        while (batch := self._take()) is not None:
            started = time.perf_counter()
            answers = perform([item.request for item in batch], self._backends)
            share = (time.perf_counter() - started) / len(batch)
            # Cached at once: a killed process then loses at most the current batch.
            if self._reply_cache:
                good = [(o, a) for o, a in zip(batch, answers) if isinstance(a, Reply)]
                self._reply_cache.put(
                    [(opened.request, reply, share) for opened, reply in good],
                    self._backends,
                    batch=len(batch),
                    keys=[opened.key for opened, _ in good],
                )
            self._done.put((batch, answers, share))
            with self._wake:
                self.busy -= 1


def run(
    make_flow: Callable[[Question], Flow],
    questions: Iterable[Question],
    backends: Backends,
    *,
    workflow: str = "chain",
    reply_cache: ReplyCache | None = None,
    batch_size: int = 20,
    window: int = 256,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Episode]:
    """Yield an Episode per question, in order of completion.

    A failed question is an Episode with ``error``. Once ``stop()`` returns true, no new batch is started; unfinished
    questions yield nothing, but their replies are cached. Raises StoppedError if the thread's work is stopped.
    """
    running = _Loop(make_flow, backends, workflow, reply_cache, batch_size)
    patience, stopped = STOP_PATIENCE, stop_of_thread()
    try:
        yield from running.run(
            iter(questions), max(window, batch_size), lambda: stop() or stopped.is_set()
        )
        stopped.check()
    except KeyboardInterrupt:  # a second request to stop: do not wait
        patience = 0.0
        raise
    finally:
        running.close(patience)


class _Loop:
    def __init__(
        self,
        make_flow: Callable[[Question], Flow],
        backends: Backends,
        workflow: str,
        reply_cache: ReplyCache | None,
        batch_size: int,
    ) -> None:
        self._make_flow, self._backends = make_flow, backends
        self._workflow, self._reply_cache = workflow, reply_cache
        self._batch_size = batch_size
        self._done: queue.SimpleQueue[_Finished] = queue.SimpleQueue()
        self._workers: dict[tuple[str, str], _Worker] = {}
        self._pending: dict[tuple[str, str], list[_Open]] = {}
        self._open: dict[int, _Open] = {}
        self._ended: deque[Episode] = deque()
        self._stop = Stop(part_of=stop_of_thread())

    def run(
        self, questions: Iterator[Question], window: int, stop: Callable[[], bool]
    ) -> Iterator[Episode]:
        more = True
        while True:
            while more and len(self._open) < window and not stop():
                question = next(questions, None)
                if question is None:
                    more = False
                else:
                    self._admit(question)
                while self._ended:
                    yield self._ended.popleft()
            self._dispatch()
            if not self._open or stop():
                break
            self._wait(0.2)
            while self._ended:
                yield self._ended.popleft()
        yield from self._drain()

    def _drain(self) -> Iterator[Episode]:
        """After a stop, keep the answers of the current batches that arrive within STOP_PATIENCE."""
        self._outlast(STOP_PATIENCE if self._open else 0.0, lambda: self._wait(0.1))
        yield from self._ended

    def _outlast(self, patience: float, wait: Callable[[], None]) -> None:
        """Call ``wait`` until the current batches have ended, at most ``patience`` seconds in all. Then close the
        connections to servers."""
        for worker in self._workers.values():
            worker.close()
        began = time.monotonic()
        while any(worker.busy for worker in self._workers.values()):
            waited = time.monotonic() - began
            if waited >= min(patience, SERVER_PATIENCE):
                self._stop.set()
            if waited >= patience:
                break
            wait()

    def _admit(self, question: Question) -> None:
        opened = _Open(question, self._make_flow(question))
        self._open[id(opened)] = opened
        self._advance(opened, None)

    def _advance(self, opened: _Open, reply: Reply | None) -> None:
        """Send the reply and continue until the flow makes a request that is not cached."""
        try:
            while True:
                request = opened.flow.send(reply) if reply is not None else next(opened.flow)
                request = prepare_request(request, self._backends)
                step = self._at_once(opened, request)
                if step is None:
                    opened.request = request
                    self._pending.setdefault(resource(request), []).append(opened)
                    return
                opened.steps.append(step)
                reply = step.reply
        except StopIteration as ended:
            self._end(
                opened,
                Episode(opened.question.qid, self._workflow, tuple(opened.steps), ended.value),
            )
        except Exception as error:
            self._fail(opened, flow_error(error))

    def _at_once(self, opened: _Open, request: Request) -> Step | None:
        if isinstance(request, Note):
            return Step(request, request.reply())
        if not self._reply_cache:
            return None
        opened.key = cache_key(request, self._backends)
        cached = self._reply_cache.get(request, self._backends, key=opened.key)
        return cached.step(request) if cached else None

    def _fail(self, opened: _Open, error: RalleError, seconds: float = 0.0) -> None:
        opened.flow.close()
        steps = tuple(opened.steps)
        self._end(
            opened, Episode(opened.question.qid, self._workflow, steps, None, str(error), seconds)
        )

    def _end(self, opened: _Open, episode: Episode) -> None:
        del self._open[id(opened)]
        self._ended.append(episode)

    def _dispatch(self) -> None:
        """Hand over all new requests at once, so that batches are as full as possible."""
        for name, waiting in self._pending.items():
            if name not in self._workers:
                self._workers[name] = self._start_worker(waiting[0].request)
            self._workers[name].add(waiting)
        self._pending = {}

    def _start_worker(self, request: Request) -> _Worker:
        try:
            backend = self._backends.of(request)
        except RalleError:
            backend = None
        threads = int(getattr(backend, "concurrency", 1))
        # A model that sorts its prompts by length receives several of its batches at once.
        size = max(self._batch_size, getattr(backend, "preferred_batch", None) or 0)
        size = 1 if threads > 1 else size
        return _Worker(self._backends, self._reply_cache, self._done, size, threads, self._stop)

    def _wait(self, seconds: float) -> None:
        """Take every finished batch; wait at most ``seconds`` for the first."""
        try:
            finished = [self._done.get(timeout=seconds)]
            while not self._done.empty():
                finished.append(self._done.get_nowait())
        except queue.Empty:
            return
        for batch, answers, share in finished:
            for opened, answer in zip(batch, answers):
                if isinstance(answer, Reply):
                    opened.steps.append(Step(opened.request, answer, share, batch=len(batch)))
                    self._advance(opened, answer)
                elif not isinstance(answer, StoppedError):
                    self._fail(opened, answer, share)

    def close(self, patience: float) -> None:
        """Wait at most ``patience`` seconds for the current batches, because their backends may be closed next. A process
        that exits while native code runs on a daemon thread is aborted, whatever its exit code."""
        for opened in self._open.values():
            opened.flow.close()
        self._outlast(0.0 if self._stop.is_set() else patience, lambda: time.sleep(0.01))
