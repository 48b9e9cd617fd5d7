"""An agent's episode: its conversation with the model and the environment, which counts tokens and ends at the limits."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.core.prompts import fill_template
from rallebench.core.settings import Setting
from rallebench.core.text import CJK_CHARACTER
from rallebench.core.types import (
    Evidence,
    Flow,
    Generate,
    Json,
    Message,
    Note,
    Outcome,
    Passage,
    Question,
    Reply,
    Request,
    Retrieve,
    SubFlow,
    ToolSpec,
)
from rallebench.environments import Environment, Observed
from rallebench.workflows import WORKFLOWS, EpisodeLimits, Shot

SILENT = 3
"""Number of consecutive empty replies that ends an episode."""
NO_RESPONSE = "No response"
"""Text of a failed reply in R-Eval's clients."""


class EpisodeEnd(Exception):
    """The end of an episode without an answer; ``reason``: a key of REASONS."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def register_agent(
    name: str,
    *,
    form: Mapping[str, Setting],
    prompts: tuple[str, ...],
    paper: str,
    needs_env: bool = True,
    needs_python: bool = False,
    calls: bool = False,
) -> Callable[[Callable[..., Flow]], Callable[..., Flow]]:
    """Register ``flow(conversation, **settings)`` as a workflow; an EpisodeEnd becomes its outcome.

    ``settings``: the settings of its form that the conversation does not use itself.
    """

    def register(flow: Callable[..., Flow]) -> Callable[..., Flow]:
        @wraps(flow)
        def workflow(question: Question, *, protocol: str = "auto", **options: Any) -> Flow:
            names = [field.name for field in fields(Conversation)]
            mine = {name: options.pop(name) for name in names if name in options}
            try:
                return (yield from flow(Conversation(question, **mine), **options))
            except EpisodeEnd as end:
                return Outcome("", end.reason)

        traits: dict[str, Any] = {"prompts": prompts, "paper": paper, "calls": calls}
        WORKFLOWS.register(
            name, form=form, needs_env=needs_env, needs_python=needs_python, **traits
        )(workflow)
        return workflow

    return register


def estimate_tokens(text: str) -> int:
    """Estimate a text's tokens: one per Chinese or Japanese character, else one per four characters.

    >>> estimate_tokens("four words of text"), estimate_tokens("多瑙河")
    (5, 3)
    """
    wide = 0 if text.isascii() else len(CJK_CHARACTER.findall(text))
    return wide + -(-(len(text) - wide) // 4)


@dataclass
class Conversation:
    """The conversation of one episode with a model and an environment.

    ``prompts``: file name → text. ``native``: True if the model calls tools itself. ``env``: None for an agent without
    one.
    """

    question: Question
    llm: str
    limits: EpisodeLimits
    prompts: Mapping[str, str]
    shots: Sequence[Shot] = ()
    env: Environment = None  # type: ignore[assignment]  # set for every agent that needs one
    native: bool = False
    temperature: float = 0.0
    seed: int | None = None
    compat: str = "ours"

    def __post_init__(self) -> None:
        self.original = self.compat == "original"
        self._started = time.monotonic()
        self._spent = self._silent = 0
        self._counted = ("", 0)
        self._passages: dict[str, Passage] = {}

    def head(self, prompt: str, rendered: Sequence[str], **values: str) -> str:
        """Fill the prompt with the question, demonstrations and ``values``."""
        block = "\n\n".join(rendered)
        examples = f"Here are some examples:\n{block}\n(END OF EXAMPLES)\n" if rendered else ""
        return fill_template(
            self.prompts[prompt], {"examples": examples, "question": self.question.text, **values}
        )

    def ask(
        self,
        prompt: str,
        stop: tuple[str, ...] = (),
        max_tokens: int | None = None,
        forced: Json | None = None,
    ) -> SubFlow[Reply]:
        """Send a prompt. Raises EpisodeEnd at a limit, and after too many empty replies."""
        return self.send((Message("user", prompt),), stop, max_tokens=max_tokens, forced=forced)

    def send(
        self,
        messages: tuple[Message, ...],
        stop: tuple[str, ...] = (),
        tools: tuple[ToolSpec, ...] = (),
        max_tokens: int | None = None,
        forced: Json | None = None,
    ) -> SubFlow[Reply]:
        """Send messages. ``forced``: see Generate; R-Eval's code did not enforce a format. Raises EpisodeEnd."""
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
            forced={} if self.original or forced is None else forced,
            roomy=not self.original,
        )
        self._spent += (reply.prompt_tokens or self._count(prompt)) + (
            reply.completion_tokens or estimate_tokens(reply.text)
        )
        self._counted = (prompt, reply.prompt_tokens)
        self._check_reply(reply)
        return reply

    def observe(self, answering: Observed) -> SubFlow[str]:
        """Return the environment's observation. If the environment fails, adds a note to the trace and raises EpisodeEnd."""
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
        raise EpisodeEnd("tool_error")

    def _check(self, prompt: str) -> None:
        limits = self.limits
        if limits.seconds and time.monotonic() - self._started >= limits.seconds:
            raise EpisodeEnd("time_limit")
        if limits.tokens and self._spent >= limits.tokens:
            raise EpisodeEnd("token_limit")
        if limits.context and self._count(prompt) > limits.context:
            raise EpisodeEnd("context_limit")

    def _count(self, prompt: str) -> int:
        """Count the tokens of a prompt: the backend's count of the last prompt for the repeated part, an estimate for the
        rest.
        """
        last, count = self._counted
        if count and prompt.startswith(last):
            return count + estimate_tokens(prompt[len(last) :])
        return estimate_tokens(prompt)

    def _check_reply(self, reply: Reply) -> None:
        text = reply.text.strip()
        if text == NO_RESPONSE:
            raise EpisodeEnd("model_error")
        self._silent = 0 if text or reply.tool_calls else self._silent + 1
        if self._silent >= SILENT and not self.original:
            raise EpisodeEnd("model_error")

    def _evidence(self, prompt: str) -> Evidence:
        seen = tuple(p for p in self._passages.values() if p.text and p.text in prompt)
        return Evidence(self.question.text if self.question.text in prompt else "", seen)


def _whole(message: Message) -> str:
    calls = "".join(f"\n{call.name} {call.arguments}" for call in message.tool_calls)
    return message.content + calls


MAX_LINE_CHARACTERS = 20_000
"""Maximum characters of a line of a reply."""


def first_line(text: str) -> str:
    """Return the first non-blank line, like a stop at the end of a line.

    >>> first_line("\\n  Search[Ada] \\nObservation 1: …")
    'Search[Ada]'
    """
    for line in text.split("\n"):
        if line.strip():
            return line.strip()[:MAX_LINE_CHARACTERS]
    return ""


MAX_ARGUMENT = 2_000
"""Maximum characters of a tool's argument."""


def too_long(value: Any) -> str:
    """Return the observation for an argument that is too long for a tool, '' for any other."""
    if isinstance(value, (dict, list)):
        parts = value.values() if isinstance(value, dict) else value
        return next(filter(None, map(too_long, parts)), "")
    if not isinstance(value, str) or len(value) <= MAX_ARGUMENT:
        return ""
    return f"The argument has {len(value):,} characters; use at most {MAX_ARGUMENT:,}."


_IMITATED = re.compile(r"\s*\bObservation(?:\s*\d+)?\s*:.*", re.DOTALL)


def without_imitation(text: str) -> str:
    """Remove observations that the model invented.

    >>> without_imitation("Search[Ada] Observation 1: Ada was …")
    'Search[Ada]'
    """
    return _IMITATED.sub("", text) if "Observation" in text else text
