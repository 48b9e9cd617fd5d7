"""A step as an MLflow span: what it shows, and its cost, in the forms that MLflow's page reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rallebench.core.numbers import UNKNOWN
from rallebench.core.types import Episode, Generate, Note, Retrieve, Step, UseTool
from rallebench.engine.cost import Prices, step_to_json, total, usd_of

MAX_DOCUMENTS = 50
"""The most passages of a retriever's span; the run's own files hold them all."""

_MEASURES = (
    "seconds",
    "retrieval_seconds",
    "generation_seconds",
    "model_calls",
    "retrievals",
    "tokens_per_second",
)


@dataclass(frozen=True, slots=True)
class SpanContent:
    """What a span shows. ``kind`` is one of MLflow's span types."""

    kind: str
    name: str
    inputs: Any
    outputs: Any
    attributes: Mapping[str, Any] = field(default_factory=dict)


def content_of(step: Step, prices: Prices | None = None) -> SpanContent:
    """A retriever's documents, a model's messages, a tool's arguments or a note's text."""
    request, reply = step.request, step.reply
    common: dict[str, Any] = {"seconds": round(step.seconds, 6), "cached": step.cached}
    if step.batch > 1:
        common["batch"] = step.batch
    if reply.note:
        common["note"] = reply.note
    if isinstance(request, Retrieve):
        documents = [
            {
                "page_content": hit.passage.text,
                "metadata": {
                    "doc_uri": hit.passage.doc_id,
                    "page_id": hit.passage.page_id,
                    "title": hit.passage.title,
                    "rank": rank,
                    "score": hit.score,
                },
                "id": hit.passage.doc_id,
            }
            for rank, hit in enumerate(reply.hits[:MAX_DOCUMENTS], 1)
        ]
        query = {"query": request.query, "k": request.k}
        common |= {"retriever": request.retriever, "k": request.k, "hits": len(reply.hits)}
        return SpanContent("RETRIEVER", f"retrieve {request.retriever}", query, documents, common)
    if isinstance(request, Generate):
        common |= {"mlflow.llm.model": request.llm, "finish_reason": reply.finish_reason}
        common |= {"confidence": reply.confidence} if reply.confidence is not None else {}
        common |= _cost_attributes(step, prices or {})
        return SpanContent(
            "LLM", f"generate {request.llm}", _messages(request), _choices(step), common
        )
    if isinstance(request, UseTool):
        common["tool"] = request.tool
        return SpanContent(
            "TOOL", f"tool {request.tool}", dict(request.arguments), reply.text, common
        )
    assert isinstance(request, Note)
    return SpanContent("PARSER", "identity", request.text, reply.text, common)


def _messages(request: Generate) -> dict[str, Any]:
    settings = {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "stop": list(request.stop) or None,
        "tools": [tool.name for tool in request.tools] or None,
    }
    return {
        "messages": [{"role": turn.role, "content": turn.content} for turn in request.messages],
        **{key: value for key, value in settings.items() if value is not None},
    }


def _choices(step: Step) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": step.reply.text}
    if step.reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in step.reply.tool_calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": step.reply.finish_reason}
    return {"choices": [choice]}


def _cost_attributes(step: Step, prices: Prices) -> dict[str, Any]:
    """The cost of a language model's step, under MLflow's own names where it has some."""
    cost = step_to_json(step, prices)
    attributes: dict[str, Any] = {
        key: cost[key] for key in ("first_token_seconds", "tokens_per_second")
    }
    tokens = cost["prompt_tokens"], cost["completion_tokens"]
    if None not in tokens:
        attributes["mlflow.chat.tokenUsage"] = _usage(*tokens)
    if (dollars := usd_of(step, prices)) is not None:
        attributes["mlflow.llm.cost"] = _cost(*dollars)
    return {**attributes, "usd": UNKNOWN if cost["usd"] is None else cost["usd"]}


def episode_attributes(episode: Episode, prices: Prices) -> dict[str, Any]:
    """A question's cost, for the root of a trace; tokens and dollars may be ``unknown``."""
    cost = total(episode.steps, prices, failed_seconds=episode.failed_seconds)
    tokens_and_usd = {
        key: UNKNOWN if cost[key] is None else cost[key]
        for key in ("prompt_tokens", "completion_tokens", "usd")
    }
    return {**{key: cost[key] for key in _MEASURES}, **tokens_and_usd}


def trace_metadata(episode: Episode, prices: Prices) -> dict[str, Any]:
    """The tokens and dollars of a trace for MLflow's list of traces; {} if they are unknown."""
    cost = total(episode.steps, prices)
    metadata: dict[str, Any] = {}
    if cost["model_calls"] and not cost["calls_not_counted"]:
        metadata["mlflow.trace.tokenUsage"] = _usage(
            cost["prompt_tokens"], cost["completion_tokens"]
        )
    if cost["model_calls"] and cost["usd"] is not None:
        dollars = [usd_of(step, prices) or (0.0, 0.0) for step in episode.steps]
        metadata["mlflow.trace.cost"] = _cost(*(sum(part) for part in zip(*dollars)))
    return metadata


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {
        "input_tokens": prompt,
        "output_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _cost(prompt: float, completion: float) -> dict[str, float]:
    return {"input_cost": prompt, "output_cost": completion, "total_cost": prompt + completion}
