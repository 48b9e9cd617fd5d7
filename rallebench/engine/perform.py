"""One batch of equal-kind requests → replies, in order. Only this module calls backends."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Union

from rallebench.core.backends import Backends, Tool, fit_to_model
from rallebench.core.choosing import Choose, answer_choices
from rallebench.core.errors import (
    BackendError,
    BackendMemoryError,
    NotFoundError,
    RalleError,
    StoppedError,
)
from rallebench.core.json_values import JsonValue
from rallebench.core.thinking import generate_answers
from rallebench.core.types import Generate, Hit, Note, Reply, Request, Retrieve, UseTool

log = logging.getLogger(__name__)

ReplyOrError = Union[Reply, RalleError]


def resource(request: Request) -> tuple[str, str]:
    """The key of the worker for a request: (kind, name)."""
    if isinstance(request, Retrieve):
        return "retriever", request.retriever
    if isinstance(request, Generate):
        return "llm", request.llm
    assert isinstance(request, UseTool)
    return "tool", request.tool


FORMS = ("response_format", "tool_choice")
"""Options that concern the form of one reply."""


def prepare_request(request: Request, backends: Backends) -> Request:
    """The request as sent to the model; see ``backends.fit_to_model``."""
    if not isinstance(request, Generate):
        return request
    return fit_to_model(request, backends.of(request))


def batch_key(request: Request) -> tuple[JsonValue, ...]:
    """The key of a batch: requests of one resource may share it if all but their text and its form is equal."""
    if isinstance(request, Retrieve):
        return (request.k,)
    if isinstance(request, Generate):
        sampling = (request.max_tokens, request.temperature, request.seed, request.stop)
        options = {key: value for key, value in request.options.items() if key not in FORMS}
        return (type(request).__name__, *sampling, options, bool(request.tools))
    return ()


def perform(requests: Sequence[Request], backends: Backends) -> list[ReplyOrError]:
    """Answer requests with one batch key, in order. A failed request has its error in its place.

    A batch that fails as a whole (out of memory, or one bad request) is halved until the culprit is alone, so one bad
    question never affects the others.
    """
    if isinstance(requests[0], Note):
        return [request.reply() for request in requests if isinstance(request, Note)]
    try:
        return _ask(requests, backends.of(requests[0]))
    except Exception as error:
        wrapped = as_ralle_error(error, requests[0])
        if len(requests) == 1 or isinstance(wrapped, (NotFoundError, StoppedError)):
            return [wrapped] * len(requests)
        middle = len(requests) // 2
        return perform(requests[:middle], backends) + perform(requests[middle:], backends)


def _ask(requests: Sequence[Any], backend: Any) -> list[ReplyOrError]:
    first = requests[0]
    if isinstance(first, Retrieve):
        answers: list[ReplyOrError] = _search(
            [request.query for request in requests], first.k, backend
        )
    elif isinstance(first, Choose):
        answers = answer_choices(backend, requests, first.llm)
    elif isinstance(first, Generate):
        answers = generate_answers(backend, requests, first.llm)
    else:
        answers = [_use(request, backend) for request in requests]
    if len(answers) != len(requests):
        raise BackendError(
            f"{resource(first)[1]} gave {len(answers)} replies to {len(requests)} requests."
        )
    return answers


def _use(request: UseTool, tool: Tool) -> ReplyOrError:
    """Call a tool. An error stays in its place, because a tool acts on the world: no other call may be repeated."""
    try:
        return tool.use(request.arguments)
    except Exception as error:  # of any tool; one bad call costs one question
        return as_ralle_error(error, request)


def _search(queries: Sequence[str], k: int, retriever: Any) -> list[ReplyOrError]:
    results = retriever.search(queries, k)
    # Retrievers with an encoder count the query tokens that it read. Other retrievers read none.
    counted = getattr(retriever, "embedding_tokens", lambda queries: [0] * len(queries))
    counts = counted(queries) if len(results) == len(queries) else [None] * len(results)
    return [
        replace(retrieval_reply(hits, retriever.titled), embedding_tokens=tokens)
        for hits, tokens in zip(results, counts)
    ]


def retrieval_reply(hits: Sequence[Hit], titled: bool) -> Reply:
    """The text of a retrieval as in RaLLe: passages joined by ``"; "``, with titles if the index is BM25."""
    texts = (
        f"{hit.passage.title}, {hit.passage.text}" if titled else hit.passage.text for hit in hits
    )
    return Reply("; ".join(texts), tuple(hits))


def as_ralle_error(error: BaseException, request: Request) -> RalleError:
    """Keep RalleErrors. Turn any other exception into one that names the backend (and log its traceback)."""
    if isinstance(error, RalleError):
        return error
    name = resource(request)[1]
    if isinstance(error, MemoryError) or "out of memory" in str(error).lower():
        return BackendMemoryError(
            f"{name} ran out of memory; use a smaller batch size, k or model."
        )
    log.exception("%s failed", name, exc_info=error)
    return BackendError(f"{name} failed: {type(error).__name__}: {str(error)[:300]}")


def flow_error(error: Exception) -> RalleError:
    """The error that ended a flow. RalleErrors stay as they are; a bug is logged with its traceback and costs one
    question."""
    if isinstance(error, RalleError):
        return error
    log.exception("a flow failed", exc_info=error)
    return BackendError(
        f"Internal error, please report it: {type(error).__name__}: {str(error)[:300]}"
    )


def trim(reply: Reply, k: int, titled: bool) -> Reply:
    """The reply to the same query with a smaller k."""
    if len(reply.hits) <= k:
        return reply
    first = retrieval_reply(reply.hits[:k], titled)
    return replace(reply, text=first.text, hits=first.hits)
