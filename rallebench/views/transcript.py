"""The steps of an episode in an agent's own terms: thoughts, actions, observations, programs. Also edits actions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rallebench import sandbox
from rallebench.core.errors import UsageError
from rallebench.core.terminal import visible_line
from rallebench.core.types import Generate, Reply, Request, Retrieve, Step, ToolCall, UseTool
from rallebench.workflows.edits import EDITED
from rallebench.workflows.pal import extract_program
from rallebench.workflows.trees import MARK

LABELS: Mapping[str, str] = {
    "thinking": "Thinking",
    "thought": "Thought",
    "action": "Action",
    "observation": "Observation",
    "plan": "Plan",
    "program": "Program",
    "output": "It printed",
    "reply": "Reply",
    "search": "Asked",
    "note": "",
    "ended": "How it ended",
}
"""Kind of piece → its display label."""

_LINE_BEGUN = re.compile(r"(Thought|Action|Plan)[ ]?(\d*):\Z")
_BOTH = re.compile(r"\s*(?<!\w)Action\s*\d*\s*:\s*")
_TEXT_CALL = re.compile(
    r"^[ \t*]*Action[ \t*]*:[ \t]*(\S+)[^\n]*\n+[ \t*]*Action Input[ \t*]*:[ \t]*", re.MULTILINE
)
_OBSERVED = re.compile(r"Observation[ ]?(\d*): ?")
_CALL = re.compile(r"\s*([\w.-]+)\s*\((.*)\)\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """One thought, action or observation in step ``at`` (from 0). ``kind``: a key of LABELS; ``number``: as in the
    prompt, '' if unnumbered.
    """

    kind: str
    text: str
    at: int
    number: str = ""

    @property
    def label(self) -> str:
        """The display label with its number."""
        return f"{LABELS[self.kind]} {self.number}".strip()


def pieces(steps: Iterable[Step], workflow: str = "") -> list[Piece]:
    """Return the pieces of an episode's steps, in order, without the notes that record a search tree."""
    result: list[Piece] = []
    for at, step in enumerate(steps):
        result += [replace(piece, at=at) for piece in _step_pieces(step, workflow)]
    return result


def beginning(request: Request, text: str, workflow: str = "") -> list[Piece]:
    """Return the pieces of a step in progress; ``text``: its reply so far."""
    return (
        _step_pieces(Step(request, Reply(text)), workflow)
        if isinstance(request, Generate)
        else [_asking(request)]
    )


def _step_pieces(step: Step, workflow: str) -> list[Piece]:
    request, reply = step.request, step.reply
    if isinstance(request, Generate):
        thinking = [Piece("thinking", reply.thinking, 0)] if reply.thinking else []
        note = [Piece("note", reply.note, 0)] if reply.note and reply.note != EDITED else []
        return [*thinking, *_reply(request, reply, workflow), *note]
    if isinstance(request, Retrieve):
        return [Piece("search", f"{request.retriever}: {request.query}", 0)]
    if isinstance(request, UseTool):
        return _tool(request, reply)
    if request.text.startswith(MARK):
        return []
    seen = _OBSERVED.match(request.text)
    if seen:
        return [Piece("observation", request.text[seen.end() :], 0, seen[1])]
    return [Piece("note", request.text, 0)]


def _asking(request: Request) -> Piece:
    if isinstance(request, Retrieve):
        return Piece("search", f"{request.retriever}: {request.query}", 0)
    if isinstance(request, UseTool):
        return Piece(
            "note", "The program runs." if request.tool == sandbox.TOOL else _call(request), 0
        )
    return Piece("note", "", 0)


