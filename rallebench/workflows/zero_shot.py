"""The simplest agents, without a demonstration: actions only, or with a thought before each (R-Eval, Tu et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.types import Flow, Question
from rallebench.environments import Environment
from rallebench.workflows import COMPAT, WORKFLOWS, Shot, common
from rallebench.workflows._scratchpad import agent

SETTINGS = {**common(shots=0), "compat": COMPAT}
PAPER = "R-Eval, arXiv:2406.11681"


@WORKFLOWS.register(
    "zero-shot",
    form=SETTINGS,
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
    **options: Any,
) -> Flow:
    """Actions only, by default without a demonstration."""
    prompt = prompts["zero_shot.txt"]
    return (yield from agent(question, env, shots, prompt, thought=False, **options))


@WORKFLOWS.register(
    "zero-shot-think",
    form=SETTINGS,
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
    **options: Any,
) -> Flow:
    """A thought before every action, by default without a demonstration."""
    return (yield from agent(question, env, shots, prompts["react.txt"], thought=True, **options))
