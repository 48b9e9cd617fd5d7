"""Workflows: one published agent per file, each a flow.

A workflow is a generator function ``workflow(question, **settings) → Flow``. It receives the question, the name of a
language model and its own environment, never the gold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rallebench.core.registry import Registry
from rallebench.core.settings import Setting, dataclass_form, declare
from rallebench.core.types import Flow, Json

WORKFLOWS: Registry[Callable[..., Flow]] = Registry(
    "workflow",
    "rallebench.workflows",
    expects="a flow (question, *, llm, env, shots, limits, **settings)",
    rooms=("workflow*",),
    traits={
        "needs_env": "True if it acts in an environment",
        "needs_python": "True if it runs programs written by a model",
        "needs_retriever": "True if it searches an index itself",
        "prompts": "files in prompts/workflows, passed as its prompts (name → text)",
        "calls": "True if it takes native, which says that the model can call tools",
        "paper": "publication",
    },
)
"""Flows: ``workflow(question, *, llm, env, shots, limits, **settings)``. The settings of ``common`` become ``shots`` and
``limits``, all others keep their names. With ``needs_retriever`` (BARAG), workflows take ``agent``
(``barag.BaragAgent``) instead; the suites ``barag-…`` run them.
"""


def agent_workflows() -> tuple[str, ...]:
    """Return the workflows available to an agent; the others are run by suites of their own."""
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
"""Stop reason of an episode → description. An episode with a failed backend has an ``error`` and no outcome."""


@dataclass(frozen=True, slots=True)
class EpisodeLimits:
    """Limits of an episode. A step is an action, or for DFSDT a turn of the model; ``max_tokens`` applies to one reply;
    ``seconds`` are wall-clock time and include the rest of the batch. 0: no limit, except for ``steps`` and ``max_tokens``.
    """

    steps: int = declare(int, 10, 1, 1000, about="maximum number of steps")
    max_tokens: int = declare(int, 128, 1, 100_000, about="maximum tokens per reply")
    context: int = declare(
        int,
        *(0, 0, 10_000_000),
        about="maximum tokens per prompt; 0: the model's own window, if known",
    )
    tokens: int = declare(
        int, 0, 0, 100_000_000, about="maximum tokens read and written; 0: no limit"
    )
    seconds: float = declare(
        float, 0.0, 0, 1_000_000, about="maximum seconds of wall-clock time; 0: no limit"
    )


@dataclass(frozen=True, slots=True)
class ShotStep:
    """One step of a demonstration. ``argument``: for text protocols; ``arguments``: for tool calls."""

    thought: str
    name: str
    argument: str
    arguments: Json
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
    """Return the settings of every workflow, with the given defaults."""
    limits = dataclass_form(EpisodeLimits)
    return {
        "shots": Setting(int, shots, 0, 50, about="number of demonstrations, from the pool"),
        "pool": Setting(
            str,
            "",
            about="a file of demonstrations; default: the environment's own",
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
