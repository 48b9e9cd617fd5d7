"""Sockets with a deadline for the whole answer, which another thread can break.

An HTTP library waits anew for each piece of an answer, so that a server with a byte now and then, in the headers
too, holds it for ever. Here the time-out of a request carries the moment at which its answer is due.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import weakref
from typing import Any


class Deadline(float):
    """Seconds to wait for one piece; ``end`` is the moment (``time.monotonic``) at which the answer is due."""

    end: float

    def __new__(cls, seconds: float) -> Deadline:
        """A deadline so many seconds from now."""
        deadline = super().__new__(cls, seconds)
        deadline.end = time.monotonic() + seconds
        return deadline


class Sockets:
    """A ``NetworkBackend`` of ``httpcore2`` that remembers its open connections and can break all of them."""

    def __init__(self, backend: Any, late: type[Exception], broken: type[Exception]) -> None:
        self._backend, self.late, self._broken = backend, late, broken
        self._open: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._hung_up = False

    def connect_tcp(self, *address: Any, **options: Any) -> Stream:
        """See ``httpcore2.NetworkBackend``."""
        return self.add(Stream(self._backend.connect_tcp(*address, **options), self))

    def add(self, stream: Stream) -> Stream:
        """Remember an open connection, unless all were broken meanwhile."""
        with self._lock:
            if not self._hung_up:
                self._open.add(stream)
                return stream
        stream.close()
        raise self._broken("closed")

    def hang_up(self) -> None:
        """Break every connection; this wakes the threads that read from one."""
        with self._lock:
            self._hung_up = True
            streams = list(self._open)
        for stream in streams:
            stream.hang_up()


class Stream:
    """One connection (a ``NetworkStream`` of ``httpcore2``) that obeys a Deadline."""

    def __init__(self, stream: Any, sockets: Sockets) -> None:
        self._stream, self._sockets = stream, sockets

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes; b'' at the end."""
        piece: bytes = self._stream.read(max_bytes, self._left(timeout))
        return piece

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it."""
        self._stream.write(buffer, self._left(timeout))

    def _left(self, timeout: float | None) -> float | None:
        if not isinstance(timeout, Deadline):
            return timeout
        left = min(float(timeout), timeout.end - time.monotonic())
        if left <= 0:
            raise self._sockets.late("the answer is due")
        return left

    def close(self) -> None:
        """Close it."""
        self._stream.close()

    def hang_up(self) -> None:
        """Break it, also while another thread reads."""
        connection = self._stream.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):
            connection.shutdown(socket.SHUT_RDWR)

    def start_tls(self, *context: Any, **options: Any) -> Stream:
        """The same connection, encrypted."""
        return self._sockets.add(Stream(self._stream.start_tls(*context, **options), self._sockets))

    def get_extra_info(self, info: str) -> Any:
        """See ``httpcore2.NetworkStream``."""
        return self._stream.get_extra_info(info)
