"""The form that an answer should have: asked of the server, else in the prompt, and checked in any case."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from rallebench.core.structured import AROUND, fault_of, in_form, schema_of
from rallebench.core.types import Reply, digest
from rallebench.llms._calls_in_text import calls_of

NO_COUNTS = "The server reported no token counts."


@dataclass(frozen=True)
class Form:
    """A JSON schema that the answer should fit."""

    schema: Mapping[str, Any]
    digest: str


def form_of(name: str, body: Mapping[str, Any]) -> Form | None:
    """The form that ``response_format`` asks for, if any. Raises UsageError for a wrong one."""
    schema = schema_of(name, body.get("response_format"))
    return None if schema is None else Form(schema, digest(schema))


def in_prompt(body: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """``body`` with the form in its last message instead of in ``response_format``."""
    schema = json.dumps(form.schema, ensure_ascii=False)
    wish = f"Answer with JSON alone, which must fit this JSON schema:\n{schema}"
    *before, last = body["messages"]
    if last["role"] in ("user", "system"):
        messages = [*before, {**last, "content": f"{last['content']}\n\n{wish}"}]
    else:
        messages = [*before, last, {"role": "user", "content": wish}]
    return {
        **{key: value for key, value in body.items() if key != "response_format"},
        "messages": messages,
    }


IGNORED = "The server ignores response_format"


def refusal(answer: str) -> str:
    """That a server refused ``response_format``; ``answer``: its status and words."""
    return f"The server takes no response_format {answer}"


def ignores(reply: Reply, form: Form) -> bool:
    """Whether a whole reply shows that the server did not enforce the form that it was sent: one that is cut off, withheld,
    refused or empty does not."""
    ended = reply.finish_reason == "stop" and bool(reply.text.strip())
    return ended and bool(fault_of(reply.text, form.schema))


def reply_in_form(reply: Reply, form: Form | None, reason: str) -> Reply:
    """The reply with nothing but the JSON, where it holds JSON that fits; its note says what does not.

    ``reason``: why the schema was put into the prompt, '' if ``response_format`` was sent.
    """
    if form is None:
        return reply
    notes = [f"{reason}; the schema was put into the prompt."] if reason else []
    if not reply.tool_calls or reply.text:
        text, note = in_form(reply.text, form.schema)
        reply = replace(reply, text=text)
        notes.append("" if note == AROUND else note)
    return noted(reply, *notes)


def with_calls(reply: Reply, tools: Set[str], streamed: bool) -> Reply:
    """The reply to a request that offers ``tools``; calls of them that the server left in the text are read from there.

    They are taken out of it, unless it was handed out already (``streamed``).
    """
    if not tools or reply.tool_calls or not reply.text:
        return reply
    text, calls = calls_of(reply.text)
    if not calls or not tools >= {call.name for call in calls}:
        return reply
    return replace(reply, text=reply.text if streamed else text, tool_calls=calls)


def noted(reply: Reply, *notes: str) -> Reply:
    """The reply with more notes."""
    return replace(reply, note=" ".join(filter(None, (reply.note, *notes))))
