"""What one episode has said and spent: asks the model, lets the environment answer, and ends it at its limits."""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.core.text import _IS_CJK
from rallebench.core.types import (
    Evidence,
    Flow,
    Generate,
    Message,
    Note,
    Outcome,
    Passage,
    Question,
    Reply,
    Request,
    Retrieve,
    ToolSpec,
)
from rallebench.environments import Observed
from rallebench.workflows import Limits

SILENT = 3
"""So many empty replies in a row end an episode."""
NO_RESPONSE = "No response"
"""What R-Eval's clients put in the place of a reply that failed."""

Said = Generator[Request, Reply, Reply]


class Ended(Exception):
    """The episode is over before it has an answer; ``reason`` is one of REASONS."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def ending(flow: Flow) -> Flow:
    """The same flow; where it raises Ended, that is its outcome."""
    try:
        return (yield from flow)
    except Ended as end:
        return Outcome("", end.reason)


def estimated(text: str) -> int:
    """About as many tokens as a model's tokenizer makes of a text: one per Chinese or Japanese character, else four characters each.

    >>> estimated("four words of text"), estimated("多瑙河")
    (5, 3)
    """
    wide = 0 if text.isascii() else len(_IS_CJK.findall(text))
    return wide + -(-(len(text) - wide) // 4)


class Talk:
    """One episode's side of the talk with a model and an environment."""

    def __init__(
        self,
        question: Question,
        llm: str,
        limits: Limits,
        *,
        temperature: float = 0.0,
        seed: int | None = None,
        original: bool = False,
    ) -> None:
        self.question, self.llm, self.limits = question, llm, limits
        self.temperature, self.seed, self.original = temperature, seed, original
        self._started = time.monotonic()
        self._spent = self._silent = 0
        self._counted = ("", 0)
        self._passages: dict[str, Passage] = {}

    def say(self, prompt: str, stop: tuple[str, ...] = (), max_tokens: int | None = None) -> Said:
        """Ask with a prompt. Raises Ended at a limit, and where the model stays silent."""
        return self.tell((Message("user", prompt),), stop, max_tokens=max_tokens)

    def tell(
        self,
        messages: tuple[Message, ...],
        stop: tuple[str, ...] = (),
        tools: tuple[ToolSpec, ...] = (),
        max_tokens: int | None = None,
    ) -> Said:
        """Ask with messages. Raises Ended."""
        prompt = messages[0].content if len(messages) == 1 else "\n".join(map(_whole, messages))
        self._check(prompt)
        reply = yield Generate(
            self.llm,
            messages,
            tools,
            max_tokens or self.limits.max_tokens,
            stop,
            self.temperature,
            self.seed,
            evidence=self._evidence(prompt),
        )
        self._spent += (reply.prompt_tokens or self._count(prompt)) + (
            reply.completion_tokens or estimated(reply.text)
        )
        self._counted = (prompt, reply.prompt_tokens)
        self._listen(reply)
        return reply

    def observe(self, answering: Observed) -> Generator[Request, Reply, str]:
        """What the environment answers, noted for the trace. Raises Ended where the environment fails."""
        reply: Reply | None = None
        request: Request | None = None
        try:
            while True:
                request = answering.send(reply) if reply is not None else next(answering)
                reply = yield request
                for hit in reply.hits if isinstance(request, Retrieve) else ():
                    self._passages.setdefault(hit.passage.doc_id, hit.passage)
        except StopIteration as end:
            return str(end.value)
        except RalleError as error:
            failed = str(error)
        except Exception as error:
            failed = f"The tool failed: {type(error).__name__}: {str(error)[:300]}"
        yield Note(failed)
        raise Ended("tool_error")

    def _check(self, prompt: str) -> None:
        limits = self.limits
        if limits.seconds and time.monotonic() - self._started >= limits.seconds:
            raise Ended("time_limit")
        if limits.tokens and self._spent >= limits.tokens:
            raise Ended("token_limit")
        if limits.context and self._count(prompt) > limits.context:
            raise Ended("context_limit")

    def _count(self, prompt: str) -> int:
        """Tokens of a prompt: the backend's own count of the last one as far as this one repeats it, the rest estimated."""
        last, count = self._counted
        if count and prompt.startswith(last):
            return count + estimated(prompt[len(last) :])
        return estimated(prompt)

    def _listen(self, reply: Reply) -> None:
        text = reply.text.strip()
        if text == NO_RESPONSE:
            raise Ended("model_error")
        self._silent = 0 if text or reply.tool_calls else self._silent + 1
        if self._silent >= SILENT and not self.original:
            raise Ended("model_error")

    def _evidence(self, prompt: str) -> Evidence:
        shown = tuple(
            passage
            for passage in self._passages.values()
            if passage.text and passage.text in prompt
        )
        return Evidence(self.question.text if self.question.text in prompt else "", shown)


def _whole(message: Message) -> str:
    calls = "".join(f"\n{call.name} {call.arguments}" for call in message.tool_calls)
    return message.content + calls


LONGEST = 20_000
"""Characters of a line that is kept of a reply."""


def first_line(text: str) -> str:
    """The first line that is not blank: what a stop at the end of a line leaves, also where the model knows no stop.

    >>> first_line("\\n  Search[Ada] \\nObservation 1: …")
    'Search[Ada]'
    """
    for line in text.split("\n"):
        if line.strip():
            return line.strip()[:LONGEST]
    return ""


MAX_ARGUMENT = 2_000
"""Characters of an argument that a tool is asked with."""


def too_long(value: Any) -> str:
    """An observation if an argument is longer than a tool takes, '' otherwise."""
    if isinstance(value, str):
        length = len(value)
    elif isinstance(value, (dict, list)):
        return next(
            filter(
                None,
                (too_long(part) for part in (value.values() if isinstance(value, dict) else value)),
            ),
            "",
        )
    else:
        return ""
    return (
        f"The argument has {length:,} characters; use at most {MAX_ARGUMENT:,}."
        if length > MAX_ARGUMENT
        else ""
    )


_IMITATED = re.compile(r"\s*\bObservation(?:\s*\d+)?\s*:.*", re.DOTALL)


def without_imitation(text: str) -> str:
    """A reply up to where the model begins to write observations of its own.

    >>> without_imitation("Search[Ada] Observation 1: Ada was …")
    'Search[Ada]'
    """
    return _IMITATED.sub("", text)
