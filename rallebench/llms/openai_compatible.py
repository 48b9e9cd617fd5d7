"""Any server with OpenAI's API for chat or plain completions: OpenAI, vLLM, llama.cpp, Ollama, LM Studio …

This backend decides how many requests are in flight and which to retry, reads answers without trusting them, and turns
every failure into a sentence. The key is read from the environment and only sent in the Authorization header:
OPENAI_API_KEY to OpenAI and to this machine; any other server gets the key in the variable that ``api_key_env`` names,
or none.

A message with the role ``tool`` that does not name the call it answers is sent as a ``user`` message.

The option ``response_format`` asks for JSON that fits a schema. If a server does not support it, and for all other
formats, the format is described in the prompt; the answer is checked, and the reply's note says what does not fit. Azure
is reached through its ``/openai/v1`` address.

A base model, which has no chat template, is asked at the plain completion endpoint (``api: completions``): the messages
become one text, as for a local model without a chat template.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from rallebench.core.choosing import Choose, choice_reply, read_reply
from rallebench.core.errors import BackendError, RalleError
from rallebench.core.formats import NAMES, SCHEMA, read_format
from rallebench.core.settings import dataclass_form
from rallebench.core.stopping import Stop, obey, stop_of_thread
from rallebench.core.structured import AROUND
from rallebench.core.thinking import generate_answers
from rallebench.core.types import Generate, Reply, digest
from rallebench.http.client import Server
from rallebench.http.endpoint import key_from_environment
from rallebench.http.failures import Failure, estimated_tokens, fewest_tokens
from rallebench.http.limiter import Permit, Status
from rallebench.http.refusals import REFUSING
from rallebench.http.reported import is_overflow
from rallebench.llms import LLMS
from rallebench.llms._calls_in_text import before_calls, parse_calls
from rallebench.llms._openai.abilities import IGNORED, Abilities, in_prompt
from rallebench.llms._openai.choosing import request_choices, with_logprobs
from rallebench.llms._openai.refusals import Key, Refusals
from rallebench.llms._openai.replies import read_answer
from rallebench.llms._openai.requests import (
    SERVER_TEMPERATURE,
    Settings,
    body_text,
    insisted_settings,
    read_settings,
    request_body,
)
from rallebench.llms._openai.sampling import SampledTexts, ServedModel
from rallebench.llms._stops import cut_at, cut_stream

REUSE_SECONDS = 0.05
"""Seconds to wait for the end of a stream after its last event, so that the connection can be reused."""

NO_SUCH_FORMAT = "OpenAI's API has no such response_format"
"""Reason for describing choices, regular expressions and grammars in the prompt."""

NO_COUNTS = "The server reported no token counts."
IGNORES_STOP = (
    "The server ignores stop: it wrote on, and what came after the stop string was cut off."
)
NO_TOOLS = "Have the functions called in text, or choose a model or a server that takes tools."
NO_CALL = "The server ignores tool_choice: the answer holds no call."
FEW, LONG_PROMPT = 0.75, 200
"""A server that counts fewer tokens than this share of the words of a prompt this long has cut it: a word has at least a
token.
"""

LONGEST_STOP = 60
"""Maximum characters of a stop string and the rest of its token, which some servers leave at the end of the text."""


class _PendingRequest:
    """One request with all its tries.

    ``why``: reason for describing the format in the prompt; ``lost``: the reply without the format, whose tokens count.
    ``refused``: fields that the server has refused so far.
    """

    def __init__(self, request: Generate, body: Mapping[str, Any], name: str, stream: bool) -> None:
        self.body, self.stream = body, stream
        self.tools = {tool.name for tool in request.tools}
        self.must_call = bool(self.tools) and body.get("tool_choice") not in (None, "auto", "none")
        self.form = read_format(repr(name), body.get("response_format"))
        other = self.form is not None and self.form.kind != SCHEMA
        self.why = NO_SUCH_FORMAT if other else ""
        self.lost: Reply | None = None
        self.refused: list[Key] = []
        self.stop, self.choices = request.stop, request_choices(request)
        self.prompt = body_text(body)
        self.prompt_tokens = estimated_tokens(self.prompt)


class OpenAICompatible:
    """One model at one endpoint. Thread-safe; at most ``settings.concurrency`` requests are in flight, fewer while the server is
    overloaded.

    ``concurrency``: useful number of threads, slightly more than requests in flight, because a thread that pauses before a
    retry occupies no place. ``prices``: US dollars per million tokens of ``prompt`` and ``completion``, None if not set.
    ``temperature`` and ``seed``: defaults for a request without them.
    """

    def __init__(self, name: str, settings: Settings, key: str) -> None:
        self.name = name
        self.settings = settings
        self.concurrency = settings.concurrency + settings.concurrency // 8
        self.prices: Mapping[str, float] | None = settings.prices
        temperature, seed = settings.defaults["temperature"], settings.defaults.get("seed")
        known = isinstance(temperature, (int, float))
        self.temperature = float(temperature) if known else SERVER_TEMPERATURE
        self.seed = seed if isinstance(seed, int) else None
        self.fingerprint = _fingerprint(settings)
        self.insists = insisted_settings(settings)
        self._server = Server(name, settings, key)
        self._refusals = Refusals(settings)
        self._abilities = Abilities(settings, self._server, self._refusals)
        self._sampled, self._served = SampledTexts(), ServedModel()

    @property
    def about(self) -> str:
        """Model, address, and current restrictions."""
        where = f"{self.settings.model} at {self.settings.base_url}"
        drops = self._abilities.takes_tools is False
        tools = "drops tools: functions are called in text" if drops else ""
        form = "ignores response_format" if self._abilities.ignores_format else ""
        if self.settings.plain:
            tools = "plain completions: functions are called in text"
        refused = f"refuses {', '.join(self.refuses)}" if self.refuses else ""
        seeds = "keeps to no seed" if self._sampled.fault else ""
        return "; ".join(filter(None, [where, tools, form, refused, seeds, str(self.status())]))

    @property
    def refuses(self) -> tuple[str, ...]:
        """The fields that the server refuses for this model, which are left out."""
        return self._refusals.fields

    @property
    def calls_tools(self) -> bool:
        """True if the model reads the tools that it is sent. Asks the server at the first use, once per process."""
        return self._abilities.ask_for_tools()

    def trouble(self, work: Stop) -> str:
        """The reason why a request of this work is being retried, "" if none is."""
        return self._server.trouble(work)

    def status(self) -> Status:
        """Current limit of requests in flight at this address, and the reason."""
        return self._server.limiter.status()

    def __repr__(self) -> str:
        return f"<{self.fingerprint}>"

    def close(self) -> None:
        """Close the connections and wake the threads that wait for a retry."""
        self._server.close()

    def generate(self, batch: Sequence[Generate]) -> list[Reply | RalleError]:
        """Answer all requests concurrently: the next starts as soon as one is done."""
        if len(batch) <= 1 or self.concurrency == 1:
            return [self._answer(request) for request in batch]
        threads = min(self.concurrency, len(batch))
        pool = ThreadPoolExecutor(threads, f"llm-{self.name}", obey, (stop_of_thread(),))
        try:
            return list(pool.map(self._answer, batch))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def choose(self, batch: Sequence[Choose]) -> list[Reply | RalleError]:
        """Return the choice of each request by the log-probabilities of the most probable tokens, or by its text if the
        server gives none, or too few of them are of the options."""
        sent = [with_logprobs(request, self.settings.plain) for request in batch]
        replies = generate_answers(self, sent, self.name)
        return [
            self._read_choice(reply, request) for reply, request in zip(replies, batch, strict=True)
        ]

    def _read_choice(self, reply: Reply | RalleError, request: Choose) -> Reply | RalleError:
        if isinstance(reply, RalleError):
            return reply
        if reply.choice is not None:
            return replace(choice_reply(reply.choice, reply), logprobs=())
        few = "too little probability for the options" if reply.logprobs else "no log-probabilities"
        why = f"{self.name!r} gave {few}, so its text was read."
        return read_reply(replace(reply, logprobs=()), request, why)

    def stream(self, request: Generate) -> Iterator[str | Reply]:
        """Yield pieces of text, then the Reply. A stream that breaks off raises BackendError.

        A person is waiting, so a stream does not queue behind the requests of a run. With ``response_format`` the text comes
        in one piece, after it was checked.
        """
        return self._ask(request, stream=True)

    def _answer(self, request: Generate) -> Reply | RalleError:
        try:
            *_, reply = self._ask(request, stream=False)
        except RalleError as error:
            return error
        assert isinstance(reply, Reply)
        return reply

    def _ask(self, request: Generate, *, stream: bool) -> Iterator[str | Reply]:
        body = request_body(self.name, request, self.settings)
        pending = _PendingRequest(request, body, self.name, stream)
        limit = body.get("max_tokens") or body.get("max_completion_tokens") or 0
        with contextlib.closing(
            self._try_all(pending, pending.prompt_tokens + float(limit))
        ) as pieces:
            yield from cut_stream(pieces, request.stop)

    def _try_all(
        self, pending: _PendingRequest, tokens: float
    ) -> Generator[str | Reply, None, None]:
        """Make all tries; if the second request for a schema fails, yield the reply to the first, which is better than
        none.
        """
        try:
            yield from self._server.attempts(
                lambda permit: self._once(pending, permit), tokens, pending.stream
            )
        except BackendError:
            if pending.lost is None:
                raise
            if pending.stream:
                yield pending.lost.text
            yield pending.lost

    def _once(self, pending: _PendingRequest, permit: Permit) -> Iterator[str | Reply]:
        """Make one try: yield pieces of text if it is a stream, then the Reply. Raises Failure."""
        form, stream, server = pending.form, pending.stream, self._server
        why = pending.why or (self._abilities.why_no_format(form) if form else "")
        body = in_prompt(pending.body, form) if form is not None and why else pending.body
        fitted = self._refusals.fit(body, stream, pending.refused)
        try:
            with server.request("POST", self.settings.path, fitted.body) as answer:
                server.limiter.read_headers(answer.headers, permit)
                names, written, handed = [""], "", ""
                sends = fitted.body["stream"]
                for piece in read_answer(answer, sends, server, names.append, pending.choices):
                    if isinstance(piece, str):
                        written += piece
                        if form is not None:  # the text to return may differ from the generated one
                            continue
                        certain = before_calls(written) if pending.tools else written
                        if more := certain[len(handed) :]:
                            handed += more
                            yield more
                        continue
                    reply, fits = _finish(piece, pending, why, fitted.left_out)
                    signs = (self._sampled.note(fitted.body, reply), self._served.note(names[-1]))
                    note = " ".join(filter(None, (reply.note, fitted.note, *signs)))
                    reply = replace(reply, note=note)
                    if form is not None and not why and not fits:
                        pending.why, pending.lost = IGNORED, reply
                        raise Failure("ignores the form of the answer", at_once=True)
                    self._refusals.learn(pending.refused)
                    if form is not None and pending.why:
                        self._abilities.learn_no_format(form, why)
                    if stream and (more := reply.text[len(handed) :]):
                        yield more
                    tokens = reply.completion_tokens or estimated_tokens(reply.text)
                    permit.tokens = (reply.prompt_tokens or pending.prompt_tokens) + tokens
                    yield reply
                answer.deadline.end = min(answer.deadline.end, time.monotonic() + REUSE_SECONDS)
                with contextlib.suppress(*server.lost, Failure):
                    for _ in answer.pieces:
                        pass
        except Failure as failure:
            self._learn(failure, pending, fitted.body)
            raise

    def _learn(self, failure: Failure, pending: _PendingRequest, sent: Mapping[str, Any]) -> None:
        """If the server says which field it refuses, let the request follow at once without it."""
        key = self._refusals.read(failure, sent, pending.refused)
        names_form = key is not None and key[0] == "response_format"
        if pending.form is not None and "response_format" in sent and (key is None or names_form):
            if failure.status in REFUSING and not is_overflow(failure.message):
                words = f": {failure.message}" if failure.message else ""
                pending.why = f"The server takes no response_format ({failure.status}{words})"
                failure.at_once = True
        elif key is not None:
            pending.refused.append(key)
            failure.at_once = True
        elif self._abilities.refuses_tools(failure, sent):
            failure.mend = NO_TOOLS


def _finish(
    reply: Reply, pending: _PendingRequest, why: str, left_out: Collection[str]
) -> tuple[Reply, bool]:
    """Return the final reply, and whether it suggests that the server respected the schema.

    Calls of the offered tools that the server left in the text are parsed and removed from it. JSON that fits the schema
    replaces the text around it. The note says what does not fit, and ``why`` the format was described in the prompt.
    ``left_out``: fields that the server refuses. A reply that was cut off, withheld, refused or empty does not.
    """
    notes, fits = [reply.note, _cut_prompt(reply.prompt_tokens, pending)], True
    if pending.form is not None:
        _, fault = pending.form.read(reply.text)
        fault = "" if fault == AROUND else fault
        fits = not fault or reply.finish_reason != "stop" or not reply.text.strip()
    if pending.tools and not reply.tool_calls and reply.text:
        left, calls = parse_calls(reply.text)
        if calls and pending.tools >= {call.name for call in calls}:
            reply = replace(reply, text=left, tool_calls=calls)
    if pending.form is not None:
        name = NAMES[pending.form.kind].removeprefix("JSON ")
        notes.append(f"{why}; the {name} was put into the prompt." if why else "")
        if not reply.tool_calls or reply.text:
            text, fault = pending.form.read(reply.text)
            reply = replace(reply, text=text)
            notes.append("" if fault == AROUND else fault)
    if pending.must_call and not reply.tool_calls:
        notes.append(NO_CALL)
    if pending.lost is not None:
        reply = replace(
            reply,
            prompt_tokens=reply.prompt_tokens + pending.lost.prompt_tokens,
            completion_tokens=reply.completion_tokens + pending.lost.completion_tokens,
        )
    notes.append("" if reply.prompt_tokens or reply.completion_tokens else NO_COUNTS)
    before = len(cut_at(reply.text, pending.stop)[0])
    ignores_stop = "stop" not in left_out and len(reply.text) - before > LONGEST_STOP
    notes.append(IGNORES_STOP if ignores_stop else "")
    return replace(reply, note=" ".join(filter(None, notes))), fits


def _cut_prompt(tokens: int, pending: _PendingRequest) -> str:
    """Return a warning if the server counts far fewer tokens than the prompt has, else ''."""
    if not tokens or tokens >= FEW * pending.prompt_tokens:
        return ""
    fewest = fewest_tokens(pending.prompt)
    if fewest < LONG_PROMPT or tokens >= FEW * fewest:
        return ""
    return f"The server counted {tokens} tokens of a prompt of at least {fewest:.0f}, so it has cut the prompt."


def _fingerprint(settings: Settings) -> str:
    names = ("max_tokens", "temperature", "top_p", "system")
    defaults = {name: getattr(settings, name) for name in names}
    defaults["extra_body"] = dict(settings.extra_body)
    api = "/completions" if settings.plain else ""
    return f"openai_compatible/{settings.model}@{settings.address}{api}/{digest(defaults)[:12]}"


@LLMS.register("openai_compatible", form=dataclass_form(Settings), settings=read_settings)
def openai_compatible(name: str, /, **settings: Any) -> OpenAICompatible:
    """Any OpenAI-compatible endpoint (OpenAI, vLLM, llama.cpp, Ollama …); key from the environment."""
    own = read_settings(name, **settings)
    return OpenAICompatible(name, own, key_from_environment(name, own))
