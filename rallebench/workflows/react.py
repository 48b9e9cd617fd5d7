"""ReAct: thought, action, observation, and so on until it finishes.

Yao et al. 2023, arXiv:2210.03629, as R-Eval (Tu et al. 2024) runs it: two calls of the model a step, each stopped at
the end of a line, greedy, at most 10 steps. The gold never enters: no observation says whether an answer is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rallebench.core.prompts import filled
from rallebench.core.settings import Setting
from rallebench.core.types import Flow, Question
from rallebench.environments import Environment
from rallebench.workflows import COMPAT, WORKFLOWS, Limits, Shot, common
from rallebench.workflows._prompts import actions, episode, examples
from rallebench.workflows._scratchpad import scratchpad
from rallebench.workflows._talking import Talk, ending

SETTINGS = {
    **common(),
    "one_call": Setting(
        bool,
        False,
        about="thought and action in one call of the model, which is stopped where it begins to observe",
    ),
    "compat": COMPAT,
}


@WORKFLOWS.register(
    "react",
    settings=SETTINGS,
    needs_env=True,
    needs_python=False,
    prompts=("react.txt",),
    paper="arXiv:2210.03629",
)
def react(
    question: Question,
    *,
    llm: str,
    env: Environment,
    shots: Sequence[Shot],
    limits: Limits,
    prompts: Mapping[str, str],
    temperature: float = 0.0,
    seed: int | None = None,
    one_call: bool = False,
    compat: str = "ours",
) -> Flow:
    """Thought, Action and Observation in turn, with demonstrations."""
    talk = Talk(
        question, llm, limits, temperature=temperature, seed=seed, original=compat == "original"
    )
    rendered = [episode(shot, env.brackets, thought=True, plan=False) for shot in shots]
    head = filled(
        prompts["react.txt"],
        {"actions": actions(env), "examples": examples(rendered), "question": question.text},
    )
    return (yield from ending(scratchpad(talk, env, head, one_call=one_call)))
