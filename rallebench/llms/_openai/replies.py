"""The answer of a server, whole or bit by bit, read without trust: JSON → pieces of text and a Reply, or a Failure."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rallebench.core.types import Reply, ToolCall
from rallebench.http.client import Answer
from rallebench.http.failures import (
    DROPPED,
    NOT_OPENAI,
    SEE_LOG,
    Failure,
    counted,
    parsed,
    short,
    unrefused,
)

THOUGHTS = ("reasoning_content", "reasoning")
"""Where servers put what a model thinks, if they part it from the text."""


def read_answer(
    answer: Answer,
    stream: bool,
    timeout: float,
    key: str,
    broken: tuple[type[Exception], ...],
    served: Callable[[str], None] = lambda model: None,
) -> Iterator[str | Reply]:
    """Yield the pieces of text as they come (of a ``stream``), then the Reply.

    A server that streams unasked, or not where it is asked to, is understood too. ``broken``: the exceptions of a lost
    connection. ``served`` hears the model that the server names. Signs of life alone do not keep a stream going. Raises Failure where a stream ends before the answer does.
    """
    start = answer.deadline.end - timeout
    pieces, gathered = answer.pieces, Gathered(key, served)
    if not (stream and "event-stream" in answer.headers.get("content-type", "").lower()):
        whole = answer.read()
        if not whole.lstrip().startswith((b"data:", b"event:", b":")):
            gathered.add(parsed(whole, key), whole=True)
            reply = gathered.reply()
            if stream and reply.text:
                yield reply.text
            yield reply
            return
        pieces = iter([whole])
    first, done = None, False
    try:
        for data in events(pieces):
            if data == b"[DONE]":
                done = True
                break
            text = gathered.add(parsed(data, key))
            if gathered.moved:
                answer.deadline.end = time.monotonic() + timeout
            if text:
                first = time.monotonic() - start if first is None else first
                yield text
    except broken:
        # Once the server has said why it stopped, the text is whole; only the usage is lost.
        if gathered.finish_reason is None:
            raise
    if not done and gathered.finish_reason is None:
        written = len(gathered.text)
        raise Failure(f"broke off its answer after {written} characters", DROPPED, retries=None)
    yield gathered.reply(first)


def events(body: Iterator[bytes]) -> Iterator[bytes]:
    """The ``data`` of server-sent events. Lines end at LF only: JSON text may hold U+2028.

    >>> list(events(iter([b": hello\\n\\ndata: a", b"b\\r\\n\\r\\ndata: c"])))
    [b'ab', b'c']
    """
    tail, data = b"", []
    for piece in itertools.chain(body, (b"\n\n",)):
        *lines, tail = (tail + piece).split(b"\n")
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].strip())
            elif not line and data:
                yield b"\n".join(data)
                data = []


class Gathered:
    """The pieces of an answer, put together; a whole chat completion is a single piece."""

    def __init__(self, key: str, served: Callable[[str], None] = lambda model: None) -> None:
        self._key, self._served = key, served
        self._texts: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._logprobs: list[float] = []
        self._usage: Mapping[str, Any] = {}
        self.finish_reason: Any = None
        self._thoughts: list[str] = []
        self.moved = False

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts)

    def add(self, document: Any, whole: bool = False) -> str:
        """Take one piece in and return its text, '' if it has none; raises Failure. ``moved`` then says whether
        the piece held anything (text, thoughts, calls)."""
        self.moved = False
        document = unrefused(document, self._key)
        if isinstance(model := document.get("model"), str):
            self._served(short(model, self._key, 100))
        if isinstance(usage := document.get("usage"), Mapping):
            self._usage = usage or self._usage
        choices = document.get("choices")
        if not choices and not whole:  # the piece with the usage, or a greeting
            return ""
        if choices == [] or choices is None:
            raise Failure("answered without any choice, so there is no text", SEE_LOG)
        if not isinstance(choices, list) or not isinstance(choices[0], Mapping):
            raise Failure("answered with choices that are not a list of objects", NOT_OPENAI)
        self.finish_reason = choices[0].get("finish_reason") or self.finish_reason
        self._add_logprobs(choices[0].get("logprobs"))
        message = choices[0].get("message" if whole else "delta")
        if message is None and "text" in choices[0]:  # a plain completion
            message = {"content": choices[0]["text"]}
        if not whole:
            message = message or {}
        if not isinstance(message, Mapping):
            fault = "choice that holds no message" if whole else "piece that is not an object"
            raise Failure(f"answered with a {fault}", NOT_OPENAI)
        if whole and not {"content", "tool_calls", "refusal"} & message.keys():
            raise Failure("answered with a choice that holds no message", NOT_OPENAI)
        self.moved = any(value for name, value in message.items() if name != "role")
        self._add_thoughts(message)
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list):
            raise Failure("answered with tool calls that are not a list", NOT_OPENAI)
        for number, call in enumerate(calls):
            self._add_call(call, number if whole else None)
        if isinstance(refusal := message.get("refusal"), str):
            self._refusal.append(refusal)
        text = _text_of(message.get("content"), "message" if whole else "piece")
        self._texts.append(text)
        return text

    def _add_thoughts(self, message: Mapping[str, Any]) -> None:
        """Some servers send the same thoughts under both names."""
        thoughts = (message.get(name) for name in THOUGHTS)
        self._thoughts += [text for text in thoughts if text and isinstance(text, str)][:1]

    def _add_logprobs(self, logprobs: Any) -> None:
        fields = logprobs if isinstance(logprobs, Mapping) else {}
        tokens = fields.get("content") or fields.get("token_logprobs")  # of plain completions
        for token in tokens if isinstance(tokens, list) else ():
            value = token.get("logprob") if isinstance(token, Mapping) else token
            if isinstance(value, (int, float)):
                self._logprobs.append(float(value))

    def _add_call(self, piece: Any, index: Any) -> None:
        """A streamed call comes in pieces: id and name first, then its arguments bit by bit."""
        function = piece.get("function") if isinstance(piece, Mapping) else None
        whole = index is not None
        if not isinstance(function, Mapping) or (
            whole and not isinstance(function.get("name"), str)
        ):
            raise Failure("answered with a malformed tool call", NOT_OPENAI)
        index = index if whole else piece.get("index")
        if not isinstance(index, int):  # some servers leave it out and send whole calls
            index = len(self._calls) if piece.get("id") else max(len(self._calls) - 1, 0)
        call = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        call["id"] = call["id"] or str(piece.get("id") or "")
        call["name"] += _text_of(function.get("name"), "tool call")
        arguments = function.get("arguments")
        if whole and arguments and not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)  # some servers send the object
        call["arguments"] += _text_of(arguments or None, "tool call")

    def reply(self, first_token_seconds: float | None = None) -> Reply:
        """All pieces as a Reply."""
        text, reason = self.text, self.finish_reason
        if not text and any(self._refusal):
            text, reason = "".join(self._refusal), "refusal"
        calls = [call for _, call in sorted(self._calls.items())]
        hidden = self._usage.get("completion_tokens_details")
        thinking = "".join(self._thoughts)
        if not thinking and (tokens := counted(hidden, "reasoning_tokens")):
            thinking = f"({tokens} tokens, which the server does not show)"
        return Reply(
            text=text,
            tool_calls=tuple(
                ToolCall(call["id"] or f"call_{n}", call["name"], call["arguments"] or "{}")
                for n, call in enumerate(calls)
            ),
            prompt_tokens=counted(self._usage, "prompt_tokens"),
            completion_tokens=counted(self._usage, "completion_tokens"),
            finish_reason=reason if isinstance(reason, str) and reason else "stop",
            first_token_seconds=first_token_seconds,
            logprobs=tuple(self._logprobs),
            thinking=thinking,
        )


def _text_of(value: Any, noun: str) -> str:
    """A message's content: a text, a list of text parts, or nothing; raises Failure for all else."""
    if isinstance(value, list) and all(isinstance(part, Mapping) for part in value):
        value = "".join(str(part.get("text") or "") for part in value)
    if not isinstance(value, (str, type(None))):
        raise Failure(f"answered with a {noun} that is not a text", NOT_OPENAI)
    return value or ""
