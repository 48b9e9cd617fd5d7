"""Format an episode's scratchpad as R-Eval does, and find its observations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from rallebench.core.types import Episode, Generate, Note, Step, UseTool

TOOL = "python"
"""The tool that runs programs; its observations are in the arguments of its calls."""

LINES = frozenset({"react", "zero-shot", "zero-shot-think", "plan-then-act", "planner-react"})
"""Workflows whose scratchpad is written line by line; other workflows join their messages with spaces."""

_LABEL = re.compile(r"(?:^|\n)((?:Thought|Action|Plan) ?\d*:)$")
_OBSERVATION = re.compile(r"^Observation(?: \d+)?: ?(.*)", re.DOTALL)
_LOGGED = re.compile(
    r"(?:^|\n)Observation \d+: ?(.*?)(?=\n(?:Thought|Action|Observation) \d+:|\Z)", re.DOTALL
)
_ECHO = re.compile(
    r"^(?:Could not find \[.*?\]\.\s*(?=Similar:)|There is no (?:tool|call) .*?['\"]\.\s*)",
    re.DOTALL,
)
_ENDS = frozenset({"Episode finished.", "Answer is CORRECT", "Answer is INCORRECT"})
"""Observations of the final action."""


def scratchpad_text(episode: Episode) -> str:
    """Return the model's text and the observations after the question, as R-Eval's log has them."""
    lines = episode.workflow in LINES
    parts = list(_lines(episode.steps) if lines else _messages(episode.steps))
    return ("\n" if lines and parts else "") + ("\n" if lines else " ").join(parts)


def observed_by(episode: Episode) -> str:
    """Return the environment's observations, one per line, without the model's own text."""
    return "\n".join(map(_without_echo, _observations(episode.steps)))


def observed_in(scratchpad: str) -> str:
    """Return the observations in the scratchpad of an imported log; '' if none is marked.

    >>> observed_in("\\nThought 1: Hm.\\nAction 1: Search[Ada]\\nObservation 1: A poet.\\nAction 2: Finish[x]\\nObservation 2: Answer is CORRECT")
    'A poet.'
    """
    observations = (text.strip() for text in _LOGGED.findall(scratchpad))
    return "\n".join(
        _without_echo(text) for text in observations if not text.startswith(tuple(_ENDS))
    )


def _without_echo(observation: str) -> str:
    """Remove the model's own words, which are quoted, from an observation.

    >>> _without_echo("Could not find [Ada]. Similar: ['Ada Lovelace']"), _without_echo("There is no tool 'Ada'. The tools are Search.")
    ("Similar: ['Ada Lovelace']", 'The tools are Search.')
    """
    return _ECHO.sub("", observation)


def first_prompt(episode: Episode) -> str:
    """Return the first prompt without its final label; '' if no model was called."""
    first = next(
        (step.request for step in episode.steps if isinstance(step.request, Generate)), None
    )
    if first is None:
        return ""
    return _LABEL.sub("", "\n".join(message.content for message in first.messages))


def _observations(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        text = _observation(step)
        if text is not None and text not in _ENDS:
            yield text


def _observation(step: Step) -> str | None:
    if isinstance(step.request, Note):
        match = _OBSERVATION.match(step.request.text)
        return match[1] if match else None
    if isinstance(step.request, UseTool) and step.request.tool == TOOL:
        return step.request.arguments.get("observation")
    return None


def _lines(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        if isinstance(step.request, Generate):
            label = _LABEL.search(step.request.messages[-1].content)
            words = " ".join(step.reply.text.split())
            yield f"{label[1]} {words}" if label else step.reply.text.strip()
        elif _observation(step) is not None and isinstance(step.request, Note):
            yield step.request.text


def _messages(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        if isinstance(step.request, Generate):
            calls = (f"{call.name}({_argument(call.arguments)})" for call in step.reply.tool_calls)
            yield from filter(None, (step.reply.text.strip(), *calls))
        elif isinstance(step.request, UseTool) and step.request.tool == TOOL:
            printed = "" if step.reply.tool_calls else step.reply.text.strip()
            yield from filter(None, (step.request.arguments.get("observation", ""), printed))
        elif (observation := _observation(step)) is not None:
            yield observation


def _argument(arguments: str) -> str:
    """Remove needless escapes from a call's JSON; other text is unchanged."""
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments
