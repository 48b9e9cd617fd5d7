"""The simplest agents, without a demonstration: actions only, or with a thought before each (R-Eval, Tu et al. 2024)."""

from __future__ import annotations

from rallebench.core.types import Flow
from rallebench.workflows import COMPAT, common
from rallebench.workflows._scratchpad import agent
from rallebench.workflows._talking import Talk, register_agent

SETTINGS = {**common(shots=0), "compat": COMPAT}
PAPER = "R-Eval, arXiv:2406.11681"


@register_agent("zero-shot", form=SETTINGS, prompts=("zero_shot.txt",), paper=PAPER)
def zero_shot(talk: Talk) -> Flow:
    """Actions only, by default without a demonstration."""
    return (yield from agent(talk, "zero_shot.txt", thought=False))


@register_agent("zero-shot-think", form=SETTINGS, prompts=("react.txt",), paper=PAPER)
def zero_shot_think(talk: Talk) -> Flow:
    """A thought before every action, by default without a demonstration."""
    return (yield from agent(talk, "react.txt", thought=True))
