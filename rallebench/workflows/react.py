"""ReAct: thought, action, observation, repeated until it finishes; and R-Eval's simpler agents without a demonstration.

Yao et al. 2023, arXiv:2210.03629, as in R-Eval (Tu et al. 2024): two model calls per step, each stopped at the end
of a line, greedy, at most 10 steps. The agent never sees the gold: no observation says whether an answer is right.
"""

from __future__ import annotations

from rallebench.core.settings import Setting
from rallebench.core.types import Flow
from rallebench.workflows import COMPAT, common
from rallebench.workflows._conversation import Conversation, register_agent
from rallebench.workflows._scratchpad import agent

SETTINGS = {
    **common(),
    "one_call": Setting(
        bool,
        False,
        about="thought and action in one model call, which stops before an observation",
    ),
    "compat": COMPAT,
}


@register_agent("react", form=SETTINGS, prompts=("react.txt",), paper="arXiv:2210.03629")
def react(conversation: Conversation, *, one_call: bool = False) -> Flow:
    """Thought, Action and Observation in turn, with demonstrations."""
    return (yield from agent(conversation, "react.txt", thought=True, one_call=one_call))


ZERO_SHOT = {**common(shots=0), "compat": COMPAT}
ORIGIN = "R-Eval, arXiv:2406.11681"


@register_agent("zero-shot", form=ZERO_SHOT, prompts=("zero_shot.txt",), paper=ORIGIN)
def zero_shot(conversation: Conversation) -> Flow:
    """Actions only, by default without a demonstration."""
    return (yield from agent(conversation, "zero_shot.txt", thought=False))


@register_agent("zero-shot-think", form=ZERO_SHOT, prompts=("react.txt",), paper=ORIGIN)
def zero_shot_think(conversation: Conversation) -> Flow:
    """A thought before every action, by default without a demonstration."""
    return (yield from agent(conversation, "react.txt", thought=True))
