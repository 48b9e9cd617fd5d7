"""A plan first, then its actions; ``planner-react`` thinks before every action (R-Eval, Tu et al. 2024)."""

from __future__ import annotations

from rallebench.core.types import Flow, Outcome
from rallebench.workflows import COMPAT, common
from rallebench.workflows._conversation import Conversation, first_line, register_agent
from rallebench.workflows._scratchpad import render_shots, scratchpad
from rallebench.workflows.prompts import actions

SETTINGS = {**common(shots=3), "compat": COMPAT}
PAPER = "R-Eval, arXiv:2406.11681"


@register_agent(
    "plan-then-act", form=SETTINGS, prompts=("plan.txt", "plan_then_act.txt"), paper=PAPER
)
def plan_then_act(conversation: Conversation) -> Flow:
    """One plan, then Action and Observation in turn."""
    return (yield from _plan(conversation, "plan_then_act.txt", thought=False))


@register_agent(
    "planner-react", form=SETTINGS, prompts=("plan.txt", "planner_react.txt"), paper=PAPER
)
def planner_react(conversation: Conversation) -> Flow:
    """One plan, then Thought, Action and Observation in turn."""
    return (yield from _plan(conversation, "planner_react.txt", thought=True))


def _plan(conversation: Conversation, page_prompt: str, *, thought: bool) -> Flow:
    listed = actions(conversation.env)
    plans = [
        f"Question: {shot.question}\nPlan: {shot.plan}" for shot in conversation.shots if shot.plan
    ]
    prompt = conversation.head("plan.txt", plans, actions=listed)
    reply = yield from conversation.ask(f"{prompt}\nPlan:", ("\n",))
    plan = first_line(reply.text)
    if not plan:
        return Outcome("", "model_error")
    head = conversation.head(
        page_prompt, render_shots(conversation, thought=thought, plan=True), actions=listed
    )
    return (yield from scratchpad(conversation, f"{head}\nPlan: {plan}", thought=thought))
