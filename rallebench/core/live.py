"""Events of a flow that is followed live: a step begins, the model writes, a step ends, the episode is complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from rallebench.core.choosing import Choose
from rallebench.core.types import Episode, Generate, Request, Retrieve, Step, UseTool


def heading(request: Request) -> str:
    """Return the kind of a step and its retriever, model or tool, as in "retrieve docs-bm25"."""
    if isinstance(request, Retrieve):
        return f"retrieve {request.retriever}"
    if isinstance(request, Choose):
        return f"choose {request.llm}"
    if isinstance(request, Generate):
        return f"generate {request.llm}"
    return f"tool {request.tool}" if isinstance(request, UseTool) else "identity"


@dataclass(frozen=True, slots=True)
class StepStarted:
    """Step ``index`` (from 0) begins with ``request``."""

    index: int
    request: Request


@dataclass(frozen=True, slots=True)
class Delta:
    """The model wrote more ``text`` in step ``index``."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class StepDone:
    """Step ``index`` ended."""

    index: int
    step: Step


Event = Union[StepStarted, Delta, StepDone, Episode]