def _reply(request: Generate, reply: Reply, workflow: str) -> list[Piece]:
    if workflow == "pal":
        return [Piece("program", extract_program(reply.text), 0)]
    if reply.tool_calls:
        call = reply.tool_calls[0]
        thought = [Piece("thought", reply.text.strip(), 0)] if reply.text.strip() else []
        return [*thought, Piece("action", f"{call.name}({call.arguments})", 0)]
    text = reply.text.strip()
    line = _LINE_BEGUN.search(request.messages[-1].content) if len(request.messages) == 1 else None
    if line is not None:
        return _line(line[1].lower(), line[2], text)
    written = _TEXT_CALL.search(text)
    if written is not None:
        thought_text = re.sub(r"^\s*Thought\s*\d*\s*:\s*", "", text[: written.start()]).strip()
        thought = [Piece("thought", thought_text, 0)] if thought_text else []
        return [*thought, Piece("action", f"{written[1]}({text[written.end() :].strip()})", 0)]
    return [Piece("reply", text, 0)]


def _line(kind: str, number: str, text: str) -> list[Piece]:
    """Return the pieces of one line of ReAct or a similar workflow; a thought may contain its action."""
    if kind == "plan":
        return [Piece("plan", text, 0)]
    parts = _BOTH.split(text, maxsplit=1) if kind == "thought" else [text]
    if len(parts) == 2:
        return [
            Piece("thought", parts[0].strip(), 0, number),
            Piece("action", parts[1].strip(), 0, number),
        ]
    return [Piece("thought" if kind == "thought" else "action", text, 0, number)]


def _tool(request: UseTool, reply: Reply) -> list[Piece]:
    if request.tool != sandbox.TOOL:
        return [Piece("search", _call(request), 0)]
    seen = (
        [Piece("observation", request.arguments["observation"], 0)]
        if "observation" in request.arguments
        else []
    )
    if reply.tool_calls:
        call = reply.tool_calls[0]
        return [*seen, Piece("action", f"{call.name}({call.arguments})", 0)]
    return [
        *seen,
        Piece("output", reply.text, 0),
        *([Piece("ended", reply.note, 0)] if reply.note else []),
    ]


def _call(request: UseTool) -> str:
    arguments = dict(request.arguments)
    name = visible_line(arguments.pop("api", request.tool))
    in_json = arguments.pop("arguments", "")  # of a server's tool
    return f"{name}({in_json or json.dumps(arguments, ensure_ascii=False)})"


# ── editing ──────────────────────────────────────────────────────────────────


def actions(steps: Sequence[Step], workflow: str = "") -> dict[int, str]:
    """Step (from 0) → the action that the model chose in it, on one line; the newest comes last."""
    chosen: dict[int, str] = {}
    for piece in pieces(steps, workflow):
        if isinstance(steps[piece.at].request, Generate) and piece.kind in ("action", "program"):
            chosen[piece.at] = " ".join(piece.text.split())
    return chosen


def edit_text(reply: Reply, workflow: str = "") -> str:
    """Return a reply as text for editing: a call as ``Name({…})``, a program without the text around it, anything
    else unchanged.
    """
    if workflow == "pal":
        return extract_program(reply.text).strip("\n")
    if reply.tool_calls:
        call = reply.tool_calls[0]
        return f"{call.name}({call.arguments})"
    return reply.text.strip()


def edit_reply(reply: Reply, text: str) -> Reply:
    """Return the reply with an edited action. Raises UsageError if the text is not an action."""
    text = text.strip()
    if not text:
        raise UsageError("The action is empty; write an action for the agent.")
    if not reply.tool_calls:
        return replace(reply, text=text, note=EDITED, choice=None)
    parts = _CALL.match(text)
    if parts is None:
        raise UsageError('The action is not a call; write it as Name({"argument": "value"}).')
    call = ToolCall(reply.tool_calls[0].id, parts[1], parts[2].strip() or "{}")
    return replace(reply, tool_calls=(call,), note=EDITED)


def before(steps: Sequence[Step], at: int, text: str, workflow: str = "") -> tuple[Step, ...]:
    """Return the steps up to ``at``, with that step's action edited, to resume an episode from. Raises UsageError."""
    if not 0 <= at < len(steps) or not isinstance(steps[at].request, Generate):
        raise UsageError("There is no action to go on from; run an episode first.")
    reply = steps[at].reply
    same = text.strip() == edit_text(reply, workflow).strip()
    return (*steps[:at], steps[at] if same else replace(steps[at], reply=edit_reply(reply, text)))
