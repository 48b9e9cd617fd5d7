"""Parsing of server answers, whole or streamed, without trusting them: JSON → pieces of text and a Reply, or a Failure."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rallebench.core.surrogates import join_pairs
from rallebench.core.types import Reply
from rallebench.http.client import Answer, Server
from rallebench.http.failures import (
    DROPPED,
    NOT_OPENAI,
    SEE_LOG,
    Failure,
    parse_json,
    reported_prompt_tokens,
    reported_tokens,
    short,
)
from rallebench.http.reported import require_success
from rallebench.llms import LOWEST_LOGPROB
from rallebench.llms._openai.choosing import TokenPlace, choice_from_places, read_places
from rallebench.llms._openai.tool_calls import GatheredCalls

THOUGHTS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
"""Fields in which servers send a model's thoughts separately from the text."""

THOUGHT_PART = re.compile("reason|think|thought|summary")
"""Types of message parts that do not belong to the answer."""

TEXT_FIELDS = ("thinking", "reasoning", "text", "value", "content", "summary")
"""Keys under which a part holds its text."""

DEEPEST = 6
"""Maximum nesting depth at which a part's text is searched."""

BROKEN = re.compile(
    "error|abort|cancel|fail|overload|insufficient|time_?d?_?out|interrupt|unavailable|crash|exception|terminat"
    "|internal|preempt|evict|disconnect|kill|out_of_memory|^oom|malformed|incomplete"
)
"""Finish reasons of an answer that broke off, even if it has text."""

ENDED = re.compile("^(stop|eos|end|completed?$|finish(ed)?$)")
"""Finish reasons of a complete answer, which may therefore be empty."""

HOLDS = ("content", "tool_calls", "refusal")
"""A message must have at least one of these fields."""

CUT_OFF = re.compile("^(length|max_|model_length|token_limit)")
WITHHELD = re.compile("content_?filter|safety|sensitive|recitation|blocklist|prohibited|spii")
CALLING = re.compile("^(tool|function)_")

NO_CHOICE = "answered without any choice, so there is no text"
FILTERED = "Its content filter refused the prompt or the answer; change the prompt, the filter or the model."

BROKEN_RETRIES = 2
"""Number of retries after an answer without a text or a known finish reason."""


def read_answer(
    answer: Answer,
    stream: bool,
    server: Server,
    served: Callable[[str], None] = lambda model: None,
    choices: tuple[str, ...] = (),
) -> Iterator[str | Reply]:
    """Yield the pieces of text of a ``stream`` as they arrive, then the Reply.

    Streaming servers are understood even if no stream was requested, and vice versa. ``served`` receives the model name
    that the server reports. ``choices``: the options of a typed decision, () without one. Keep-alive messages alone do not extend the timeout of a stream. Raises Failure if a stream
    ends early, and for every response that is not an answer; see :meth:`Gathered.reply`.
    """
    timeout = server.endpoint.timeout
    start = answer.deadline.end - timeout
    pieces, gathered = answer.pieces, Gathered(server, answer.headers, served, choices)
    if not (stream and "event-stream" in answer.headers.get("content-type", "").lower()):
        whole = answer.read()
        if not whole.lstrip().startswith((b"data:", b"event:", b":")):
            gathered.add(parse_json(whole, server.key), whole=True)
            reply = gathered.reply()
            if stream and reply.text:
                yield reply.text
            yield reply
            return
        pieces = iter([whole])
    first, done = None, False
    try:
        for kind, data in events(pieces):
            if data.strip(b'" ').upper() == b"[DONE]":
                done = True
                break
            if kind == b"ping":
                continue
            if kind == b"error":
                gathered.add_error(data)
            text = gathered.add(parse_json(data, server.key))
            if gathered.moved:
                answer.deadline.end = time.monotonic() + timeout
            if text:
                first = time.monotonic() - start if first is None else first
                yield text
    except server.lost:
        # Once the server has sent a finish reason, the text is complete; only the usage is lost.
        if gathered.finish_reason is None:
            raise
    if not done and gathered.finish_reason is None:
        written = len(gathered.text)
        raise Failure(f"broke off its answer after {written} characters", DROPPED, retries=None)
    yield gathered.reply(first)


