"""Backends, which answer the requests of flows: language models, retrievers and tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, Union, overload, runtime_checkable

from rallebench.core.errors import Hint, NotFoundError, RalleError
from rallebench.core.types import Generate, Hit, Reply, Request, Retrieve, UseTool

T = TypeVar("T")
ModelRequest = TypeVar("ModelRequest", bound=Generate)


class LLM(Protocol):
    """A loaded language model.

    A backend may have further members, which callers read by ``getattr`` with a default:

    * ``stream(request)``: see :class:`StreamingLLM`;
    * ``concurrency: int`` (1): the number of threads that may call ``generate`` at once, with one request each.
      A backend above 1 is thread-safe; the loop keeps that many requests in flight;
    * ``temperature: float`` (0.0) and ``seed: int | None`` (None): its defaults. The reply cache stores sampled
      replies only with a seed;
    * ``preferred_batch: int | None`` (None): the best number of requests for a call;
    * ``prices`` (None): US dollars for a million tokens, ``{"prompt": …, "completion": …}``;
    * ``close()``: release memory and connections; called once, after the last request;
    * ``choose(batch)``: see :class:`rallebench.core.choosing.Choosing`;
    * ``calls_tools: bool`` (False): whether the model can call tools;
    * ``forces_formats: bool`` (False): whether it enforces the form of a reply while it writes;
    * ``insists: Mapping`` ({}): the settings of its entry that hold for the requests of judges, agents, re-rankers and
      suites too; see ``fit_to_model``;
    * ``about: str`` (""): one line for the user, which may change during the work.
    """

    @property
    def fingerprint(self) -> str:
        """Identity of everything that changes an answer (backend, model, endpoint, defaults); contains no API key."""
        ...

    def generate(self, batch: Sequence[Generate]) -> list[Reply | RalleError]:
        """Return one result per request, in order.

        The result of a failed request is its RalleError; an exception means that the whole batch failed. ``None`` in a
        request stands for the model's default.
        """
        ...


@runtime_checkable
class StreamingLLM(Protocol):
    """A model that can stream its answer."""

    def stream(self, request: Generate) -> Iterator[str | Reply]:
        """Yield pieces of text, then a Reply with the whole text: the concatenated pieces, thoughts included.

        Raises RalleError; text yielded before an error is not an answer.
        """
        ...


@runtime_checkable
class TokenCounting(Protocol):
    """A model that counts a prompt without answering it. ``context_window``: tokens that it reads, None without a limit."""

    @property
    def context_window(self) -> int | None: ...

    def count_tokens(self, request: Generate) -> int | None:
        """Return the tokens of a request as the model would read it; None while it is busy. Raises RalleError."""
        ...


class Retriever(Protocol):
    """A retriever. ``fingerprint``: corpus, tokens or encoder, index and parameters: everything that affects a result.

    ``titled``: True if the model reads passages as ``"{title}, {text}"`` (RaLLe's BM25), False if it reads the bare text
    (RaLLe's dense indexes). ``prefix_stable``: True if the hits for a smaller k are always the first of those for a larger
    k. A retriever with an encoder also has ``embedding_tokens(queries)``: after a search, the tokens that encoders read
    per query, or None if one does not count tokens. A retriever that asks a language model has ``judgements``: (requests
    so far, unreadable replies).
    """

    name: str
    fingerprint: str
    titled: bool
    prefix_stable: bool

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return at most ``k`` hits per query, best first, in the order of the queries; none for a blank query."""
        ...


@runtime_checkable
class PagedRetriever(Protocol):
    """A retriever that can name the pages of its passages."""

    def page_ids(self) -> frozenset[str]:
        """Return the ids of all pages."""
        ...


class Tool(Protocol):
    """A tool of a run, such as a sandbox for programs. It may have ``concurrency`` and ``close``, as a language model, and
    ``disconnect()``: end its connections and processes after a run or an episode; a later call opens them again.
    """

    fingerprint: str

    def use(self, arguments: Mapping[str, str]) -> Reply:
        """Return the result of a call. Raises RalleError."""
        ...


Backend = Union[LLM, Retriever, Tool]


@dataclass(frozen=True)
class Backends:
    """The loaded models, retrievers and tools by name, in plain dicts, so that tests can pass literals."""

    retrievers: Mapping[str, Retriever] = field(default_factory=dict)
    llms: Mapping[str, LLM] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)

    @overload
    def of(self, request: Retrieve) -> Retriever: ...
    @overload
    def of(self, request: Generate) -> LLM: ...
    @overload
    def of(self, request: UseTool) -> Tool: ...
    @overload
    def of(self, request: Request) -> Backend: ...
    def of(self, request: Request) -> Backend:
        """The backend of ``request``. Raises NotFoundError if it is not loaded."""
        if isinstance(request, Retrieve):
            return _find_loaded(self.retrievers, request.retriever, "retriever")
        if isinstance(request, Generate):
            return _find_loaded(self.llms, request.llm, "language model")
        assert isinstance(request, UseTool)
        return _find_loaded(self.tools, request.tool, "tool")


NOTHING_LOADED = Backends()


def _find_loaded(table: Mapping[str, T], name: str, kind: str) -> T:
    if name not in table:
        have = ", ".join(sorted(table)) or "none"
        raise NotFoundError(
            f"The {kind} {name!r} is not loaded (loaded: {have}).", hint=Hint("load", name)
        )
    return table[name]


def close(backend: object) -> None:
    """Release the resources of a backend, if it has a ``close``."""
    with suppress(Exception):
        getattr(backend, "close", lambda: None)()


def fit_to_model(request: ModelRequest, model: LLM) -> ModelRequest:
    """The request as sent to ``model``. Every request to a model passes through here.

    Forced options stay for a model that enforces formats. Unless the settings are explicit, the model's ``insists``
    applies: ``max_tokens`` gives at least that room (None: the server's own limit), any other name leaves its setting to
    the entry.
    """
    insists: Mapping[str, int | None] = {} if request.explicit else getattr(model, "insists", {})
    if not insists and not request.forced:
        return request
    changes: dict[str, Any] = {name: None for name in insists if getattr(request, name) is not None}
    if "max_tokens" in changes and (least := insists["max_tokens"]) is not None:
        changes["max_tokens"] = max(request.max_tokens or 0, least)
    if request.forced:
        more = request.forced if getattr(model, "forces_formats", False) else {}
        changes |= {"options": {**request.options, **more}, "forced": {}}
    return replace(request, **changes) if changes else request
