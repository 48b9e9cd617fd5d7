"""Chain of thought: reasoning and an answer in one reply, no tools (Wei et al. 2022, arXiv:2201.11903)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rallebench.core.prompts import filled
from rallebench.core.types import Flow, Outcome, Question
from rallebench.workflows import WORKFLOWS, EpisodeLimits, Shot, common
from rallebench.workflows._prompts import examples
from rallebench.workflows._talking import Talk, ending

_ANSWER = re.compile(
    r"^[\s*#>-]*(?:final\s+)?answer\s*\**\s*:\s*\**\s*", re.IGNORECASE | re.MULTILINE
)


@WORKFLOWS.register(
    "chain-of-thought",
    form=common(steps=1, max_tokens=512),
    needs_env=False,
    needs_python=False,
    prompts=("chain_of_thought.txt",),
    paper="arXiv:2201.11903",
)
def chain_of_thought(
    question: Question,
    *,
    llm: str,
    shots: Sequence[Shot],
    limits: EpisodeLimits,
    prompts: Mapping[str, str],
    env: object = None,
    temperature: float = 0.0,
    seed: int | None = None,
) -> Flow:
    """Reasoning step by step, then the answer, from the model's own knowledge."""
    talk = Talk(question, llm, limits, temperature=temperature, seed=seed)
    rendered = [
        f"Question: {shot.question}\nReasoning: {shot.reasoning}\nAnswer: {shot.answer}"
        for shot in shots
    ]

    def flow() -> Flow:
        prompt = filled(
            prompts["chain_of_thought.txt"],
            {"examples": examples(rendered), "question": question.text},
        )
        reply = yield from talk.say(prompt, ("\nQuestion:",))
        answer = answer_of(reply.text)
        return (
            Outcome(answer)
            if answer
            else Outcome("", "no_answer" if reply.text.strip() else "model_error")
        )

    return (yield from ending(flow()))


def answer_of(text: str) -> str:
    """The text after the last ``Answer:`` on its line; without such a line, the last line.

    >>> answer_of("Ada was born in 1815.\\nAnswer: 1815\\n"), answer_of("So it is Paris.")
    ('1815', 'So it is Paris.')
    """
    parts = _ANSWER.split(text)
    if len(parts) > 1:
        return parts[-1].strip().split("\n")[0].strip()
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return lines[-1] if lines else ""
