"""Limits on the messages of a server. The SDK reads lines and JSON responses of any length."""

from __future__ import annotations

import codecs
import logging
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar

import httpx2

from rallebench.core.terminal import visible_line

MAX_MESSAGE = 8 * 2**20
"""Maximum bytes of a message."""
LINES = "rallebench-lines"
"""The encoding of a server's output: UTF-8, in lines of at most MAX_MESSAGE bytes."""
KEPT_LINES, KEPT_CHARACTERS = 3, 300
"""Size of the end of a program's error output that a sentence quotes."""

for logger in ("mcp", "client"):  # the SDK logs every bad message with a traceback and its text
    logging.getLogger(logger).setLevel(logging.CRITICAL)


class TooLongMessage(Exception):
    """A message is longer than MAX_MESSAGE, or is compressed, so that its length is unknown."""


on_long_line: ContextVar[Callable[[], object]] = ContextVar("on_long_line", default=lambda: None)
"""The call that ends a session with a program, for the task that reads its output."""


class _LineDecoder(codecs.IncrementalDecoder):
    """Decodes UTF-8. A long line ends the session; the SDK would gather all of it, and an exception here would wait for the
    program to end."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._inner = codecs.getincrementaldecoder("utf-8")(errors)
        self._end, self._length = on_long_line.get(), 0

    def decode(self, data: bytes, final: bool = False) -> str:  # type: ignore[override]
        start = data.rfind(b"\n") + 1
        self._length = len(data) - start + (0 if start else self._length)
        if self._length > MAX_MESSAGE:
            self._end()
            return ""
        return self._inner.decode(data, final)


def _find_codec(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != LINES:
        return None
    utf8 = codecs.lookup("utf-8")
    return codecs.CodecInfo(utf8.encode, utf8.decode, incrementaldecoder=_LineDecoder, name=LINES)


codecs.register(_find_codec)


class _Body(httpx2.AsyncByteStream):
    """A response's body. Raises TooLongMessage after MAX_MESSAGE bytes."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for piece in self._body:
            length += len(piece)
            if length > MAX_MESSAGE:
                raise TooLongMessage
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


async def limit_body(response: httpx2.Response) -> None:
    """Limit the body of a response, before it is read. The SDK limits the events of a stream itself."""
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise TooLongMessage
    if "text/event-stream" not in response.headers.get("content-type", "").lower():
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Body(response.stream)


class ErrorOutput:
    """The error output of a program, of which only the end is kept. ``file``: for the program, closed once it has it."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.file = os.fdopen(writing, "w")
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        threading.Thread(target=self._read, args=(reading,), daemon=True).start()

    def _read(self, reading: int) -> None:
        with open(reading, encoding="utf-8", errors="replace") as lines:
            while line := lines.readline(KEPT_CHARACTERS):
                if line.strip():
                    self._lines.append(line.strip())

    @property
    def end(self) -> str:
        """Its last line in visible characters, '' without any."""
        return visible_line(self._lines[-1]) if self._lines else ""
