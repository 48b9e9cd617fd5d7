"""A language model with scripted replies, for tests, demonstrations and dry runs.

It has no weights and no network, behaves like any backend (stop strings, ``max_tokens``, token counts, streaming, errors
per request), and records its requests.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any, Union

from rallebench.core.choices import SERVER, weigh_options
from rallebench.core.choosing import NO_LOGPROBS, Choose, choice_reply, read_reply
from rallebench.core.errors import BackendError, RalleError, UsageError
from rallebench.core.settings import dataclass_form, declare
from rallebench.core.types import Generate, Reply, digest
from rallebench.llms import LLMS, settings_from
from rallebench.llms._stops import cut_reply

Line = Union[str, Reply, RalleError, Mapping[str, float]]
"""One scripted reply: a text, a whole Reply (for tool calls), an error, or option → probability for a typed decision."""

Script = Union[Sequence[Line], Mapping[str, Line], Callable[[Generate], Line]]

MAX_DELAY = 3600.0


def request_text(request: Generate) -> str:
    """Return all messages of a request, joined by line ends."""
    return "\n".join(message.content for message in request.messages)


def echo(request: Generate) -> str:
    """Return the last message, word for word."""
    return request.messages[-1].content if request.messages else ""


class Scripted:
    """Answers from ``replies``: a list (one reply per request, in order), a mapping (regular expression searched in the prompt →
    reply, the first match wins) or a function.

    ``default``: reply after the end of a list or without a match; without it the result is a BackendError. ``delay``: seconds
    per call of ``generate``, whatever its batch, and per streamed answer. Tokens are words between white space.

    For assertions: ``calls`` (answered requests), ``batches`` (size of each ``generate``), ``requests`` (all requests, in
    order).

    >>> llm = Scripted(["Paris", "Rome"])
    >>> [reply.text for reply in llm.generate([Generate("llm", ()), Generate("llm", ())])]
    ['Paris', 'Rome']
    """

    temperature = 0.0
    calls_tools = True

    def __init__(
        self,
        replies: Script = (),
        name: str = "scripted",
        *,
        default: Line | None = None,
        delay: float = 0.0,
        concurrency: int = 1,
    ) -> None:
        self.name = name
        self.default = default
        self.delay = delay
        self.concurrency = concurrency
        self.about = "says what its script says"
        self.requests: list[Generate] = []
        self.batches: list[int] = []
        self._replies = replies
        self._position = 0
        self._lock = threading.Lock()
        script = {"name": name, "script": _describe(replies), "default": repr(default)}
        self.fingerprint = f"scripted/{name}/{digest(script)[:12]}"

    @property
    def calls(self) -> int:
        """Number of answered requests, streamed ones included."""
        return len(self.requests)

    def generate(self, batch: Sequence[Generate]) -> list[Reply | RalleError]:
        """Answer all requests after ``delay`` seconds."""
        return [reply for _, reply in self._play(batch)]

    def _play(self, batch: Sequence[Generate]) -> list[tuple[Line, Reply | RalleError]]:
        """Return the line and the reply of each request."""
        with self._lock:
            self.batches.append(len(batch))
            self.requests.extend(batch)
        lines = [self._line(request) for request in batch]
        time.sleep(self.delay)
        return [
            (line, _make_reply(request, line)) for request, line in zip(batch, lines, strict=True)
        ]

    def choose(self, batch: Sequence[Choose]) -> list[Reply | RalleError]:
        """Choose by the probabilities of the script; an absent option has none. A text is read."""
        return [
            _make_choice(request, line, reply, self.name)
            for request, (line, reply) in zip(batch, self._play(batch), strict=True)
        ]

    def stream(self, request: Generate) -> Iterator[str | Reply]:
        """Yield the answer word by word over ``delay`` seconds, then the Reply."""
        start = time.monotonic()
        with self._lock:
            self.requests.append(request)
        reply = _make_reply(request, self._line(request))
        if isinstance(reply, RalleError):
            raise reply
        words = re.findall(r"\s*\S+(?:\s+\Z)?|\A\s+\Z", reply.text)
        first = None
        for word in words:
            time.sleep(self.delay / len(words))
            first = time.monotonic() - start if first is None else first
            yield word
        yield replace(reply, first_token_seconds=first)

    def _line(self, request: Generate) -> Line:
        if callable(self._replies):
            try:  # without the lock: the function may wait for another request
                return self._replies(request)
            except RalleError as error:
                return error
        if isinstance(self._replies, Mapping):
            prompt = request_text(request)
            for pattern, line in self._replies.items():
                if re.search(pattern, prompt):
                    return line
            missing = "has no pattern that matches the prompt; add one, or a default"
        else:
            with self._lock:
                position, self._position = self._position, self._position + 1
            if position < len(self._replies):
                return self._replies[position]
            missing = f"has used all its {len(self._replies)} replies; add more, or a default"
        if self.default is not None:
            return self.default
        return BackendError(f"The script of {self.name!r} {missing}.")


def _make_reply(request: Generate, line: Line) -> Reply | RalleError:
    """Return the line as a backend's reply, cut at a stop string and at ``max_tokens`` words."""
    if isinstance(line, RalleError):
        return line
    if isinstance(line, Mapping):
        line = max(line, key=line.__getitem__, default="")
    reply = cut_reply(line if isinstance(line, Reply) else Reply(line), request.stop)
    words = list(re.finditer(r"\S+", reply.text))
    if request.max_tokens is not None and len(words) > request.max_tokens:
        end = words[request.max_tokens - 1].end() if request.max_tokens else 0
        reply = replace(reply, text=reply.text[:end], finish_reason="length")
    return replace(
        reply,
        prompt_tokens=reply.prompt_tokens or len(request_text(request).split()),
        completion_tokens=reply.completion_tokens or len(reply.text.split()),
    )


