"""What a server answers bit by bit: server-sent events → pieces of text, then the Reply."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from rallebench.core.types import Reply
from rallebench.http.failures import DROPPED, NOT_OPENAI, Failure, parsed
from rallebench.llms._openai.replies import choice_of, reply_of, text_of


def read_stream(
    body: Iterator[bytes],
    start: float,
    key: str,
    broken: tuple[type[Exception], ...],
    heard: Callable[[], None],
) -> Iterator[str | Reply]:
    """Yield the pieces of text as they come, then the Reply.

    ``start``: when the request was sent (``time.monotonic``). ``broken``: what ``body`` raises when
    the connection is lost. ``heard`` is called whenever something came that belongs to the answer: signs
    of life alone do not keep a stream going. Raises Failure where the stream ends before the answer does.
    """
    gathered = Gathered()
    first = None
    done = False
    try:
        for data in events(body):
            if data == b"[DONE]":
                done = True
                break
            text = gathered.add(parsed(data, key), key)
            if gathered.moved:
                heard()
            if text:
                first = time.monotonic() - start if first is None else first
                yield text
    except broken:
        # Once the server has said why it stopped, the text is whole; only the usage is lost.
        if gathered.finish_reason is None:
            raise
    if not done and gathered.finish_reason is None:
        written = sum(map(len, gathered.text))
        raise Failure(f"broke off its answer after {written} characters", DROPPED, retries=None)
    yield replace(reply_of(gathered.document(), key), first_token_seconds=first)


def looks_like_events(body: bytes) -> bool:
    """Whether a whole body is a stream that came under another content type."""
    return body.lstrip().startswith((b"data:", b"event:", b":"))


def events(body: Iterator[bytes]) -> Iterator[bytes]:
    """The ``data`` of server-sent events. Lines end at LF only: JSON text may hold U+2028.

    >>> list(events(iter([b": hello\\n\\ndata: a", b"b\\r\\n\\r\\ndata: c"])))
    [b'ab', b'c']
    """
    rest, data = b"", []
    for piece in itertools.chain(body, (b"\n\n",)):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].strip())
            elif not line and data:
                yield b"\n".join(data)
                data = []


class Gathered:
    """The pieces of a stream, put together in the form of a whole chat completion."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.refusal: list[str] = []
        self.calls: dict[int, dict[str, str]] = {}
        self.logprobs: list[Any] = []
        self.finish_reason: str | None = None
        self.usage: Any = None
        self.moved = False

    def add(self, document: Any, key: str) -> str:
        """Take one piece in and return its text, '' if it has none; raises Failure. ``moved`` then says whether
        the piece held anything (text, thoughts, calls)."""
        self.moved = False
        if isinstance(document, Mapping) and not document.get("error"):
            self.usage = document.get("usage") or self.usage
            if not document.get("choices"):  # the piece with the usage, or a greeting
                return ""
        choice = choice_of(document, key)
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        if isinstance(logprobs := choice.get("logprobs"), Mapping):
            values = logprobs.get("content")
            self.logprobs += values if isinstance(values, list) else []
        delta = choice.get("delta") or {}
        if not isinstance(delta, Mapping):
            raise Failure("answered with a piece that is not an object", NOT_OPENAI)
        self.moved = any(value for name, value in delta.items() if name != "role")
        calls = delta.get("tool_calls") or []
        if not isinstance(calls, list):
            raise Failure("answered with tool calls that are not a list", NOT_OPENAI)
        for call in calls:
            self._add_call(call)
        self.refusal.append(text_of(delta.get("refusal"), "refusal"))
        text = text_of(delta.get("content"), "piece")
        self.text.append(text)
        return text

    def _add_call(self, piece: Any) -> None:
        """A call comes in pieces: id and name first, then its arguments bit by bit."""
        function = piece.get("function") if isinstance(piece, Mapping) else None
        if not isinstance(function, Mapping):
            raise Failure("answered with a malformed tool call", NOT_OPENAI)
        index = piece.get("index")
        if not isinstance(index, int):  # some servers leave it out and send whole calls
            index = len(self.calls) if piece.get("id") else max(len(self.calls) - 1, 0)
        call = self.calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        call["id"] = call["id"] or str(piece.get("id") or "")
        for part in ("name", "arguments"):
            call[part] += text_of(function.get(part), "tool call")

    def document(self) -> dict[str, Any]:
        """What the server would have answered without streaming."""
        calls = [{"id": call["id"], "function": call} for _, call in sorted(self.calls.items())]
        message = {
            "content": "".join(self.text),
            "refusal": "".join(self.refusal),
            "tool_calls": calls,
        }
        choice = {"message": message, "finish_reason": self.finish_reason}
        return {
            "choices": [{**choice, "logprobs": {"content": self.logprobs}}],
            "usage": self.usage,
        }
