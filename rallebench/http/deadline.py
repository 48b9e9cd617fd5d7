"""Sockets that know when an answer is due as a whole, and that can be woken.

An HTTP library waits for each piece of an answer; a server that sends a byte now and then, in the headers too,
is waited for without end. Here a request's time-out carries the moment at which its answer is due.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import weakref
from typing import Any


class Until(float):
    """Seconds to wait for one piece, and ``end``, the moment (``time.monotonic``) to wait for at most."""

    end: float

    def __new__(cls, seconds: float) -> Until:
        """From now."""
        until = super().__new__(cls, seconds)
        until.end = time.monotonic() + seconds
        return until


class Lines:
    """Opens TCP connections for ``httpcore2`` (a ``NetworkBackend``) and can break all of them."""

    def __init__(self, backend: Any, late: type[Exception], broken: type[Exception]) -> None:
        self._backend, self.late, self._broken = backend, late, broken
        self._open: weakref.WeakSet[Line] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._hung_up = False

    def connect_tcp(self, *address: Any, **more: Any) -> Line:
        """See ``httpcore2.NetworkBackend``."""
        return self.keep(Line(self._backend.connect_tcp(*address, **more), self))

    def keep(self, line: Line) -> Line:
        """Remember an open line, unless all were broken meanwhile."""
        with self._lock:
            if not self._hung_up:
                self._open.add(line)
                return line
        line.close()
        raise self._broken("closed")

    def hang_up(self) -> None:
        """Break every connection: whoever waits for one is woken at once."""
        with self._lock:
            self._hung_up = True
            lines = list(self._open)
        for line in lines:
            line.hang_up()


class Line:
    """One connection (a ``NetworkStream``)."""

    def __init__(self, stream: Any, lines: Lines) -> None:
        self._stream, self._lines = stream, lines

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What has come; b'' at the end."""
        piece: bytes = self._stream.read(max_bytes, self._left(timeout))
        return piece

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it."""
        self._stream.write(buffer, self._left(timeout))

    def _left(self, timeout: float | None) -> float | None:
        if not isinstance(timeout, Until):
            return timeout
        left = min(float(timeout), timeout.end - time.monotonic())
        if left <= 0:
            raise self._lines.late("the answer is due")
        return left

    def close(self) -> None:
        """Close it."""
        self._stream.close()

    def hang_up(self) -> None:
        """Break it off, also while another thread reads."""
        held = self._stream.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):
            held.shutdown(socket.SHUT_RDWR)

    def start_tls(self, *context: Any, **more: Any) -> Line:
        """The same connection, encrypted."""
        return self._lines.keep(Line(self._stream.start_tls(*context, **more), self._lines))

    def get_extra_info(self, info: str) -> Any:
        """See ``httpcore2.NetworkStream``."""
        return self._stream.get_extra_info(info)
