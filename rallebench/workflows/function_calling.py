"""Function calling: the model calls the environment's functions one after another (R-Eval's FC).

Calls are native if the backend supports them; else the text protocol is used, ``Action:`` and ``Action Input:`` with a
JSON object, as in ToolLLM (Qin et al. 2023, arXiv:2307.16789).
"""

from __future__ import annotations

from rallebench.core.settings import Setting
from rallebench.core.types import Flow, Outcome
from rallebench.workflows import COMPAT, common
from rallebench.workflows._calling import carried_out, opening, turn
from rallebench.workflows._conversation import Conversation, register_agent

PROTOCOL = Setting(
    str,
    "auto",
    choices=("auto", "native", "text"),
    about="how functions are called; auto: native if the model supports it",
)
SETTINGS = {**common(shots=0, max_tokens=512), "protocol": PROTOCOL, "compat": COMPAT}


@register_agent(
    "function-calling",
    form=SETTINGS,
    calls=True,
    prompts=("function_calling.txt", "text_protocol.txt"),
    paper="R-Eval, arXiv:2406.11681",
)
def function_calling(conversation: Conversation) -> Flow:
    """The environment's functions, called by the model one after another."""
    messages = opening(conversation, "function_calling.txt")
    for number in range(1, conversation.limits.steps + 1):
        move = yield from turn(conversation, messages, number)
        observed = yield from carried_out(conversation, move)
        if isinstance(observed, Outcome):
            return observed
        messages = (*messages, move.message, move.observation_message(observed))
    return Outcome("", "step_limit")
