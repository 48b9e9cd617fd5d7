"""How a question is answered: one published way of acting per file, each a flow.

A workflow is a generator function ``workflow(question, **settings) → Flow``. It knows the question, a language model's
name and an environment of its own, never the gold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rallebench.core.registry import Registry
from rallebench.core.settings import Setting
from rallebench.core.types import Flow

WORKFLOWS: Registry[Callable[..., Flow]] = Registry("workflow", "rallebench.workflows")
"""Flows: ``workflow(question, *, llm, env, shots, limits, **settings)``. Traits: ``settings``, name → Setting; ``needs_env``;
``needs_python``: whether it runs programs; ``paper``; ``prompts``: files of ``prompts/workflows`` whose texts it is
given as ``prompts`` (name → text); ``calls``: whether it is told as ``native`` if the model may be offered tools.
Settings that ``common`` names reach it as ``shots`` and ``limits``, all others by their own names.
BARAG's, which say ``needs_retriever``, take ``agent`` (``barag.Agent``) instead and are run by the suites ``barag-…``."""

REASONS: Mapping[str, str] = {
    "answered": "finished with an answer",
    "step_limit": "took as many steps as it may",
    "context_limit": "its prompt no longer fits the model's context",
    "token_limit": "used as many tokens as it may",
    "time_limit": "took as long as it may",
    "model_error": "the model said nothing that can be used",
    "tool_error": "a tool or program failed",
    "gave_up": "the model gave up, or every branch was tried",
    "no_answer": "ended well, but without an answer",
}
"""How an episode may end, in words. One whose backend failed has an ``error`` instead and no outcome."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an episode may use. ``steps``: actions (for DFSDT turns of the model). ``max_tokens``: of one reply. ``context``:
    tokens of a prompt; ``tokens``: read and written by the model in all; ``seconds``: by the clock, also while others
    of a batch are answered. 0 is no limit, but for ``steps`` and ``max_tokens``."""

    steps: int = 10
    max_tokens: int = 128
    context: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ShotStep:
    """One step of a demonstration. ``argument``: as a text protocol writes it; ``arguments``: as a call has them."""

    thought: str
    name: str
    argument: str
    arguments: Mapping[str, Any]
    observation: str = ""


@dataclass(frozen=True, slots=True)
class Shot:
    """A demonstration: one question with all that a workflow may show of it. The last of its ``steps`` finishes."""

    question: str
    answer: str
    steps: tuple[ShotStep, ...] = ()
    plan: str = ""
    reasoning: str = ""
    program: str = field(default="")


def common(
    *, steps: int = 10, shots: int = 2, max_tokens: int = 128, temperature: float = 0.0
) -> dict[str, Setting]:
    """The settings that every workflow has, with its own defaults."""
    return {
        "shots": Setting(
            int, shots, 0, 50, about="demonstrations from the pool, the first so many"
        ),
        "pool": Setting(
            str, "", about="a file of demonstrations; by default those for the environment"
        ),
        "steps": Setting(int, steps, 1, 1000, about="how many steps it may take"),
        "max_tokens": Setting(int, max_tokens, 1, 100_000, about="tokens of one reply at most"),
        "temperature": Setting(float, temperature, 0, 2, about="0 is greedy"),
        "context": Setting(
            int,
            0,
            0,
            10_000_000,
            about="tokens of a prompt at most; 0 is the model's own window, if it says",
        ),
        "tokens": Setting(
            int, 0, 0, 100_000_000, about="tokens read and written in all at most; 0 is any number"
        ),
        "seconds": Setting(
            float, 0.0, 0, 1_000_000, about="seconds by the clock at most; 0 is any number"
        ),
    }


COMPAT = Setting(
    str,
    "ours",
    choices=("ours", "original"),
    about="original: parses and halts as R-Eval's code does",
)
