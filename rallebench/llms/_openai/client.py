"""One chat completion from one server: sends the request and reads what comes, whole or bit by bit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from rallebench.core.types import Reply, ToolSpec
from rallebench.http.client import Answer, Connection
from rallebench.http.failures import Failure, Refusal, failure_of, parsed
from rallebench.http.limiter import Permit
from rallebench.llms._openai.dialect import Dialect
from rallebench.llms._openai.forms import (
    IGNORED,
    NO_COUNTS,
    form_of,
    ignores,
    in_prompt,
    noted,
    refusal,
    reply_in_form,
    with_calls,
)
from rallebench.llms._openai.replies import reply_of
from rallebench.llms._openai.settings import Settings
from rallebench.llms._openai.streams import looks_like_events, read_stream
from rallebench.llms._openai.tools import takes_tools

PATH = "/chat/completions"
BYTES_A_TOKEN = 4
"""About; of text in any language, as UTF-8."""

REUSE_SECONDS = 0.05
"""How long the end of a stream is waited for after its last word, so that the connection can be used again."""


class PendingRequest:
    """One request over all its tries: its ``body`` and the form its answer should have.

    ``no_form``: why the form is asked for in the prompt; ``lost``: the reply that did not have it, whose tokens count.
    """

    def __init__(
        self, name: str, body: Mapping[str, Any], tools: tuple[ToolSpec, ...], stream: bool
    ) -> None:
        self.body, self.tools, self.stream = body, {tool.name for tool in tools}, stream
        self.form = form_of(name, body)
        self.no_form = ""
        self.lost: Reply | None = None
        self.prompt_tokens = _tokens_in(body["messages"])

    @property
    def tokens(self) -> float:
        """How many tokens it takes at most, prompt and answer."""
        return self.prompt_tokens + float(
            self.body.get("max_tokens") or self.body.get("max_completion_tokens") or 0
        )


class Client:
    """Asks one server, once per call of ``ask``. Thread-safe. ``closed`` is set by ``close``."""

    def __init__(self, name: str, settings: Settings, key: str) -> None:
        self._connection = Connection(name, settings, key)
        self.closed = self._connection.closed
        self._settings, self._key = settings, key
        self._dialect = Dialect(settings.max_tokens_field)
        self._name = name
        self._takes_tools: bool | None = None
        self._probing = threading.Lock()

    def close(self) -> None:
        """Break the connections and wake what waits for another try."""
        self._connection.close()

    def takes_tools(self) -> bool:
        """Whether the server reads tools; it is asked at the first call."""
        with self._probing:
            if self._takes_tools is None:
                self._takes_tools = takes_tools(self._name, self._settings, self._key)
            return self._takes_tools

    @property
    def drops_tools(self) -> bool:
        """Whether the server was found to drop tools."""
        return self._takes_tools is False

    @property
    def ignores_format(self) -> bool:
        """Whether the server was found to ignore ``response_format``."""
        return self._dialect.ignores_format

    def ask(self, pending: PendingRequest, permit: Permit) -> Iterator[str | Reply]:
        """One request: pieces of text if it asks for a stream, then the Reply. Raises Failure, or BackendError
        once closed. A server that answers a streaming request as a whole is understood, too."""
        form, stream = pending.form, pending.stream
        known = form is not None and self._dialect.why_no_format(form)
        no_form = pending.no_form or known or ""
        body = in_prompt(pending.body, form) if form and no_form else pending.body
        sent = self._dialect.fit(body, stream)

        def turned_away(error: Refusal, message: str) -> Failure:
            permit.headers(error.headers)
            return self._refused(error, message, sent, pending)

        with self._connection.request("POST", PATH, sent, turned_away) as answer:
            permit.headers(answer.headers)
            for piece in self._read(answer, stream):
                if isinstance(piece, str):
                    if form is None:  # else what is handed out may not be what was written
                        yield piece
                    continue
                if form and not no_form and ignores(piece, form):
                    pending.no_form, pending.lost = IGNORED, self._finished(piece, pending, "")
                    raise Failure("ignores the form of the answer", at_once=True)
                if form and pending.no_form:
                    self._dialect.learn_no_format(form, no_form)
                reply = self._finished(piece, pending, no_form)
                if form and stream and reply.text:
                    yield reply.text
                permit.tokens = _tokens_of(reply, pending)
                yield reply
            answer.deadline.end = min(answer.deadline.end, time.monotonic() + REUSE_SECONDS)
            with suppress(*self._connection.lost, Failure):
                for _ in answer.pieces:
                    pass

    def _read(self, answer: Answer, stream: bool) -> Iterator[str | Reply]:
        kind = answer.headers.get("content-type", "").lower()
        timeout, lost = self._settings.timeout, self._connection.lost

        def heard() -> None:
            answer.deadline.end = time.monotonic() + timeout

        start = answer.deadline.end - timeout
        if stream and "event-stream" in kind:
            yield from read_stream(answer.pieces, start, self._key, lost, heard)
            return
        whole = answer.read()
        if looks_like_events(whole):
            yield from read_stream(iter([whole]), start, self._key, lost, heard)
            return
        reply = reply_of(parsed(whole, self._key), self._key)
        if stream and reply.text:
            yield reply.text
        yield reply

    def _finished(self, reply: Reply, pending: PendingRequest, no_form: str) -> Reply:
        reply = reply_in_form(
            with_calls(reply, pending.tools, pending.stream), pending.form, no_form
        )
        if pending.lost is not None:
            reply = replace(
                reply,
                prompt_tokens=reply.prompt_tokens + pending.lost.prompt_tokens,
                completion_tokens=reply.completion_tokens + pending.lost.completion_tokens,
            )
        counted = reply.prompt_tokens or reply.completion_tokens
        return reply if counted else noted(reply, NO_COUNTS)

    def _refused(
        self, error: Refusal, message: str, sent: Mapping[str, Any], pending: PendingRequest
    ) -> Failure:
        """A status other than 2xx: asked differently where that helps."""
        if error.status_code in (400, 422):
            if self._dialect.learn(message, sent):
                return Failure("asks for other fields", at_once=True)
            if pending.form and "response_format" in sent:
                answer = (
                    f"({error.status_code}: {message})" if message else f"({error.status_code})"
                )
                pending.no_form = refusal(answer)
                return Failure("asks for another form", at_once=True)
        return failure_of(error, message, self._settings, self._key)


def _tokens_of(reply: Reply, pending: PendingRequest) -> float:
    """The tokens that the request took: those that the server counted, else an estimate."""
    written = reply.completion_tokens or len(reply.text.encode("utf-8", "replace")) / BYTES_A_TOKEN
    return (reply.prompt_tokens or pending.prompt_tokens) + written


def _tokens_in(messages: Any) -> float:
    return (
        sum(len((m.get("content") or "").encode("utf-8", "replace")) for m in messages)
        / BYTES_A_TOKEN
    )
