"""Episodes as JSON and back. Evidence is left out: it is derived and never part of a prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, cast

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

_NUMBER = (int, float)
_MAYBE = (int, float, type(None))


class _Form:
    """The JSON form of a dataclass: the fields of ``types`` in order, each with its type, or with a list of the type or the
    form of its elements. A field that is as its default is left out, unless ``whole``."""

    def __init__(self, values: type, types: Mapping[str, Any], whole: bool = False) -> None:
        self._values, self._types = values, types
        defaults = {
            field.name: field.default if field.default_factory is MISSING else {}
            for field in fields(values)
        }
        self._fields = []
        for name, kind in types.items():
            default = MISSING if whole else defaults[name]
            self._fields.append((name, default, default in ((), {}), _writer(kind)))

    def to_json(self, value: Any) -> dict[str, Any]:
        result = {}
        for name, default, may_be_empty, write in self._fields:
            item = getattr(value, name)
            if item if may_be_empty else item != default:
                result[name] = write(item) if write else item
        return result

    def from_json(self, value: Mapping[str, Any]) -> Any:
        types = self._types
        return self._values(**{n: _read(types[n], item) for n, item in value.items() if n in types})


def _writer(kind: Any) -> Callable[[Any], Any] | None:
    """What makes JSON of a field's value; None: the value is JSON."""
    if not isinstance(kind, list):
        return dict if kind is Mapping else None
    if not isinstance(kind[0], _Form):
        return list
    to_json = kind[0].to_json
    return lambda items: [to_json(item) for item in items]


def _read(kind: Any, item: Any) -> Any:
    """TypeError unless an item is of its kind: JSON of the right shape may hold anything in its places."""
    if isinstance(kind, list):
        return tuple(_read(kind[0], element) for element in item)
    if isinstance(kind, _Form):
        return kind.from_json(item)
    if not isinstance(item, kind):
        raise TypeError("a value of another type than was written")
    return item


class _HitForm(_Form):
    """A hit, flat."""

    def to_json(self, value: Hit) -> dict[str, Any]:
        p = value.passage
        return {
            "doc_id": p.doc_id,
            "page_id": p.page_id,
            "title": p.title,
            "text": p.text,
            "score": value.score,
        }

    def from_json(self, value: Mapping[str, Any]) -> Hit:
        texts = (value["doc_id"], value["text"], value["title"], value["page_id"])
        return Hit(Passage(*(_read(str, text) for text in texts)), _read(_NUMBER, value["score"]))


_CALL = _Form(ToolCall, {"id": str, "name": str, "arguments": str})
_TOOL = _Form(ToolSpec, {"name": str, "description": str, "parameters": Mapping}, whole=True)
_MESSAGE = _Form(Message, {"role": str, "content": str, "tool_calls": [_CALL], "tool_call_id": str})
_HIT = _HitForm(Hit, {})
_REQUESTS = {
    "retrieve": _Form(Retrieve, {"retriever": str, "query": str, "k": int}, whole=True),
    "note": _Form(Note, {"text": str}),
    "tool": _Form(UseTool, {"tool": str, "arguments": Mapping}),
    "generate": _Form(
        Generate,
        {
            "llm": str,
            "messages": [_MESSAGE],
            "tools": [_TOOL],
            "max_tokens": _MAYBE,
            "stop": [str],
            "temperature": _MAYBE,
            "seed": _MAYBE,
            "options": Mapping,
        },
    ),
}
_KINDS = {Retrieve: "retrieve", Note: "note", UseTool: "tool", Generate: "generate"}
_REPLY = _Form(
    Reply,
    {
        "text": str,
        "hits": [_HIT],
        "tool_calls": [_CALL],
        "prompt_tokens": int,
        "completion_tokens": int,
        "finish_reason": str,
        "confidence": _MAYBE,
        "first_token_seconds": _MAYBE,
        "logprobs": [_MAYBE],
        "note": str,
        "embedding_tokens": (int, type(None)),
    },
)
_OUTCOME = _Form(Outcome, {"answer": str, "stop_reason": str}, whole=True)


def request_to_json(request: Request) -> dict[str, Any]:
    """A request with its type under ``ask``; settings that were left to the model are left out."""
    kind = _KINDS[type(request)]
    return {"ask": kind, **_REQUESTS[kind].to_json(request)}


def request_from_json(value: Mapping[str, Any]) -> Request:
    """The inverse of ``request_to_json``. Raises LookupError, TypeError or AttributeError for anything else."""
    return cast(Request, _REQUESTS[value["ask"]].from_json(value))


def hit_to_json(hit: Hit) -> dict[str, Any]:
    """A hit, flat."""
    return _HIT.to_json(hit)


def reply_to_json(reply: Reply) -> dict[str, Any]:
    """A reply; what is as in an empty one is left out (a confidence of 0.0 is not)."""
    return _REPLY.to_json(reply)


def reply_from_json(value: Mapping[str, Any]) -> Reply:
    """The inverse of ``reply_to_json``. Raises LookupError, TypeError or AttributeError for anything else."""
    return cast(Reply, _REPLY.from_json(value))


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
    seconds, cached = _read(_NUMBER, value["seconds"]), _read(bool, value["cached"])
    batch = max(1, int(_read(_NUMBER, value.get("batch", 1))))
    return Step(request, reply, seconds, cached, batch)


def episode_to_json(episode: Episode) -> dict[str, Any]:
    """One line of ``episodes.jsonl``."""
    value: dict[str, Any] = {"qid": episode.qid, "workflow": episode.workflow}
    if episode.outcome is not None:
        value |= _OUTCOME.to_json(episode.outcome)
    if episode.error:
        value["error"] = episode.error
    if episode.failed_seconds:
        value["failed_seconds"] = round(episode.failed_seconds, 6)
    return {**value, "steps": [step_to_json(step) for step in episode.steps]}


def episode_from_json(value: Mapping[str, Any]) -> Episode:
    """The inverse of ``episode_to_json``. Raises LookupError, TypeError, ValueError or AttributeError for anything else."""
    steps = tuple(step_from_json(step) for step in value["steps"])
    return Episode(
        _read(str, value["qid"]),
        _read(str, value["workflow"]),
        steps,
        _OUTCOME.from_json(value) if "answer" in value else None,
        _read(str, value.get("error", "")),
        _read(_NUMBER, value.get("failed_seconds", 0.0)),
    )
