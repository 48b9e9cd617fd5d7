"""Chain of thought: reasoning and an answer in one reply, no tools (Wei et al. 2022, arXiv:2201.11903)."""

from __future__ import annotations

import re

from rallebench.core.types import Flow, Outcome
from rallebench.workflows import common
from rallebench.workflows._conversation import Conversation, register_agent

_ANSWER = re.compile(
    r"^[\s*#>-]*(?:final\s+)?answer\s*\**\s*:\s*\**\s*", re.IGNORECASE | re.MULTILINE
)


@register_agent(
    "chain-of-thought",
    form=common(steps=1, max_tokens=512),
    needs_env=False,
    prompts=("chain_of_thought.txt",),
    paper="arXiv:2201.11903",
)
def chain_of_thought(conversation: Conversation) -> Flow:
    """Reasoning step by step, then the answer, from the model's own knowledge."""
    rendered = [
        f"Question: {shot.question}\nReasoning: {shot.reasoning}\nAnswer: {shot.answer}"
        for shot in conversation.shots
    ]
    reply = yield from conversation.ask(
        conversation.head("chain_of_thought.txt", rendered), ("\nQuestion:",)
    )
    if answer := last_answer(reply.text):
        return Outcome(answer)
    return Outcome("", "no_answer" if reply.text.strip() else "model_error")


def last_answer(text: str) -> str:
    """Return the text after the last ``Answer:`` on its line; without one, the last line.

    >>> last_answer("Ada was born in 1815.\\nAnswer: 1815\\n"), last_answer("So it is Paris.")
    ('1815', 'So it is Paris.')
    """
    parts = _ANSWER.split(text)
    if len(parts) > 1:
        return parts[-1].strip().split("\n")[0].strip()
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return lines[-1] if lines else ""
