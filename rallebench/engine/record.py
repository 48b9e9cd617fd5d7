"""Episodes as JSON and back. Evidence is left out: it is derived and never part of a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rallebench.core.types import (
    Episode,
    Generate,
    Hit,
    Message,
    Note,
    Outcome,
    Passage,
    Reply,
    Request,
    Retrieve,
    Step,
    ToolCall,
    ToolSpec,
    UseTool,
)


def request_to_json(request: Request) -> dict[str, Any]:
    """A request with its type under ``ask``; settings that were left to the model are left out."""
    if isinstance(request, Retrieve):
        return {
            "ask": "retrieve",
            "retriever": request.retriever,
            "query": request.query,
            "k": request.k,
        }
    if isinstance(request, Note):
        return {"ask": "note", "text": request.text}
    if isinstance(request, UseTool):
        return {"ask": "tool", "tool": request.tool, "arguments": dict(request.arguments)}
    value: dict[str, Any] = {
        "ask": "generate",
        "llm": request.llm,
        "messages": [_message_to_json(message) for message in request.messages],
    }
    optional = {
        "tools": [
            {"name": t.name, "description": t.description, "parameters": dict(t.parameters)}
            for t in request.tools
        ],
        "max_tokens": request.max_tokens,
        "stop": list(request.stop),
        "temperature": request.temperature,
        "seed": request.seed,
        "options": dict(request.options),
    }
    return {**value, **{key: item for key, item in optional.items() if item not in (None, [], {})}}


def _message_to_json(message: Message) -> dict[str, Any]:
    """Role and content; calls, and the call that is answered, only where there are any."""
    value: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        value["tool_calls"] = _calls_to_json(message.tool_calls)
    if message.tool_call_id:
        value["tool_call_id"] = message.tool_call_id
    return value


def _message_from_json(value: Mapping[str, Any]) -> Message:
    calls = _calls_from_json(value.get("tool_calls", ()))
    return Message(value["role"], value["content"], calls, value.get("tool_call_id", ""))


def _calls_to_json(calls: tuple[ToolCall, ...]) -> list[dict[str, str]]:
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]


def _calls_from_json(values: Iterable[Mapping[str, str]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in values)


def request_from_json(value: Mapping[str, Any]) -> Request:
    """The inverse of ``request_to_json``. Raises LookupError or TypeError for anything else."""
    if value["ask"] == "retrieve":
        _check(str, value["retriever"], value["query"])
        _check(int, value["k"])
        return Retrieve(value["retriever"], value["query"], value["k"])
    if value["ask"] == "note":
        _check(str, value["text"])
        return Note(value["text"])
    if value["ask"] == "tool":
        _check(str, value["tool"])
        _check(Mapping, value["arguments"])
        return UseTool(value["tool"], value["arguments"])
    request = Generate(
        value["llm"],
        tuple(_message_from_json(message) for message in value["messages"]),
        tuple(
            ToolSpec(t["name"], t["description"], t["parameters"]) for t in value.get("tools", ())
        ),
        value.get("max_tokens"),
        tuple(value.get("stop", ())),
        value.get("temperature"),
        value.get("seed"),
        value.get("options", {}),
    )
    _check(
        str,
        request.llm,
        *request.stop,
        *(text for m in request.messages for text in (m.role, m.content)),
    )
    _check((int, float, type(None)), request.max_tokens, request.temperature, request.seed)
    _check(Mapping, request.options)
    return request


def hit_to_json(hit: Hit) -> dict[str, Any]:
    """A hit, flat."""
    p = hit.passage
    return {
        "doc_id": p.doc_id,
        "page_id": p.page_id,
        "title": p.title,
        "text": p.text,
        "score": hit.score,
    }


def reply_to_json(reply: Reply) -> dict[str, Any]:
    """A reply; what is as in an empty one is left out (a confidence of 0.0 is not)."""
    value = {
        "text": reply.text,
        "hits": [hit_to_json(hit) for hit in reply.hits],
        "tool_calls": _calls_to_json(reply.tool_calls),
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "finish_reason": reply.finish_reason,
        "confidence": reply.confidence,
        "first_token_seconds": reply.first_token_seconds,
        "logprobs": list(reply.logprobs),
        "note": reply.note,
        "embedding_tokens": reply.embedding_tokens,
    }
    return {key: item for key, item in value.items() if key == "text" or item != _EMPTY[key]}


_EMPTY: Mapping[str, Any] = {
    "hits": [],
    "tool_calls": [],
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "finish_reason": "stop",
    "confidence": None,
    "first_token_seconds": None,
    "logprobs": [],
    "note": "",
    "embedding_tokens": 0,
}


def reply_from_json(value: Mapping[str, Any]) -> Reply:
    """The inverse of ``reply_to_json``. Raises LookupError or TypeError for anything else."""
    reply = Reply(
        value["text"],
        tuple(
            Hit(Passage(h["doc_id"], h["text"], h["title"], h["page_id"]), h["score"])
            for h in value.get("hits", ())
        ),
        _calls_from_json(value.get("tool_calls", ())),
        value.get("prompt_tokens", 0),
        value.get("completion_tokens", 0),
        value.get("finish_reason", "stop"),
        value.get("confidence"),
        value.get("first_token_seconds"),
        tuple(value.get("logprobs", ())),
        value.get("note", ""),
        value.get("embedding_tokens", 0),
    )
    _check(str, reply.text, reply.finish_reason, reply.note)
    _check(int, reply.prompt_tokens, reply.completion_tokens)
    _check((int, type(None)), reply.embedding_tokens)
    _check((int, float, type(None)), reply.confidence, reply.first_token_seconds, *reply.logprobs)
    for hit in reply.hits:
        _check(str, hit.passage.doc_id, hit.passage.text, hit.passage.title, hit.passage.page_id)
        _check(_NUMBER, hit.score)
    for call in reply.tool_calls:
        _check(str, call.id, call.name, call.arguments)
    return reply


def step_to_json(step: Step) -> dict[str, Any]:
    """A step: what was asked, what came back, what it cost; a ``batch`` of one is left out."""
    value = {
        **request_to_json(step.request),
        "reply": reply_to_json(step.reply),
        "seconds": round(step.seconds, 6),
        "cached": step.cached,
    }
    return value if step.batch == 1 else {**value, "batch": step.batch}


def step_from_json(value: Mapping[str, Any]) -> Step:
    """The inverse of ``step_to_json``."""
    reply, request = reply_from_json(value["reply"]), request_from_json(value)
    _check(_NUMBER, value["seconds"], value.get("batch", 1))
    _check(bool, value["cached"])
    return Step(
        request, reply, value["seconds"], value["cached"], max(1, int(value.get("batch", 1)))
    )


def episode_to_json(episode: Episode) -> dict[str, Any]:
    """One line of ``episodes.jsonl``."""
    value: dict[str, Any] = {"qid": episode.qid, "workflow": episode.workflow}
    if episode.outcome is not None:
        value |= {"answer": episode.outcome.answer, "stop_reason": episode.outcome.stop_reason}
    if episode.error:
        value["error"] = episode.error
    if episode.failed_seconds:
        value["failed_seconds"] = round(episode.failed_seconds, 6)
    return {**value, "steps": [step_to_json(step) for step in episode.steps]}


def episode_from_json(value: Mapping[str, Any]) -> Episode:
    """The inverse of ``episode_to_json``. Raises LookupError, TypeError, ValueError or AttributeError for anything else."""
    outcome = Outcome(value["answer"], value["stop_reason"]) if "answer" in value else None
    steps = tuple(step_from_json(step) for step in value["steps"])
    lost = value.get("failed_seconds", 0.0)
    episode = Episode(value["qid"], value["workflow"], steps, outcome, value.get("error", ""), lost)
    _check(
        str,
        episode.qid,
        episode.workflow,
        episode.error,
        *((outcome.answer, outcome.stop_reason) if outcome else ()),
    )
    _check(_NUMBER, episode.failed_seconds)
    return episode


_NUMBER = (int, float)


def _check(kind: type | tuple[type, ...], *values: Any) -> None:
    """TypeError unless all values are of a kind: JSON of the right shape may hold anything in its places."""
    if not all(isinstance(value, kind) for value in values):
        raise TypeError("a value of another type than was written")
