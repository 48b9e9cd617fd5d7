"""An episode as an MLflow trace: the flow at the root, one span per step, with real times and costs.

Traces are built as values; ``trace_store`` writes many together, which needs no global tracking URI. Errors reach the
caller instead of a log.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from rallebench.core.json_values import JsonObject, JsonValue, as_json
from rallebench.core.live import heading
from rallebench.core.numbers import UNKNOWN
from rallebench.core.prices import Prices
from rallebench.core.types import Episode, Generate, Note, Retrieve, Step, UseTool, digest
from rallebench.engine.cost import step_cost, step_usd, total
from rallebench.engine.record import episode_to_json
from rallebench.tracking.assessments import TraceAssessment
from rallebench.tracking.content import MAX_KEY, clean

MAX_DOCUMENTS = 50
"""Maximum passages in a retriever's span; the run's own files have all of them."""

SOURCE_RUN, SESSION = "mlflow.sourceRun", "mlflow.trace.session"
TOKENS, DOLLARS = "mlflow.trace.tokenUsage", "mlflow.trace.cost"
SPAN_MODEL, SPAN_DOLLARS = "mlflow.llm.model", "mlflow.llm.cost"
"""MLflow's names of a trace's metadata, and of a span's attributes."""

_PREVIEW = 1000
_NS = 1_000_000_000
_MEASURES = (
    "seconds",
    "retrieval_seconds",
    "generation_seconds",
    "model_calls",
    "retrievals",
    "tokens_per_second",
)


@dataclass(frozen=True, slots=True)
class Trace:
    """An episode to trace.

    ``ended``: time of the answer in seconds since 1970, None for now. ``run_id``: the MLflow run. ``session``: the
    chat. ``name``: the chain's name, for the list of traces. ``prices``: known prices of the chain's language models.
    ``assessments``: the gold and the scores of the answer.
    """

    episode: Episode
    question: str
    ended: float | None = None
    run_id: str = ""
    session: str = ""
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    prices: Prices = field(default_factory=dict)
    assessments: tuple[TraceAssessment, ...] = ()

    def trace_id(self) -> str:
        """An id that is the same for the same episode of the same run, so no trace is logged twice; random without a
        run.
        """
        if not self.run_id:
            return f"tr-{secrets.token_hex(16)}"
        return f"tr-{digest([self.run_id, episode_to_json(self.episode)])[:32]}"


# ── the content of a span, in the formats that MLflow's page reads ───────────


@dataclass(frozen=True, slots=True)
class SpanContent:
    """The content of a span. ``kind`` is one of MLflow's span types."""

    kind: str
    name: str
    inputs: JsonValue
    outputs: JsonValue
    attributes: JsonObject = field(default_factory=dict)


def span_content(step: Step, prices: Prices | None = None) -> SpanContent:
    """Return a retriever's documents, a model's messages, a tool's arguments or a note's text."""
    request, reply = step.request, step.reply
    common: dict[str, JsonValue] = {"seconds": round(step.seconds, 6), "cached": step.cached}
    if step.batch > 1:
        common["batch"] = step.batch
    if reply.note:
        common["note"] = reply.note
    if reply.thinking:
        common["thinking"] = reply.thinking
    if isinstance(request, Retrieve):
        query: dict[str, JsonValue] = {"query": request.query, "k": request.k}
        common |= {"retriever": request.retriever, "k": request.k, "hits": len(reply.hits)}
        name = f"retrieve {request.retriever}"
        return SpanContent("RETRIEVER", name, query, _documents(step), common)
    if isinstance(request, Generate):
        common |= {SPAN_MODEL: request.llm, "finish_reason": reply.finish_reason}
        common |= {"confidence": reply.confidence} if reply.confidence is not None else {}
        common |= _cost_attributes(step, prices or {})
        common |= {"choice": as_json(reply.choice)} if reply.choice else {}
        name = heading(request)
        return SpanContent("LLM", name, _messages(request), _choices(step), common)
    if isinstance(request, UseTool):
        common["tool"] = request.tool
        name = f"tool {request.tool}"
        return SpanContent("TOOL", name, dict(request.arguments), reply.text, common)
    assert isinstance(request, Note)
    return SpanContent("PARSER", "identity", request.text, reply.text, common)


def _documents(step: Step) -> list[dict[str, JsonValue]]:
    return [
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
        for rank, hit in enumerate(step.reply.hits[:MAX_DOCUMENTS], 1)
    ]


def _messages(request: Generate) -> dict[str, JsonValue]:
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


def _choices(step: Step) -> dict[str, JsonValue]:
    message: dict[str, JsonValue] = {"role": "assistant", "content": step.reply.text}
    if step.reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in step.reply.tool_calls
        ]
    reason = step.reply.finish_reason
    choice: dict[str, JsonValue] = {"index": 0, "message": message, "finish_reason": reason}
    return {"choices": [choice]}


def _cost_attributes(step: Step, prices: Prices) -> dict[str, JsonValue]:
    """Return the cost of a language model's step, under MLflow's own names where they exist."""
    cost = step_cost(step, prices)
    attributes: dict[str, JsonValue] = {
        "first_token_seconds": cost.first_token_seconds,
        "tokens_per_second": cost.tokens_per_second,
    }
    if cost.prompt_tokens is not None and cost.completion_tokens is not None:
        tokens = cost.prompt_tokens, cost.completion_tokens
        attributes["mlflow.chat.tokenUsage"] = _parts_and_sum("tokens", *tokens)
    if (dollars := step_usd(step, prices)) is not None:
        attributes[SPAN_DOLLARS] = _parts_and_sum("cost", *dollars)
    return {**attributes, "usd": _or_unknown(cost.usd)}


