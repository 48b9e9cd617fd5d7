"""The loop of ReAct and similar agents: Thought, Action and Observation on one growing page (R-Eval's agent)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rallebench.core.structured import decoded
from rallebench.core.types import Flow, Note, Outcome, SubFlow
from rallebench.workflows import _forms
from rallebench.workflows._conversation import (
    LONGEST,
    Conversation,
    first_line,
    too_long,
    without_imitation,
)
from rallebench.workflows.prompts import FINISH, actions, episode

_LABEL = re.compile(r"^(?:(?:Thought|Action)\s*\d*\s*[:：]\s*)+", re.IGNORECASE)
_FENCE_LINE = re.compile(r"^\s*```\w*\s*$", re.MULTILINE)
_BULLETS = re.compile(r"^\s*(?:(?:[-•–>#]+|\*(?=\s)|\d+[.)])\s+)+")
_EMPHASIS = re.compile(r"(?<![^\W_])(\*{1,3}|_{1,3}|`+)(?=\S)(.+?)(?<=\S)\1(?![^\W_])")
_SIGNS = re.compile(r"[*_`]")
_BARE = re.compile(r"[^\W\d_]+[\[(][^*_`]*")
"""An action without a label and Markdown, as most are."""
_INPUT = re.compile(
    r"^(?P<verb>\w+)\s*[,;.]?\s*Action\s*Input\s*\d*\s*[:：]\s*(?P<input>.+)",
    re.IGNORECASE | re.DOTALL,
)
_WIDE = {"[": "［【〔", "]": "］】〕", "(": "（", ")": "）"}
"""Brackets of full width that stand for a bracket."""


def undecorated(text: str) -> str:
    """A text without the marks of Markdown around it and its label: emphasis, back-ticks, dashes, numbers of a list.

    >>> undecorated("- **Action 1:** `Search[Ada]`"), undecorated("**Search**[*Ada*]")
    ('Action 1: Search[Ada]', 'Search[Ada]')
    """
    if "```" in text:
        text = _FENCE_LINE.sub("", text)
    if not text[:1].isalpha():
        text = _BULLETS.sub("", text)
    return without_emphasis(text)


def without_emphasis(text: str) -> str:
    """A text without emphasis and back-ticks around it or parts of it."""
    if not _SIGNS.search(text):
        return text.strip()
    return _EMPHASIS.sub(r"\2", text).strip().strip("*`").strip()


def parse_action(text: str, brackets: str, original: bool = False) -> tuple[str, str]:
    """Verb and argument of an action; any other text is a verb without an argument.

    ``original``: R-Eval's two patterns and nothing else. Ours also reads Markdown, brackets and colons of full width, and an
    ``Action Input:``, and drops a label before the action, invented observations after it, and text behind the closing bracket.

    >>> parse_action("Search[Paris [Texas], US]", "[]")
    ('Search', 'Paris [Texas], US')
    >>> parse_action("Action 2: Search[Ada] and Finish[1815]", "[]")
    ('Search', 'Ada')
    >>> parse_action("Search[Ada] and Finish[1815]", "[]", original=True)
    ('Search', 'Ada] and Finish[1815')
    >>> parse_action("**Action：** `Search`\\nAction Input: \\"Ada\\"", "[]")
    ('Search', 'Ada')
    >>> parse_action("I know it.", "[]")
    ('I know it.', '')
    """
    left, right = tuple(brackets)
    if not original:
        text = without_imitation(text).strip()
        if not _BARE.fullmatch(text):
            text = undecorated(_LABEL.sub("", undecorated(text)))
        for opening, closing in zip(left + _WIDE.get(left, ""), right + _WIDE.get(right, "")):
            if (balanced := _balanced(text, opening, closing)) is not None:
                return balanced[0], without_emphasis(balanced[1])
        if separate := _INPUT.match(undecorated_lines(text)):
            return separate["verb"], _input(separate["input"])
    pattern = rf"^(\w+){re.escape(left)}(.+){re.escape(right)}"
    match = re.match(pattern + "$", text) or re.match(pattern, text.strip(" ."))
    return (match[1], match[2]) if match else (text, "")


def undecorated_lines(text: str) -> str:
    """A text whose every line is ``undecorated``."""
    return "\n".join(map(undecorated, text.splitlines()))


def _input(text: str) -> str:
    """An argument that stands behind its label: a text, perhaps quoted, or the only value of a JSON object."""
    text = undecorated(text)
    value = decoded(text)
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    if isinstance(value, str):
        return value.strip()
    return text if value is not None else undecorated(text.splitlines()[0]) if text else ""


def _balanced(text: str, left: str, right: str) -> tuple[str, str] | None:
    """Verb and argument up to the matching bracket; None without one."""
    opened = re.match(rf"(\w+)\s*[:：]?\s*{re.escape(left)}", text)
    depth = 1
    for at in range(opened.end(), len(text)) if opened else ():
        depth += (text[at] == left) - (text[at] == right)
        if depth == 0:
            argument = text[opened.end() : at].strip() if opened else ""
            return (opened[1], argument) if opened and argument else None
    return None


def rendered(conversation: Conversation, *, thought: bool, plan: bool = False) -> list[str]:
    return [
        episode(shot, conversation.env.brackets, thought=thought, plan=plan)
        for shot in conversation.shots
    ]


def agent(
    conversation: Conversation, prompt: str, *, thought: bool, one_call: bool = False
) -> Flow:
    """An agent whose page begins with ``prompt``, filled with the actions, the demonstrations and the question."""
    head = conversation.head(
        prompt, rendered(conversation, thought=thought), actions=actions(conversation.env)
    )
    return (yield from scratchpad(conversation, head, thought=thought, one_call=one_call))


def scratchpad(
    conversation: Conversation, head: str, *, thought: bool = True, one_call: bool = False
) -> Flow:
    """Take steps on the page that begins with ``head`` until the model finishes or a limit is reached.

    Two calls of the model a step: Thought, then Action; ``one_call`` writes both at once; without ``thought`` only the
    Action. Raises EpisodeEnd.
    """
    pad, env = head, conversation.env
    form = _forms.action(_verbs(conversation), env.brackets, conversation.limits.max_tokens)
    for n in range(1, conversation.limits.steps + 1):
        if one_call:
            thoughts, action = yield from _both(conversation, pad, n)
            pad += f"\nThought {n}: {thoughts}\nAction {n}: {action}"
        else:
            if thought:
                thoughts = yield from _line(conversation, f"{pad}\nThought {n}:")
                pad += f"\nThought {n}: {thoughts}"
            action = yield from _line(conversation, f"{pad}\nAction {n}:", form)
            pad += f"\nAction {n}: {action}"
        verb, argument = parse_action(action, env.brackets, conversation.original)
        if finishes(verb, conversation.original):
            answer = argument if conversation.original else unquoted(argument, env.brackets)
            yield Note(f"Observation {n}: Episode finished.")
            return Outcome(answer)
        observation = too_long(argument)
        if not observation:
            observation = yield from conversation.observe(env.act(verb[:200], argument))
        yield Note(f"Observation {n}: {observation}")
        pad += f"\nObservation {n}: {observation}"
    return Outcome("", "step_limit")


def finishes(verb: str, original: bool = False) -> bool:
    """Whether a verb ends the episode."""
    return verb == FINISH if original else verb.lower() == FINISH.lower()


def unquoted(argument: str, brackets: str) -> str:
    """An answer without quotes, which models write in round brackets."""
    quoted = (
        brackets == "()"
        and len(argument) > 1
        and argument[0] == argument[-1]
        and argument[0] in "\"'"
    )
    return argument[1:-1] if quoted else argument


def _verbs(conversation: Conversation) -> list[str]:
    return [*(tool.name for tool in conversation.env.tools), FINISH]


def _line(
    conversation: Conversation, prompt: str, form: Mapping[str, Any] | None = None
) -> SubFlow[str]:
    reply = yield from conversation.ask(prompt, ("\n",), forced=form)
    line = first_line(reply.text)
    return line if conversation.original else without_imitation(line)


def _both(conversation: Conversation, pad: str, n: int) -> SubFlow[tuple[str, str]]:
    """Thought and action from one reply, without invented observations."""
    form = _forms.thought_and_action(
        _verbs(conversation), conversation.env.brackets, n, conversation.limits.max_tokens
    )
    stop = (f"\nObservation {n}:",)
    reply = yield from conversation.ask(f"{pad}\nThought {n}:", stop, forced=form)
    thought, _, action = re.sub(
        r"(?<!\w)Action\s*\d*\s*(?:\*|_)*\s*[:：]", "\0", without_imitation(reply.text), count=1
    ).partition("\0")
    line = first_line(action)
    if not conversation.original and _INPUT.match(undecorated_lines(action).strip()):
        verb, argument = parse_action(action.strip(), conversation.env.brackets)
        line = f"{verb}{conversation.env.brackets[0]}{argument}{conversation.env.brackets[1]}"
    return " ".join(thought.strip().rstrip("*_-# ").split())[:LONGEST], line[:LONGEST]
