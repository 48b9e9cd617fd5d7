"""Write answers in threads for clients that may disconnect at any time.

Each chain has its own queue, so a stalled model delays no other chain. Waiting clients occupy no thread. If a client
disconnects, its request to the model is cancelled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from typing import Any, TypeVar

from rallebench.core.stopping import Stop, obeying
from rallebench.server.completion_request import RequestError

Piece = TypeVar("Piece")
Receive = Callable[[], Awaitable[Any]]

MOST_ANSWERED, MOST_WAITING = 16, 32
"""Requests of one chain that are answered concurrently (each in a thread), and requests that wait without a thread.
Further requests are refused.
"""
RETRY_SECONDS = 5
BUFFER = 16
"""Pieces written ahead before the client has taken the first."""


class ChainQueue:
    """The queue of requests for one chain."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._limiter: Any = None
        self._stops: set[Stop] = set()

    async def answer(
        self,
        receive: Receive,
        write: Callable[[], Generator[Piece, None, None]],
        take: Callable[[Piece], Awaitable[None]],
    ) -> None:
        """Run ``write()`` in a thread and pass each of its pieces to ``take``. ``receive``: ASGI's.

        Raises RequestError if too many requests wait or the queue is closed, ClientDisconnect once the client has
        disconnected.
        """
        import anyio

        if len(self._stops) >= MOST_ANSWERED + MOST_WAITING:
            raise RequestError(
                429,
                f"{len(self._stops)} requests for {self._name!r} are answered or wait already; "
                f"ask again in {RETRY_SECONDS} seconds.",
                "rate_limit_error",
                code="rate_limit_exceeded",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
        self._limiter = self._limiter or anyio.CapacityLimiter(MOST_ANSWERED)
        stop = Stop()
        self._stops.add(stop)
        try:
            await _relay(receive, write, take, self._limiter, stop)
        finally:
            self._stops.remove(stop)

    def close(self) -> None:
        """Stop all running and waiting requests."""
        for stop in list(self._stops):
            stop.set()


async def _relay(
    receive: Receive,
    write: Callable[[], Generator[Piece, None, None]],
    take: Callable[[Piece], Awaitable[None]],
    limiter: Any,
    stop: Stop,
) -> None:
    import anyio
    import anyio.from_thread
    import anyio.to_thread
    from starlette.requests import ClientDisconnect

    gone = finished = False
    failures: list[Exception] = []
    sender, receiver = anyio.create_memory_object_stream[Piece](BUFFER)

    def work() -> None:
        try:
            with obeying(stop), closing(write()) as pieces:
                for piece in pieces:
                    stop.check()
                    anyio.from_thread.run(sender.send, piece)
        except Exception as error:
            if not stop.is_set():  # after a stop, the error is only its consequence
                failures.append(error)

    async def write_pieces() -> None:
        async with sender:
            await anyio.to_thread.run_sync(work, limiter=limiter)

    async def watch() -> None:
        nonlocal gone
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone = True
        finally:  # also if this task is cancelled
            stop.set()

    async with anyio.create_task_group() as tasks, receiver:
        with stop.waking(tasks.cancel_scope.cancel):
            tasks.start_soon(watch)
            tasks.start_soon(write_pieces)
            async for piece in receiver:
                await take(piece)
            finished = True
        tasks.cancel_scope.cancel()
    if failures:
        raise failures[0]
    if gone:
        raise ClientDisconnect
    if not finished:
        raise RequestError(503, "The server is stopping.", "server_error")
