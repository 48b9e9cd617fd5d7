"""PAL: the model writes one program, which runs once; its output is the answer.

Gao et al. 2023, arXiv:2211.10435, as in R-Eval (Tu et al. 2024): the program calls the environment's functions, and
nothing is repaired. The program runs in its own Python (``rallebench.sandbox``), which pauses in every call.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rallebench import sandbox
from rallebench.core.types import Flow, Outcome, Reply, SubFlow, ToolCall, UseTool
from rallebench.sandbox.sessions import new_name
from rallebench.workflows import common
from rallebench.workflows._conversation import Conversation, register_agent, too_long
from rallebench.workflows.prompts import functions

_FENCE = re.compile(r"```[ \t]*\w*[ \t]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_REASONS = {"stop": "answered", "call_limit": "step_limit", "not_python": "model_error"}


@register_agent(
    "pal",
    form=common(steps=100, max_tokens=512),
    needs_python=True,
    prompts=("pal.txt",),
    paper="arXiv:2211.10435",
)
def pal(conversation: Conversation) -> Flow:
    """One program that calls the environment; its output is the answer."""
    shots = [shot for shot in conversation.shots if shot.program]
    rendered = [f"Question: {shot.question}\n```python\n{shot.program}\n```" for shot in shots]
    prompt = conversation.head("pal.txt", rendered, functions=functions(conversation.env))
    reply = yield from conversation.ask(prompt)
    program = extract_program(reply.text)
    if not program.strip():
        return Outcome("", "model_error")
    result, calls = yield from _run(conversation, program)
    if calls > conversation.limits.steps:
        return Outcome("", "step_limit")
    reason = _REASONS.get(result.finish_reason, "tool_error")
    answer = result.text.strip() if reason == "answered" else ""
    return Outcome(answer, reason if answer or reason != "answered" else "no_answer")


def _run(conversation: Conversation, program: str) -> SubFlow[tuple[Reply, int]]:
    """Run the program, answering its calls from the environment; return (the last reply, the number of calls)."""
    name, calls = new_name(), 0
    begun = sandbox.begin(
        name, program, {tool.name: tool.arguments for tool in conversation.env.tools}
    )
    finished = False
    try:
        reply = yield UseTool(sandbox.TOOL, begun)
        while reply.tool_calls and calls <= conversation.limits.steps:
            calls += 1
            if calls <= conversation.limits.steps:
                observation = yield from _answer_call(conversation, reply.tool_calls[0])
                reply = yield UseTool(sandbox.TOOL, sandbox.answer(name, observation))
        finished = not reply.tool_calls
        return reply, calls
    finally:
        if not finished:  # the flow was closed, a limit was reached or the environment failed
            sandbox.stop(name)


def _answer_call(conversation: Conversation, call: ToolCall) -> SubFlow[str]:
    arguments: Any = json.loads(call.arguments)
    wrong = too_long(arguments)
    return wrong or (yield from conversation.observe(conversation.env.call(call.name, arguments)))


def extract_program(text: str) -> str:
    """Return the program in a reply: its first fenced block, closed or not, or else the whole reply.

    >>> extract_program("Here it is:\\n```python\\nprint(1)\\n```\\nDone."), extract_program("print(2)")
    ('print(1)', 'print(2)')
    """
    block = _FENCE.search(text)
    return (
        block[1].rstrip()
        if block
        else text.removeprefix("```python").removeprefix("```").removesuffix("```")
    )
