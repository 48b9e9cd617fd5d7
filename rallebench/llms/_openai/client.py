"""One chat completion from one server: sends the request and reads what comes, whole or bit by bit."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

from rallebench.endpoints.connection import Connection
from rallebench.endpoints.failures import Failure, refused, unloaded
from rallebench.endpoints.reading import parsed
from rallebench.llms._openai.replies import reply_of
from rallebench.llms._openai.requests import Dialect
from rallebench.llms._openai.settings import Settings
from rallebench.llms._openai.streams import looks_like_events, read_stream
from rallebench.types import Reply


class Client:
    """Asks one server, once per call of ``ask``. Thread-safe. ``closed`` is set by ``close``."""

    def __init__(self, name: str, settings: Settings, key: str) -> None:
        self._connection = Connection(name, settings, key)
        self.closed = self._connection.closed
        self._name, self._settings, self._key = name, settings, key
        self._dialect = Dialect(settings.max_tokens_field)

    def close(self) -> None:
        """Close the connections and wake what waits for another try."""
        self._connection.close()

    def ask(self, body: Mapping[str, Any], stream: bool) -> Iterator[str | Reply]:
        """One request: pieces of text if ``stream``, then the Reply. Raises Failure, or BackendError
        once closed. A server that answers a streaming request as a whole is understood, too."""
        if self.closed.is_set():
            raise unloaded(self._name)
        sent = self._dialect.fit(body, stream)
        start = time.monotonic()
        pieces = self._connection.pieces

        def turned_away(error: Any, said: str) -> Failure:
            return self._refused(error, said, sent)

        with self._connection.translated(turned_away), self._send(sent, stream) as response:
            kind = response.headers.get("content-type", "").lower()
            if stream and "event-stream" in kind:
                yield from self._read_stream(pieces(response, math.inf), start)
                return
            whole = b"".join(pieces(response, start + self._settings.timeout))
            if stream and looks_like_events(whole):
                yield from self._read_stream(iter([whole]), start)
                return
            reply = reply_of(parsed(whole, self._key), self._key)
            if stream and reply.text:
                yield reply.text
            yield reply

    def _send(self, sent: Mapping[str, Any], stream: bool) -> Any:
        extra = {name: value for name, value in sent.items() if name not in ("model", "messages")}
        return self._connection.client.chat.completions.with_streaming_response.create(
            model=sent["model"], messages=sent["messages"], stream=stream, extra_body=extra
        )

    def _read_stream(self, body: Iterator[bytes], start: float) -> Iterator[str | Reply]:
        return read_stream(body, start, self._key, self._connection.lost)

    def _refused(self, error: Any, said: str, sent: Mapping[str, Any]) -> Failure:
        """A status other than 2xx: asked differently where that helps."""
        if int(error.status_code) in (400, 422) and self._dialect.learn(said, sent):
            return Failure("asks for other fields", at_once=True)
        return refused(error, said, self._settings, self._key)