def events(body: Iterator[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield ``event`` and ``data`` of server-sent events. Lines end at LF, CR or both: JSON text may contain U+2028.

    An object on a line of its own, with or without ``data:``, is an event too: some servers report errors this way.

    >>> list(events(iter([b": hello\\n\\nevent: error\\ndata: a", b"b\\r\\n\\r\\ndata: c"])))
    [(b'error', b'ab'), (b'', b'c')]
    >>> list(events(iter([b'data: {"a": 1}\\r', b'\\n{"error": 2}\\r\\n\\r\\n'])))
    [(b'', b'{"a": 1}'), (b'', b'{"error": 2}')]
    """
    tail, kind, data = b"", b"", []
    after_cr, begun = False, False
    for piece in itertools.chain(body, (b"\n\n",)):
        if after_cr and piece:
            piece = piece.removeprefix(b"\n")
        after_cr = piece.endswith(b"\r") or (after_cr and not piece)
        *lines, tail = _LINE_END.split(tail + piece)
        for line in lines:
            line, begun = (line if begun else line.removeprefix(b"\xef\xbb\xbf")), True
            if line.startswith(b"data:"):
                data.append(line[5:].strip())
            elif line.startswith(b"event:"):
                kind = line[6:].strip()
            elif line.startswith(b"error:"):
                yield b"error", line[6:].strip()
            elif line.startswith(b"{"):
                data.append(line.strip())
            elif not line:
                if any(data) or kind == b"error":
                    whole = [line for line in data if line]
                    apart = all(map(_WHOLE_LINE.fullmatch, whole)) and len(whole) > 1
                    yield from ((kind, line) for line in (whole if apart else [b"\n".join(data)]))
                kind, data = b"", []


_LINE_END = re.compile(rb"\r\n|\n|\r")
_WHOLE_LINE = re.compile(rb'\{.*\}|"?\[DONE\]"?')


class Gathered:
    """Assembles an answer from its pieces; a complete chat completion is a single piece."""

    def __init__(
        self,
        server: Server,
        headers: Mapping[str, str],
        served: Callable[[str], None] = lambda model: None,
        choices: tuple[str, ...] = (),
    ) -> None:
        self._server, self._headers, self._key = server, headers, server.key
        self._served = served
        self._texts: list[str] = []
        self._refusal: list[str] = []
        self._calls = GatheredCalls()
        self._logprobs: list[float] = []
        self._choices, self._places = choices, list[TokenPlace]()
        self._usage: Mapping[str, Any] = {}
        self._timings: Any = None
        self._chosen = self._held = self._wrote = False
        self.finish_reason: str | None = None
        self._native_reason = ""
        self._thoughts: list[str] = []
        self.moved = False

    @property
    def text(self) -> str:
        """The text so far."""
        return join_pairs("".join(self._texts))

    def add(self, document: Any, whole: bool = False) -> str:
        """Add a piece and return its text, '' if it has none. Raises Failure.

        Afterwards ``moved`` is True if the piece contained anything (text, thoughts, calls).
        """
        self.moved = False
        document = require_success(document, self._server.endpoint, self._key, self._headers)
        if isinstance(model := document.get("model"), str):
            self._served(short(model, self._key, 100))
        if isinstance(usage := document.get("usage"), Mapping):
            self._usage = usage or self._usage
        self._timings = document.get("timings", self._timings)
        choices = document.get("choices")
        if not choices and not whole:  # a piece with the usage, or a greeting
            return ""
        if choices == [] or choices is None:
            words = f" ({short(document, self._key, 120)})" if document else ""
            raise Failure(NO_CHOICE + words, SEE_LOG, retries=BROKEN_RETRIES)
        if not isinstance(choices, list) or not isinstance(choices[0], Mapping):
            raise Failure("answered with choices that are not a list of objects", NOT_OPENAI)
        self._chosen = True
        self.finish_reason = _reason(choices[0].get("finish_reason")) or self.finish_reason
        native = _reason(
            choices[0].get("native_finish_reason")
        )  # from the provider behind a router
        self._native_reason = native or self._native_reason
        self._add_logprobs(choices[0].get("logprobs"))
        message = choices[0].get("message" if whole else "delta")
        if message is None and "text" in choices[0]:  # a plain completion
            message = {"content": choices[0]["text"]}
        if not whole:
            message = message or {}
        if not isinstance(message, Mapping):
            fault = "choice that holds no message" if whole else "piece that is not an object"
            raise Failure(f"answered with a {fault}", NOT_OPENAI)
        self.moved = any(value for name, value in message.items() if name != "role")
        content = message.get("content")
        text, thoughts, refused = _read_content(content, "message" if whole else "piece")
        self._refusal.append(refused)
        self._held = self._held or not {*HOLDS, *THOUGHTS}.isdisjoint(message)
        self._wrote = self._wrote or _is_text(content)
        self._add_thoughts(message, thoughts)
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list):
            raise Failure("answered with tool calls that are not a list", NOT_OPENAI)
        for number, call in enumerate(calls):
            self._calls.add(call, number if whole else None)
        if isinstance(refusal := message.get("refusal"), str):
            self._refusal.append(refusal)
        self._texts.append(text)
        return text

    def add_error(self, data: bytes) -> None:
        """Raise the Failure that a stream's ``error`` event reports, as JSON or plain text."""
        error: Any = data.decode("utf-8", "replace")
        with contextlib.suppress(Failure):
            error = parse_json(data, self._key)
        inner = error.get("error") if isinstance(error, Mapping) else None
        require_success({"error": inner or error or "error"}, self._server.endpoint, self._key)

    def _add_thoughts(self, message: Mapping[str, Any], thoughts: str) -> None:
        """Add thoughts once: some servers send the same thoughts under several names."""
        named = (_flat(message.get(name)) for name in THOUGHTS)
        self._thoughts.append(next(filter(None, (*named, thoughts)), ""))

    def _add_logprobs(self, logprobs: Any) -> None:
        if self._choices:
            self._places += read_places(logprobs)
        fields = logprobs if isinstance(logprobs, Mapping) else {}
        tokens = fields.get("content") or fields.get(
            "token_logprobs"
        )  # format of plain completions
        for token in tokens if isinstance(tokens, list) else ():
            value = token.get("logprob") if isinstance(token, Mapping) else token
            if isinstance(value, (int, float)):
                if not value < math.inf:
                    raise Failure("answered with log-probabilities that are not numbers", SEE_LOG)
                self._logprobs.append(max(float(value), LOWEST_LOGPROB))

    def _check(self) -> None:
        """Raise Failure unless this is an answer: a text, a call or a refusal that did not break off.

        A text that was cut off or partly withheld is an answer; its ``finish_reason`` says so. An empty text is an answer only
        if the server says that the model ended it (``stop``). ``core.thinking`` handles a model that only thought.
        """
        reason = self.finish_reason or ""
        words = f"finish_reason {reason!r}" if reason else "no finish_reason"
        word, native = _word(reason), _word(self._native_reason)
        if native and (BROKEN.search(native) or not self.text.strip()):
            word, words = native, f"native_finish_reason {self._native_reason!r}"
        if not self._chosen:
            raise Failure(NO_CHOICE, SEE_LOG, retries=BROKEN_RETRIES)
        if BROKEN.search(word):
            raise Failure(f"broke off its answer ({words})", SEE_LOG, retries=None)
        if self.text.strip() or self._calls or any(self._refusal):
            return
        if WITHHELD.search(word):
            raise Failure(f"withheld its answer ({words})", FILTERED)
        if CUT_OFF.search(word):
            if not any(self._thoughts) and not self._hidden_thoughts():
                raise Failure("reached max_tokens before it wrote anything", "Raise max_tokens.")
        elif not self._held:
            raise Failure("answered with a choice that holds no message", NOT_OPENAI)
        elif CALLING.search(word):
            raise Failure("announced a tool call and sent none", SEE_LOG, retries=BROKEN_RETRIES)
        elif not ENDED.search(word):
            raise Failure(f"gave no text and {words}", SEE_LOG, retries=BROKEN_RETRIES)
        elif not self._wrote and not any(self._thoughts) and not self._hidden_thoughts():
            raise Failure(
                f"gave no text, no call and no refusal ({words})", SEE_LOG, retries=BROKEN_RETRIES
            )

    def _hidden_thoughts(self) -> int:
        """Number of thought tokens that the server counts but does not show."""
        return reported_tokens(self._usage.get("completion_tokens_details"), "reasoning_tokens")

    def reply(self, first_token_seconds: float | None = None) -> Reply:
        """Return all pieces as a Reply. Raises Failure if they are not an answer; see :meth:`_check`."""
        self._check()
        text, reason = self.text, self.finish_reason
        if not text and any(self._refusal):
            text, reason = "".join(self._refusal), "refusal"
        thinking = join_pairs("".join(self._thoughts))
        if not thinking and (tokens := self._hidden_thoughts()):
            thinking = f"({tokens} tokens, which the server does not show)"
        choice = None
        if self._choices and reason != "refusal":
            choice = choice_from_places(self._places, text, bool(thinking), self._choices)
        return Reply(
            text=text,
            tool_calls=self._calls.calls(),
            prompt_tokens=reported_prompt_tokens(self._usage, self._timings),
            completion_tokens=reported_tokens(self._usage, "completion_tokens"),
            finish_reason=reason or "stop",
            first_token_seconds=first_token_seconds,
            logprobs=tuple(self._logprobs),
            thinking=thinking,
            choice=choice,
        )


def _reason(value: Any) -> str:
    """Return a finish reason as text; some servers send an object with its type."""
    value = value.get("type") if isinstance(value, Mapping) else value
    return value if isinstance(value, str) else ""


def _word(reason: str) -> str:
    return reason.lower().replace("-", "_").replace(" ", "_")


def _read_content(value: Any, noun: str) -> tuple[str, str, str]:
    """Return the text of a message's content (a text, a list of parts, or null), and the thoughts and refusals among the
    parts.

    Raises Failure.
    """
    thoughts, refusals = "", ""
    if isinstance(value, list) and all(isinstance(part, Mapping) for part in value):
        thoughts = "".join(_flat(part) for part in value if _is_thought(part))
        refusals = "".join(_flat(part.get("refusal")) for part in value)
        value = "".join(_flat(part.get("text")) for part in value if not _is_thought(part))
    if not isinstance(value, (str, type(None))):
        raise Failure(f"answered with a {noun} that is not a text", NOT_OPENAI)
    return value or "", thoughts, refusals


def _is_text(content: Any) -> bool:
    """Return whether a message's content is a text, even an empty one; null and parts of other types are not."""
    if not isinstance(content, list):
        return isinstance(content, str)
    parts = (part for part in content if isinstance(part, Mapping) and not _is_thought(part))
    return any(isinstance(part.get("text"), str) for part in parts)


def _is_thought(part: Mapping[str, Any]) -> bool:
    """Return whether a part of a message holds thoughts, by its type or a flag of its own."""
    return part.get("thought") is True or bool(THOUGHT_PART.search(str(part.get("type") or "")))


def _flat(value: Any, depth: int = 0) -> str:
    """Return the text in a text, list or object, joined."""
    if isinstance(value, str) or depth > DEEPEST:
        return value if isinstance(value, str) else ""
    if isinstance(value, list):
        return "".join(_flat(part, depth + 1) for part in value)
    if not isinstance(value, Mapping):
        return ""
    fields = (value[name] for name in TEXT_FIELDS if name in value)
    return next(filter(None, (_flat(field, depth + 1) for field in fields)), "")
