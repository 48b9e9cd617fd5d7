"""ReAct: thought, action, observation, and so on until it finishes.

Yao et al. 2023, arXiv:2210.03629, as in R-Eval (Tu et al. 2024): two calls of the model a step, each stopped at the end
of a line, greedy, at most 10 steps. The agent never sees the gold: no observation says whether an answer is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.settings import Setting
from rallebench.core.types import Flow, Question
from rallebench.environments import Environment
from rallebench.workflows import COMPAT, WORKFLOWS, Shot, common
from rallebench.workflows._scratchpad import agent

SETTINGS = {
    **common(),
    "one_call": Setting(
        bool,
        False,
        about="thought and action in one call of the model, which stops before an observation",
    ),
    "compat": COMPAT,
}


@WORKFLOWS.register(
    "react",
    form=SETTINGS,
    needs_env=True,
    needs_python=False,
    prompts=("react.txt",),
    paper="arXiv:2210.03629",
)
def react(
    question: Question,
    *,
    env: Environment,
    shots: Sequence[Shot],
    prompts: Mapping[str, str],
    **options: Any,
) -> Flow:
    """Thought, Action and Observation in turn, with demonstrations."""
    return (yield from agent(question, env, shots, prompts["react.txt"], thought=True, **options))
