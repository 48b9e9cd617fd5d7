"""Episodes as JSON and back. Evidence is left out: it is derived and never part of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.types import (
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
        return {"ask": "retrieve", "retriever": request.retriever, "query": request.query, "k": request.k}
    if isinstance(request, Note):
        return {"ask": "note", "text": request.text}
    if isinstance(request, UseTool):
        return {"ask": "tool", "tool": request.tool, "arguments": dict(request.arguments)}
    value: dict[str, Any] = {
        "ask": "generate",
        "llm": request.llm,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
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


def request_from_json(value: Mapping[str, Any]) -> Request:
    """The inverse of ``request_to_json``."""
    if value["ask"] == "retrieve":
        return Retrieve(value["retriever"], value["query"], value["k"])
    if value["ask"] == "note":
        return Note(value["text"])
    if value["ask"] == "tool":
        return UseTool(value["tool"], value["arguments"])
    return Generate(
        value["llm"],
        tuple(Message(m["role"], m["content"]) for m in value["messages"]),
        tuple(ToolSpec(t["name"], t["description"], t["parameters"]) for t in value.get("tools", ())),
        value.get("max_tokens"),
        tuple(value.get("stop", ())),
        value.get("temperature"),
        value.get("seed"),
        value.get("options", {}),
    )


def hit_to_json(hit: Hit) -> dict[str, Any]:
    """A hit, flat."""
    p = hit.passage
    return {"doc_id": p.doc_id, "page_id": p.page_id, "title": p.title, "text": p.text, "score": hit.score}


def reply_to_json(reply: Reply) -> dict[str, Any]:
    """A reply; what is as in an empty one is left out (a confidence of 0.0 is not)."""
    value = {
        "text": reply.text,
        "hits": [hit_to_json(hit) for hit in reply.hits],
        "tool_calls": [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in reply.tool_calls],
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "finish_reason": reply.finish_reason,
        "confidence": reply.confidence,
        "first_token_seconds": reply.first_token_seconds,
        "logprobs": list(reply.logprobs),
        "note": reply.note,
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
}


def reply_from_json(value: Mapping[str, Any]) -> Reply:
    """The inverse of ``reply_to_json``."""
    return Reply(
        value["text"],
        tuple(
            Hit(Passage(h["doc_id"], h["text"], h["title"], h["page_id"]), h["score"])
            for h in value.get("hits", ())
        ),
        tuple(ToolCall(c["id"], c["name"], c["arguments"]) for c in value.get("tool_calls", ())),
        value.get("prompt_tokens", 0),
        value.get("completion_tokens", 0),
        value.get("finish_reason", "stop"),
        value.get("confidence"),
        value.get("first_token_seconds"),
        tuple(value.get("logprobs", ())),
        value.get("note", ""),
    )


def step_to_json(step: Step) -> dict[str, Any]:
    """A step: what was asked, what came back, what it cost."""
    return {
        **request_to_json(step.request),
        "reply": reply_to_json(step.reply),
        "seconds": round(step.seconds, 6),
        "cached": step.cached,
    }


def step_from_json(value: Mapping[str, Any]) -> Step:
    """The inverse of ``step_to_json``."""
    return Step(request_from_json(value), reply_from_json(value["reply"]), value["seconds"], value["cached"])


def episode_to_json(episode: Episode) -> dict[str, Any]:
    """One line of ``episodes.jsonl``."""
    value: dict[str, Any] = {"qid": episode.qid, "workflow": episode.workflow}
    if episode.outcome is not None:
        value |= {"answer": episode.outcome.answer, "stop_reason": episode.outcome.stop_reason}
    if episode.error:
        value["error"] = episode.error
    return {**value, "steps": [step_to_json(step) for step in episode.steps]}


def episode_from_json(value: Mapping[str, Any]) -> Episode:
    """The inverse of ``episode_to_json``."""
    outcome = Outcome(value["answer"], value["stop_reason"]) if "answer" in value else None
    steps = tuple(step_from_json(step) for step in value["steps"])
    return Episode(value["qid"], value["workflow"], steps, outcome, value.get("error", ""))
