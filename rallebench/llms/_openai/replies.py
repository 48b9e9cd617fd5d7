"""What a server answers as a whole, read without trust: JSON → Reply, or a Failure that says why not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rallebench.core.types import Reply, ToolCall
from rallebench.http.failures import NOT_OPENAI, SEE_LOG, Failure, short


def reply_of(document: Any, key: str) -> Reply:
    """A whole chat completion as a Reply; raises Failure where it is not one."""
    choice = choice_of(document, key)
    message = choice.get("message")
    if (
        not isinstance(message, Mapping)
        or not {"content", "tool_calls", "refusal"} & message.keys()
    ):
        raise Failure("answered with a choice that holds no message", NOT_OPENAI)
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise Failure("answered with tool calls that are not a list", NOT_OPENAI)
    text, refusal = text_of(message.get("content"), "message"), message.get("refusal")
    reason = choice.get("finish_reason")
    if not text and isinstance(refusal, str) and refusal:
        text, reason = refusal, "refusal"
    usage = document.get("usage")
    return Reply(
        text=text,
        tool_calls=tuple(_tool_call(call, index) for index, call in enumerate(calls)),
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        finish_reason=reason if isinstance(reason, str) and reason else "stop",
        logprobs=_logprobs(choice),
    )


def choice_of(document: Any, key: str) -> Mapping[str, Any]:
    """The first choice of an answer or of a stream's piece; raises Failure if there is none."""
    if not isinstance(document, Mapping):
        raise Failure("answered with JSON that is not an object", NOT_OPENAI)
    if document.get("error"):
        raise Failure(f"reported an error: {short(document, key)}", SEE_LOG)
    choices = document.get("choices")
    if choices == [] or choices is None:
        raise Failure("answered without any choice, so there is no text", SEE_LOG)
    if not isinstance(choices, list) or not isinstance(choices[0], Mapping):
        raise Failure("answered with choices that are not a list of objects", NOT_OPENAI)
    return choices[0]


def text_of(value: Any, what: str) -> str:
    """A message's content: a text, a list of text parts, or nothing; raises Failure for all else."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(part, Mapping) for part in value):
        value = "".join(str(part.get("text") or "") for part in value)
    if not isinstance(value, str):
        raise Failure(f"answered with a {what} that is not a text", NOT_OPENAI)
    return value


def _tool_call(value: Any, index: int) -> ToolCall:
    call = value.get("function") if isinstance(value, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise Failure("answered with a malformed tool call", NOT_OPENAI)
    arguments = call.get("arguments") or "{}"
    if not isinstance(arguments, str):  # some servers send the object itself
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(str(value.get("id") or f"call_{index}"), call["name"], arguments)


def _count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _logprobs(choice: Mapping[str, Any]) -> tuple[float, ...]:
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if not isinstance(tokens, list):
        return ()
    values = [token.get("logprob") if isinstance(token, Mapping) else None for token in tokens]
    return tuple(float(v) for v in values if isinstance(v, (int, float)))
