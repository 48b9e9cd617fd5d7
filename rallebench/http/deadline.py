"""Sockets with a deadline for the whole answer; another thread can close them at any time.

HTTP libraries restart the time-out with each piece of an answer, so a server that sends a byte now and then, even in the
headers, blocks the caller for ever. Here the time-out of a request includes the deadline of its answer.
"""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import Any


class Deadline(float):
    """Seconds to wait for one piece. ``end``: the ``time.monotonic`` of the deadline of the whole answer; ``stream``: the
    connection being read; ``connecting``: the connection being opened.
    """

    end: float
    stream: Stream | None = None
    connecting: Future[Any] | None = None

    def __new__(cls, seconds: float) -> Deadline:
        """Return a deadline ``seconds`` from now."""
        deadline = super().__new__(cls, seconds)
        deadline.end = time.monotonic() + seconds
        return deadline

    def hang_up(self) -> None:
        """Break the connection, even while another thread reads from it."""
        self.end = -math.inf
        if self.connecting is not None:
            self.connecting.cancel()
        if self.stream is not None:
            connection = self.stream.get_extra_info("socket")
            with contextlib.suppress(OSError, AttributeError):
                connection.shutdown(socket.SHUT_RDWR)


class Sockets:
    """A ``NetworkBackend`` of ``httpcore2`` whose connections obey a Deadline. ``late``: the exception raised after it."""

    def __init__(self, backend: Any, late: type[Exception]) -> None:
        self._backend, self.late = backend, late

    def connect_tcp(self, *address: Any, timeout: Any = None, **options: Any) -> Stream:
        """See ``httpcore2.NetworkBackend``. A pending connect cannot be interrupted, so it runs in a separate thread; if the caller
        hangs up, that thread is abandoned and ends after ``timeout``.
        """
        outcome: Future[Any] = Future()

        def connect() -> None:
            try:
                stream = self._backend.connect_tcp(*address, timeout=timeout, **options)
            except BaseException as error:
                with contextlib.suppress(InvalidStateError):
                    outcome.set_exception(error)
                return
            try:
                outcome.set_result(stream)
            except InvalidStateError:
                stream.close()

        if isinstance(timeout, Deadline):
            timeout.connecting = outcome
            if timeout.end == -math.inf:
                raise self.late("the answer is due")
        threading.Thread(target=connect, daemon=True).start()
        try:
            return Stream(outcome.result(), self.late)
        except CancelledError:
            raise self.late("the answer is due") from None


class Stream:
    """One connection (a ``NetworkStream`` of ``httpcore2``) that obeys a Deadline."""

    def __init__(self, stream: Any, late: type[Exception]) -> None:
        self._stream, self._late = stream, late

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes; b'' at the end."""
        piece: bytes = self._stream.read(max_bytes, self._remaining(timeout))
        return piece

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._remaining(timeout))

    def _remaining(self, timeout: float | None) -> float | None:
        if not isinstance(timeout, Deadline):
            return timeout
        timeout.stream = self
        left = min(float(timeout), timeout.end - time.monotonic())
        if left <= 0:
            raise self._late("the answer is due")
        return left

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, context: Any, name: str | None = None, timeout: Any = None) -> Stream:
        return Stream(self._stream.start_tls(context, name, self._remaining(timeout)), self._late)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
