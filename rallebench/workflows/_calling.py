"""Function calls, natively if the backend supports them, else in a text protocol; shared by the two workflows that use
them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from rallebench.core.prompts import fill_template
from rallebench.core.structured import json_in
from rallebench.core.types import Message, Note, Outcome, Reply, SubFlow, ToolCall, ToolSpec
from rallebench.workflows import _forms
from rallebench.workflows._conversation import (
    MAX_LINE_CHARACTERS,
    Conversation,
    too_long,
    without_imitation,
)
from rallebench.workflows._scratchpad import finishes
from rallebench.workflows.prompts import FINISH

FINISHING = ToolSpec(
    FINISH,
    "Finish the task: with the final answer, or by giving up this attempt.",
    {
        "type": "object",
        "properties": {
            "return_type": {"type": "string", "enum": ["give_answer", "give_up_and_restart"]},
            "final_answer": {
                "type": "string",
                "description": "the answer, in as few words as possible",
            },
        },
        "required": ["return_type"],
    },
)
_ANSWERS = {"return_type": {"const": "give_answer"}, "final_answer": {"type": "string"}}
_GIVES_UP = {"return_type": {"const": "give_up_and_restart"}}
FINISHING_FORMS = tuple(
    ToolSpec(FINISH, "", {"properties": properties, "required": [*properties]})
    for properties in (_ANSWERS, _GIVES_UP)
)
"""The two calls that finish, as schemas for a forced reply."""
OBSERVATION = "Observation: "
NO_CALL = "You called no function. Call one, or call Finish with the final answer."

_TEXT_CALL = re.compile(
    r"^[\W\d]*Action[ \t*_]*\d*[ \t*_]*[:：][ \t*_`\"]*([\w.-]*\w)(?P<rest>[^\n]*?)"
    r"(?:\n+|[ \t,;]*)[^\w\n]*Action[ _]?Input[ \t*_]*\d*[ \t*_]*[:：][ \t*_]*(.*)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Move:
    """One turn of the model. ``call``: the requested call, None without one; ``native``: True for a native tool call."""

    thought: str
    call: ToolCall | None
    message: Message
    native: bool

    def observation_message(self, observation: str) -> Message:
        """Return the message with the observation of its call."""
        if self.native and self.call is not None:
            return Message("tool", observation, tool_call_id=self.call.id)
        return Message("user", OBSERVATION + observation)

    def call_line(self) -> str:
        """The call in one line; '' without a call."""
        return f"{self.call.name}({self.call.arguments})" if self.call else ""


def opening(conversation: Conversation, prompt: str) -> tuple[Message, ...]:
    """Return the conversation before the first turn: instructions, demonstrations, the question."""
    tools, native = _tools(conversation), conversation.native
    schemas = "\n".join(json.dumps(_describe(tool), ensure_ascii=False) for tool in tools)
    protocol = fill_template(conversation.prompts["text_protocol.txt"], {"tools": schemas})
    system = fill_template(
        conversation.prompts[prompt], {"protocol": "" if native else f"\n\n{protocol}"}
    )
    messages = [Message("system", system)]
    for number, shot in enumerate(conversation.shots, 1):
        messages.append(Message("user", f"Question: {shot.question}"))
        for place, step in enumerate(shot.steps, 1):
            arguments = json.dumps(step.arguments, ensure_ascii=False)
            call = ToolCall(f"example-{number}-{place}", step.name, arguments)
            move = _make_move(step.thought, call, native)
            messages += [
                move.message,
                move.observation_message(step.observation or "Episode finished."),
            ]
    return (*messages, Message("user", f"Question: {conversation.question.text}"))


def _tools(conversation: Conversation) -> tuple[ToolSpec, ...]:
    return (*conversation.env.tools, FINISHING)


def _describe(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def _make_move(thought: str, call: ToolCall, native: bool) -> Move:
    if native:
        return Move(thought, call, Message("assistant", thought, (call,)), True)
    thinking = f"Thought: {thought}\n" if thought else ""
    text = f"{thinking}Action: {call.name}\nAction Input: {call.arguments}"
    return Move(thought, call, Message("assistant", text), False)


def turn(conversation: Conversation, messages: tuple[Message, ...], number: int) -> SubFlow[Move]:
    """Let the model take a turn. Raises EpisodeEnd."""
    if conversation.native:
        form = _forms.native_call(_tools(conversation))
        reply = yield from conversation.send(messages, tools=_tools(conversation), forced=form)
    else:
        form = _forms.text_call(
            (*conversation.env.tools, *FINISHING_FORMS), conversation.limits.max_tokens
        )
        reply = yield from conversation.send(messages, stop=("\nObservation",), forced=form)
    return read_move(reply, number)


def read_move(reply: Reply, number: int) -> Move:
    """Read the move from a reply in turn ``number``. Of several calls the first counts."""
    if reply.tool_calls:
        first = reply.tool_calls[0]
        call = ToolCall(first.id or f"call-{number}", first.name, first.arguments)
        return _make_move(reply.text.strip()[:MAX_LINE_CHARACTERS], call, True)
    text = without_imitation(reply.text).strip()[:MAX_LINE_CHARACTERS]
    match = _TEXT_CALL.search(text)
    if match is None:
        return Move(text, None, Message("assistant", text), False)
    thought = re.sub(r"^[\W_]*Thought\s*\d*[\s*_]*[:：][\s*_]*", "", text[: match.start()]).strip()
    call = ToolCall(f"call-{number}", match[1], _one_object(match[3].strip()))
    return Move(thought, call, Message("assistant", text), False)


def _one_object(text: str) -> str:
    """Extract a JSON object, also in Python's notation, without a fence and trailing text; return anything else
    unchanged.
    """
    bare = re.sub(r"^(?:```\w*|`)\s*", "", text)
    if bare.startswith("{"):
        for value in json_in(Reply(bare), {"type": "object"}):
            if isinstance(value, dict):
                return json.dumps(value, ensure_ascii=False)
    return text


def carried_out(conversation: Conversation, move: Move) -> SubFlow[str | Outcome]:
    """Return the observation of a move, or the outcome if it finishes. Raises EpisodeEnd if the environment fails."""
    if move.call is None:
        return NO_CALL
    name = move.call.name
    arguments, wrong = read_arguments(move.call)
    if finishes(name, conversation.original):
        if wrong:
            return Outcome("", "no_answer") if conversation.original else wrong
        answer = arguments.get("final_answer")
        if "give_up" in str(arguments.get("return_type", "")):
            return Outcome("", "gave_up")
        if answer is None:
            return "Finish needs final_answer, or the return_type give_up_and_restart."
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        return Outcome(text.strip())
    observation = wrong or too_long(arguments)
    if not observation:
        observation = yield from conversation.observe(conversation.env.call(name, arguments))
    yield Note(OBSERVATION + observation)
    return observation


def read_arguments(call: ToolCall) -> tuple[dict[str, Any], str]:
    """Return (the arguments, ''), or ({}, one sentence) if they are not a JSON object."""
    problem = 'not a JSON object; write {"name": value}.'
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        value, reason = None, str(error) if isinstance(error, ValueError) else "nested too deeply"
        problem = f"not valid JSON ({reason[:100]}); write one JSON object."
    if isinstance(value, dict):
        return value, ""
    return {}, f"The arguments of {call.name[:100]} are {problem}"
