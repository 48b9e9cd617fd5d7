"""Workflows: one published agent per file, each a flow.

A workflow is a generator function ``workflow(question, **settings) → Flow``. It knows the question, the name of a
language model and its own environment, never the gold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rallebench.core.registry import Registry
from rallebench.core.settings import Setting, dataclass_form, declare
from rallebench.core.types import Flow

WORKFLOWS: Registry[Callable[..., Flow]] = Registry(
    "workflow",
    "rallebench.workflows",
    rooms=("workflow*",),
    traits={
        "needs_env": "whether it acts in an environment",
        "needs_python": "whether it runs programs that a model wrote",
        "needs_retriever": "whether it searches an index itself",
        "prompts": "files of prompts/workflows, whose texts are its argument prompts (name → text)",
        "calls": "whether it takes native, which says that the model can call tools",
        "paper": "where it was published",
    },
)
"""Flows: ``workflow(question, *, llm, env, shots, limits, **settings)``. The settings of ``common`` become ``shots`` and ``limits``, all others keep their names.
BARAG's, with ``needs_retriever``, take ``agent`` (``barag.BaragAgent``) instead; the suites ``barag-…`` run them."""


def agent_workflows() -> tuple[str, ...]:
    """The workflows that an agent may have; the others are run by suites of their own."""
    return tuple(n for n in WORKFLOWS.names() if "prompts" in WORKFLOWS.entry(n).traits)


REASONS: Mapping[str, str] = {
    "answered": "finished with an answer",
    "step_limit": "reached the limit of steps",
    "context_limit": "the prompt no longer fits the model's context",
    "token_limit": "reached the limit of tokens",
    "time_limit": "reached the time limit",
    "model_error": "the model gave no usable reply",
    "tool_error": "a tool or program failed",
    "gave_up": "the model gave up, or every branch was tried",
    "no_answer": "finished without an answer",
}
"""The stop reasons of an episode, in words. An episode with a failed backend has an ``error`` and no outcome."""


@dataclass(frozen=True, slots=True)
class EpisodeLimits:
    """The limits of an episode. A step is an action, for DFSDT a turn of the model; ``max_tokens`` are of one reply; the clock
    of ``seconds`` includes the rest of the batch. 0 is no limit, except for ``steps`` and ``max_tokens``.
    """

    steps: int = declare(int, 10, 1, 1000, about="at most so many steps")
    max_tokens: int = declare(int, 128, 1, 100_000, about="at most so many tokens a reply")
    context: int = declare(
        int,
        *(0, 0, 10_000_000),
        about="at most so many tokens a prompt; 0: the model's own window, if known",
    )
    tokens: int = declare(
        int, 0, 0, 100_000_000, about="at most so many tokens read and written; 0: no limit"
    )
    seconds: float = declare(
        float, 0.0, 0, 1_000_000, about="at most so many seconds by the clock; 0: no limit"
    )


@dataclass(frozen=True, slots=True)
class ShotStep:
    """One step of a demonstration. ``argument``: the text of a text protocol; ``arguments``: those of a tool call."""

    thought: str
    name: str
    argument: str
    arguments: Mapping[str, Any]
    observation: str = ""


@dataclass(frozen=True, slots=True)
class Shot:
    """A demonstration: a question with all parts that a workflow may use. The last of its ``steps`` finishes."""

    question: str
    answer: str
    steps: tuple[ShotStep, ...] = ()
    plan: str = ""
    reasoning: str = ""
    program: str = ""


def common(*, steps: int = 10, shots: int = 2, max_tokens: int = 128) -> dict[str, Setting]:
    """The settings of every workflow, with its own defaults."""
    limits = dataclass_form(EpisodeLimits)
    return {
        "shots": Setting(int, shots, 0, 50, about="number of demonstrations, from the pool"),
        "pool": Setting(
            str,
            "",
            about="a file of demonstrations; default: those for the environment",
            names="file",
        ),
        "steps": replace(limits.pop("steps"), default=steps),
        "max_tokens": replace(limits.pop("max_tokens"), default=max_tokens),
        "temperature": Setting(float, 0.0, 0, 2, about="0 is greedy"),
        **limits,
    }


COMPAT = Setting(
    str,
    "ours",
    choices=("ours", "original"),
    about="original: the parsing and the stops of R-Eval's code",
)