def _parts_and_sum(quantity: str, prompt: float, completion: float) -> dict[str, float]:
    """Return the tokens or dollars of a prompt, a completion and their total, under MLflow's names."""
    parts = {"input": prompt, "output": completion, "total": prompt + completion}
    return {f"{part}_{quantity}": value for part, value in parts.items()}


def _or_unknown(value: float | None) -> JsonValue:
    return UNKNOWN if value is None else value


def _cost_of_question(trace: Trace) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    """Return a question's cost: attributes of the root, where tokens and dollars may be ``unknown``, and metadata
    for MLflow's list of traces, without unknown values.
    """
    steps, prices = trace.episode.steps, trace.prices
    cost = total(steps, prices, failed_seconds=trace.episode.failed_seconds)
    attributes = {key: getattr(cost, key) for key in _MEASURES}
    attributes |= {
        key: _or_unknown(getattr(cost, key))
        for key in ("prompt_tokens", "completion_tokens", "usd")
    }
    metadata: dict[str, JsonValue] = {}
    if cost.model_calls and not cost.calls_not_counted:
        tokens = cost.prompt_tokens or 0, cost.completion_tokens or 0
        metadata[TOKENS] = _parts_and_sum("tokens", *tokens)
    if cost.model_calls and cost.usd is not None:
        dollars = [step_usd(step, prices) or (0.0, 0.0) for step in steps]
        metadata[DOLLARS] = _parts_and_sum("cost", *map(sum, zip(*dollars)))
    return attributes, metadata


# ── the whole trace ──────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """A span to be stored. Times in nanoseconds since 1970; ``attributes``: name → JSON text."""

    span_id: str
    parent_id: str | None
    kind: str
    name: str
    start: int
    end: int
    error: str
    attributes: Mapping[str, str]

    @property
    def size(self) -> int:
        """The number of characters of its content."""
        return sum(map(len, self.attributes.values()))

    @property
    def status(self) -> JsonObject:
        """The status in OpenTelemetry's form."""
        code = "STATUS_CODE_ERROR" if self.error else "STATUS_CODE_OK"
        return {"code": code, "message": self.error}

    @property
    def events(self) -> list[JsonValue]:
        """The exception of a failed question, in OpenTelemetry's form."""
        if not self.error:
            return []
        exception = {
            "exception.type": "RalleError",
            "exception.message": self.error,
            "exception.stacktrace": "",
        }
        return [{"name": "exception", "time_unix_nano": self.end, "attributes": exception}]


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """A trace to be stored. ``start``, ``duration``: milliseconds."""

    trace_id: str
    name: str
    start: int
    duration: int
    failed: bool
    request: str
    response: str
    metadata: Mapping[str, str]
    tags: Mapping[str, str]
    spans: tuple[SpanRecord, ...]
    assessments: tuple[TraceAssessment, ...] = ()


def record(trace: Trace, *, steps: bool = True) -> TraceRecord:
    """Return a trace with the flow at its root, then its steps in sequence, each with its own duration.

    ``steps`` False leaves the steps out; the root then says how many there are.
    """
    trace_id, episode = trace.trace_id(), trace.episode
    lasted = sum(step.seconds for step in episode.steps) + episode.failed_seconds
    ended = time.time() if trace.ended is None else trace.ended
    start = int((ended - lasted) * _NS)
    end = start + max(int(lasted * _NS), 1)
    attributes, metadata = _cost_of_question(trace)
    if not steps:
        attributes["steps"] = f"{len(episode.steps)}, in the folder of the run; MLflow has no more"
    root = SpanContent(
        "CHAIN" if episode.workflow == "chain" else "AGENT",
        trace.name or episode.workflow,
        trace.question,
        episode.answer if episode.outcome else None,
        {"qid": episode.qid, **attributes},
    )
    ids = [digest([trace_id, number])[:16] for number in range(len(episode.steps) + 1)]
    spans = [_span(root, trace_id, ids[0], None, start, end, clean(episode.error))]
    at = start
    for span_id, step in zip(ids[1:], episode.steps if steps else ()):
        before, at = at, at + int(step.seconds * _NS)
        spans.append(_span(span_content(step, trace.prices), trace_id, span_id, ids[0], before, at))
    origin = {SOURCE_RUN: trace.run_id, SESSION: trace.session}
    return TraceRecord(
        trace_id,
        spans[0].name,
        start // 1_000_000,
        (end - start) // 1_000_000,
        bool(episode.error),
        clean(trace.question)[:_PREVIEW],
        clean(episode.answer or episode.error)[:_PREVIEW],
        {
            "mlflow.trace_schema.version": "3",
            **{key: value for key, value in origin.items() if value},
            **_as_texts(metadata),
        },
        {"rallebench.qid": clean(episode.qid)[:MAX_KEY], **trace.tags},
        tuple(spans),
        trace.assessments,
    )


def _span(
    content: SpanContent,
    trace_id: str,
    span_id: str,
    parent_id: str | None,
    start: int,
    end: int,
    error: str = "",
) -> SpanRecord:
    attributes = {
        "mlflow.traceRequestId": trace_id,
        "mlflow.spanType": content.kind,
        "mlflow.spanInputs": content.inputs,
        "mlflow.spanOutputs": content.outputs,
        **content.attributes,
    }
    name = clean(content.name)[:MAX_KEY]
    return SpanRecord(
        span_id, parent_id, content.kind, name, start, end, error, _as_texts(attributes)
    )


def _as_texts(values: JsonObject) -> dict[str, str]:
    """Return the known values as JSON texts."""
    return {key: json.dumps(value) for key, value in values.items() if value is not None}