def _make_choice(
    request: Choose, line: Line, reply: Reply | RalleError, name: str
) -> Reply | RalleError:
    """Return the reply with its choice: by the line's probabilities, or else by its text."""
    if not isinstance(line, Mapping) or isinstance(reply, RalleError):
        return read_reply(reply, request, NO_LOGPROBS.format(llm=name))
    shares = (float(line.get(choice, 0.0)) for choice in request.choices)
    logprobs = [
        math.log(share) if share > 0 else -math.inf if share == 0 else math.nan for share in shares
    ]
    try:
        return choice_reply(weigh_options(request.choices, logprobs, SERVER), reply)
    except RalleError as error:
        return error


def _describe(replies: Script) -> Any:
    """Return a script as JSON, for the fingerprint. A function counts with its name and byte code, without its closure."""
    if isinstance(replies, Mapping):
        return [[pattern, repr(line)] for pattern, line in replies.items()]
    if not callable(replies):
        return [repr(line) for line in replies]
    place = f"{getattr(replies, '__module__', '')}.{getattr(replies, '__qualname__', type(replies).__qualname__)}"
    code = getattr(replies, "__code__", None)
    return [place, *_described_code(code)] if isinstance(code, CodeType) else [place]


def _described_code(code: CodeType) -> list[Any]:
    # the repr of an inner function holds its memory address, which changes at every start
    constants = [_described_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


@dataclass(frozen=True)
class ScriptedSettings:
    """Settings of a scripted model."""

    replies: Any = declare(
        object, (), about="a list of texts (or option → probability), or regular expression → text"
    )
    default: str | None = declare(str, None, about="reply after the last one, or without a match")
    echo: bool = declare(bool, False, about="answer with the last message")
    delay: float = declare(float, 0.0, 0, MAX_DELAY, about="seconds per batch")
    concurrency: int = declare(int, 1, 1, 256, about="concurrent requests")


def read_settings(name: str, /, **values: Any) -> ScriptedSettings:
    """Return the settings of the model ``name``. Raises UsageError for the first invalid one."""
    settings = settings_from(ScriptedSettings, name, values)
    replies = settings.replies
    if settings.echo and replies:
        raise UsageError(f"{name!r}: give either replies or echo, not both.")
    by_pattern = isinstance(replies, Mapping)
    texts = replies.values() if by_pattern else replies
    if not isinstance(replies, (Mapping, list, tuple)) or not all(map(_is_line, texts)):
        raise UsageError(
            f"{name!r}: replies must be a list of texts, or an object from pattern to text; a text may be an object from option "
            "to probability."
        )
    for pattern in replies if by_pattern else ():
        try:
            re.compile(pattern)
        except (re.error, TypeError) as error:
            raise UsageError(
                f"{name!r}: {pattern!r} is not a regular expression ({error})."
            ) from None
    return settings


def _is_line(line: object) -> bool:
    """True for a text and for the probabilities of options."""
    return isinstance(line, str) or (
        isinstance(line, Mapping)
        and all(isinstance(share, (int, float)) and 0 <= share <= 1 for share in line.values())
    )


@LLMS.register("scripted", form=dataclass_form(ScriptedSettings), settings=read_settings)
def open_scripted(name: str, /, **settings: Any) -> Scripted:
    """Replies from a list or by pattern, or echoes the prompt; no model: for tests and dry runs."""
    own = read_settings(name, **settings)
    return Scripted(
        echo if own.echo else own.replies,
        name,
        default=own.default,
        delay=own.delay,
        concurrency=own.concurrency,
    )
