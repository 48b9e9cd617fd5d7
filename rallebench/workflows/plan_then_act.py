"""A plan first, then its actions; ``planner-react`` thinks before every action (R-Eval, Tu et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.prompts import filled
from rallebench.core.types import Flow, Outcome, Question
from rallebench.environments import Environment
from rallebench.workflows import COMPAT, WORKFLOWS, EpisodeLimits, Shot, common
from rallebench.workflows._prompts import actions, episode, examples
from rallebench.workflows._scratchpad import scratchpad
from rallebench.workflows._talking import Talk, ending, first_line

SETTINGS = {**common(shots=3), "compat": COMPAT}
PAPER = "R-Eval, arXiv:2406.11681"


@WORKFLOWS.register(
    "plan-then-act",
    form=SETTINGS,
    needs_env=True,
    needs_python=False,
    prompts=("plan.txt", "plan_then_act.txt"),
    paper=PAPER,
)
def plan_then_act(
    question: Question,
    *,
    env: Environment,
    shots: Sequence[Shot],
    prompts: Mapping[str, str],
    **options: Any,
) -> Flow:
    """One plan, then Action and Observation in turn."""
    return (
        yield from _planned(
            question,
            env,
            shots,
            prompts["plan.txt"],
            prompts["plan_then_act.txt"],
            thought=False,
            **options,
        )
    )


@WORKFLOWS.register(
    "planner-react",
    form=SETTINGS,
    needs_env=True,
    needs_python=False,
    prompts=("plan.txt", "planner_react.txt"),
    paper=PAPER,
)
def planner_react(
    question: Question,
    *,
    env: Environment,
    shots: Sequence[Shot],
    prompts: Mapping[str, str],
    **options: Any,
) -> Flow:
    """One plan, then Thought, Action and Observation in turn."""
    return (
        yield from _planned(
            question,
            env,
            shots,
            prompts["plan.txt"],
            prompts["planner_react.txt"],
            thought=True,
            **options,
        )
    )


def _planned(
    question: Question,
    env: Environment,
    shots: Sequence[Shot],
    plan_prompt: str,
    page_prompt: str,
    *,
    thought: bool,
    llm: str,
    limits: EpisodeLimits,
    temperature: float = 0.0,
    seed: int | None = None,
    compat: str = "ours",
) -> Flow:
    talk = Talk(
        question, llm, limits, temperature=temperature, seed=seed, original=compat == "original"
    )
    actions_text = actions(env)

    def flow() -> Flow:
        plans = [f"Question: {shot.question}\nPlan: {shot.plan}" for shot in shots if shot.plan]
        prompt = filled(
            plan_prompt,
            {"actions": actions_text, "examples": examples(plans), "question": question.text},
        )
        reply = yield from talk.say(f"{prompt}\nPlan:", ("\n",))
        plan = first_line(reply.text)
        if not plan:
            return Outcome("", "model_error")
        rendered = [episode(shot, env.brackets, thought=thought, plan=True) for shot in shots]
        head = filled(
            page_prompt,
            {"actions": actions_text, "examples": examples(rendered), "question": question.text},
        )
        return (yield from scratchpad(talk, env, f"{head}\nPlan: {plan}", thought=thought))

    return (yield from ending(flow()))
