"""What a step shows as a span, in the forms that MLflow's page knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rallebench.core.types import Generate, Note, Retrieve, Step, UseTool
from rallebench.engine.cost import Prices
from rallebench.tracking.costs import step_attributes

MAX_DOCUMENTS = 50
"""A retriever's span holds so many passages; the run's own files hold them all."""


@dataclass(frozen=True, slots=True)
class SpanContent:
    """What a span shows. ``kind`` is one of MLflow's span types."""

    kind: str
    name: str
    inputs: Any
    outputs: Any
    attributes: Mapping[str, Any] = field(default_factory=dict)


def content_of(step: Step, prices: Prices | None = None) -> SpanContent:
    """A step in the forms that MLflow's page knows: documents of a retriever, messages of a model."""
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
        asked = {"query": request.query, "k": request.k}
        more = {"retriever": request.retriever, "k": request.k, "hits": len(reply.hits)}
        return SpanContent(
            "RETRIEVER", f"retrieve {request.retriever}", asked, documents, common | more
        )
    if isinstance(request, Generate):
        more = {"mlflow.llm.model": request.llm, "finish_reason": reply.finish_reason}
        more |= {"confidence": reply.confidence} if reply.confidence is not None else {}
        more |= step_attributes(step, prices or {})
        return SpanContent(
            "LLM", f"generate {request.llm}", _asked(request), _said(step), common | more
        )
    if isinstance(request, UseTool):
        more = {"tool": request.tool}
        return SpanContent(
            "TOOL", f"tool {request.tool}", dict(request.arguments), reply.text, common | more
        )
    assert isinstance(request, Note)
    return SpanContent("PARSER", "identity", request.text, reply.text, common)


def _asked(request: Generate) -> dict[str, Any]:
    settings = {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "stop": list(request.stop) or None,
        "tools": [tool.name for tool in request.tools] or None,
    }
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    return {
        "messages": messages,
        **{key: value for key, value in settings.items() if value is not None},
    }


def _said(step: Step) -> dict[str, Any]:
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
    return {
        "choices": [{"index": 0, "message": message, "finish_reason": step.reply.finish_reason}]
    }
