"""The plainest agents, without a demonstration: actions only, or with a thought before each (R-Eval, Tu et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.prompts import filled
from rallebench.core.types import Flow, Question
from rallebench.environments import Environment
from rallebench.workflows import COMPAT, WORKFLOWS, Limits, Shot, common
from rallebench.workflows._prompts import actions, episode, examples
from rallebench.workflows._scratchpad import scratchpad
from rallebench.workflows._talking import Talk, ending

SETTINGS = {**common(shots=0), "compat": COMPAT}
PAPER = "R-Eval, arXiv:2406.11681"


@WORKFLOWS.register(
    "zero-shot",
    settings=SETTINGS,
    needs_env=True,
    needs_python=False,
    prompts=("zero_shot.txt",),
    paper=PAPER,
)
def zero_shot(
    question: Question,
    *,
    env: Environment,
    shots: Sequence[Shot],
    prompts: Mapping[str, str],
    **given: Any,
) -> Flow:
    """Actions only, by default without a demonstration."""
    return (
        yield from _acting(question, env, shots, prompts["zero_shot.txt"], thought=False, **given)
    )


@WORKFLOWS.register(
    "zero-shot-think",
    settings=SETTINGS,
    needs_env=True,
    needs_python=False,
    prompts=("react.txt",),
    paper=PAPER,
)
def zero_shot_think(
    question: Question,
    *,
    env: Environment,
    shots: Sequence[Shot],
    prompts: Mapping[str, str],
    **given: Any,
) -> Flow:
    """A thought before every action, by default without a demonstration."""
    return (yield from _acting(question, env, shots, prompts["react.txt"], thought=True, **given))


def _acting(
    question: Question,
    env: Environment,
    shots: Sequence[Shot],
    prompt: str,
    *,
    thought: bool,
    llm: str,
    limits: Limits,
    temperature: float = 0.0,
    seed: int | None = None,
    compat: str = "ours",
) -> Flow:
    talk = Talk(
        question, llm, limits, temperature=temperature, seed=seed, original=compat == "original"
    )
    rendered = [episode(shot, env.brackets, thought=thought, plan=False) for shot in shots]
    head = filled(
        prompt, {"actions": actions(env), "examples": examples(rendered), "question": question.text}
    )
    return (yield from ending(scratchpad(talk, env, head, thought=thought)))
