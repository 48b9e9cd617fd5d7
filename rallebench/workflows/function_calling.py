"""Function calling: the model calls the environment's functions one after another (R-Eval's FC).

Calls are native if the backend supports them; else the functions stand in a text protocol, ``Action:`` and
``Action Input:`` with a JSON object, as in ToolLLM (Qin et al. 2023, arXiv:2307.16789).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rallebench.core.settings import Setting
from rallebench.core.types import Flow, Outcome, Question
from rallebench.environments import Environment
from rallebench.workflows import COMPAT, WORKFLOWS, EpisodeLimits, Shot, common
from rallebench.workflows._calling import FINISHING, carried_out, opening, turn
from rallebench.workflows._talking import Talk, ending

PROTOCOL = Setting(
    str,
    "auto",
    choices=("auto", "native", "text"),
    about="form of the calls; auto: native if the model supports it",
)
SETTINGS = {**common(shots=0, max_tokens=512), "protocol": PROTOCOL, "compat": COMPAT}


@WORKFLOWS.register(
    "function-calling",
    form=SETTINGS,
    needs_env=True,
    needs_python=False,
    calls=True,
    prompts=("function_calling.txt", "text_protocol.txt"),
    paper="R-Eval, arXiv:2406.11681",
)
def function_calling(
    question: Question,
    *,
    llm: str,
    env: Environment,
    shots: Sequence[Shot],
    limits: EpisodeLimits,
    prompts: Mapping[str, str],
    native: bool,
    temperature: float = 0.0,
    seed: int | None = None,
    compat: str = "ours",
    protocol: str = "auto",
) -> Flow:
    """The environment's functions, called by the model one after another."""
    talk = Talk(
        question, llm, limits, temperature=temperature, seed=seed, original=compat == "original"
    )
    tools = (*env.tools, FINISHING)

    def flow() -> Flow:
        conversation = opening(
            prompts["function_calling.txt"],
            prompts["text_protocol.txt"],
            env,
            shots,
            question.text,
            native,
        )
        for number in range(1, limits.steps + 1):
            move = yield from turn(talk, conversation, tools, native, number)
            observed = yield from carried_out(talk, env, move)
            if isinstance(observed, Outcome):
                return observed
            conversation = (*conversation, move.message, move.answered(observed))
        return Outcome("", "step_limit")

    return (yield from ending(flow()))
