"""Any server that speaks OpenAI's chat completions: OpenAI, vLLM, llama.cpp, Ollama, LM Studio …

This backend decides how many requests are in flight and what to try again, reads the answer without
trusting it, and turns every failure into a sentence. The key is read from the environment and goes
into the Authorization header, nowhere else: OPENAI_API_KEY to OpenAI and to this machine, any other
server gets the key of the variable that ``api_key_env`` names, or none.

A message with the role ``tool`` that does not name the call it answers is sent as a ``user`` message.
The option ``response_format`` asks for JSON that fits a schema: a server that takes no such option is
asked for it in the prompt, the answer is checked, and the reply's note says what does not fit. Azure is
reached through its ``/openai/v1`` address.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from rallebench.core.errors import BackendError, RalleError
from rallebench.core.settings import form_of
from rallebench.core.types import Generate, Reply, digest
from rallebench.http.endpoint import key_from_environment
from rallebench.http.limiter import LimiterClient, Status
from rallebench.http.retry import attempts
from rallebench.llms import LLMS
from rallebench.llms._openai.client import Client, PendingRequest
from rallebench.llms._openai.requests import body_of, default_seed, default_temperature
from rallebench.llms._openai.settings import Settings, settings_of
from rallebench.llms._stops import cut_stream


class OpenAICompatible:
    """One model at one endpoint. Thread-safe; at most ``settings.concurrency`` requests are in flight, fewer
    while the server is overloaded.

    ``concurrency`` threads are worth having: some more, because one that pauses before another try takes no
    room. ``prices``: US dollars per million tokens of ``prompt`` and ``completion``, None if not set.
    """

    def __init__(self, name: str, settings: Settings, key: str) -> None:
        self.name = name
        self.settings = settings
        self.concurrency = settings.concurrency + settings.concurrency // 8
        self.prices: Mapping[str, float] | None = settings.prices
        self.temperature = default_temperature(settings)
        self.seed = default_seed(settings)
        self.fingerprint = _fingerprint(settings)
        self._client = Client(name, settings, key)
        self._limiter = LimiterClient(name, settings.base_url, settings, self._client.closed)

    @property
    def about(self) -> str:
        """Model and address, and what holds requests back now."""
        where = f"{self.settings.model} at {self.settings.base_url}"
        drops = "drops tools: functions are called in text" if self._client.drops_tools else ""
        form = "ignores response_format" if self._client.ignores_format else ""
        return "; ".join(filter(None, [where, drops, form, str(self.status())]))

    @property
    def calls_tools(self) -> bool:
        """Whether the model reads the tools that it is sent. The server is asked at the first use, once per process."""
        return self._client.takes_tools()

    def status(self) -> Status:
        """How many requests may be in flight at this address now, and why."""
        return self._limiter.status()

    def __repr__(self) -> str:
        return f"<{self.fingerprint}>"

    def close(self) -> None:
        """Close the connections and wake what waits for another try."""
        self._client.close()
        self._limiter.close()

    def generate(self, batch: Sequence[Generate]) -> list[Reply | RalleError]:
        """Answer all requests, many at a time: the next starts as soon as one is done."""
        if len(batch) <= 1 or self.concurrency == 1:
            return [self._answer(request) for request in batch]
        pool = ThreadPoolExecutor(
            min(self.concurrency, len(batch)), thread_name_prefix=f"llm-{self.name}"
        )
        try:
            return list(pool.map(self._answer, batch))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def stream(self, request: Generate) -> Iterator[str | Reply]:
        """Yield pieces of text, then the Reply. A stream that breaks off raises BackendError.

        A person waits for it, so it waits for no room among the requests of a run. With ``response_format``
        the text comes in one piece, when it has been checked.
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
        body = body_of(self.name, request, self.settings)
        pending, client = PendingRequest(self.name, body, request.tools, stream), self._client
        pieces = attempts(
            lambda permit: client.ask(pending, permit),
            self.settings,
            self._limiter,
            tokens=pending.tokens,
            at_once=stream,
        )
        pieces = _or_lost(pieces, pending)
        with contextlib.closing(pieces):
            yield from cut_stream(pieces, request.stop)


def _or_lost(pieces: Iterator[str | Reply], pending: PendingRequest) -> Iterator[str | Reply]:
    """``pieces``; where the second request for a form fails, the reply to the first, which is better than none."""
    try:
        yield from pieces
    except BackendError:
        if pending.lost is None:
            raise
        if pending.stream:
            yield pending.lost.text
        yield pending.lost


def _fingerprint(settings: Settings) -> str:
    address = urlsplit(settings.base_url)
    defaults = {
        "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "system": settings.system,
        "extra_body": dict(settings.extra_body),
    }
    where = f"{address.netloc}{address.path.rstrip('/')}"
    return f"openai_compatible/{settings.model}@{where}/{digest(defaults)[:12]}"


@LLMS.register("openai_compatible", form=form_of(Settings), settings=settings_of)
def openai_compatible(name: str, /, **settings: Any) -> OpenAICompatible:
    """Any OpenAI-compatible endpoint (OpenAI, vLLM, llama.cpp, Ollama …); key from the environment."""
    own = settings_of(name, **settings)
    return OpenAICompatible(name, own, key_from_environment(name, own))
