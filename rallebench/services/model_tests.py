"""A test of a language model: it is loaded if it is not, and answers one prompt; a job whose result stays to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rallebench.core.errors import UsageError
from rallebench.core.events import Operation, Progress
from rallebench.engine.cost import recorded_prices
from rallebench.metrics.cost import completion_tokens_of, prompt_tokens_of
from rallebench.services.jobs import Job
from rallebench.workspace.entries import LLMEntry

if TYPE_CHECKING:
    from rallebench.services.workbench import Workbench

PROMPT = (
    'Referring to the following document, answer "On which river does Tbilisi stand?" in 5 words or less.'
    "\n\nTbilisi, the capital of Georgia, stands on the Kura River.\n\nAnswer: "
)
ELSEWHERE = "openai_compatible"
"""The backend whose models are asked over the network: only they have prices."""


@dataclass(frozen=True, slots=True)
class Tested:
    """What a model answered. ``seconds`` of the answer, without loading; tokens are None where none were counted."""

    prompt: str
    answer: str
    seconds: float
    prompt_tokens: int | None
    completion_tokens: int | None

    @property
    def speed(self) -> float | None:
        """Completion tokens a second."""
        return (
            self.completion_tokens / self.seconds
            if self.completion_tokens and self.seconds
            else None
        )


def start_test(workbench: Workbench, name: str, prompt: str = PROMPT) -> Job:
    """Begin to test a model as a job. Raises RalleError at once for a name that nothing has."""
    if not prompt.strip():
        raise UsageError("The prompt is empty; type a question.")
    workbench.workspace.llm(name)
    return workbench.jobs.submit(
        "test", name, prompt, lambda job: _test(workbench, name, prompt), failure=f"{name} failed"
    )


def _test(workbench: Workbench, name: str, prompt: str) -> Operation[Tested]:
    with workbench.models.lease(f"the test of {name!r}") as lease:
        for message in lease.load(name, "language model"):
            yield Progress("", message=message)
        yield Progress("", message=f"asking {name}")
        step = workbench.asking.ask_model(name, prompt)
    return Tested(
        prompt, step.reply.text, step.seconds, prompt_tokens_of(step), completion_tokens_of(step)
    )


def prices(entry: LLMEntry) -> Mapping[str, float] | None:
    """US dollars per million tokens, ``prompt`` and ``completion``, as an entry has them; None if it has none."""
    return recorded_prices({"prices": {"": entry.settings.get("prices")}}).get("")


def with_prices(entry: LLMEntry, prompt: float | None, completion: float | None) -> LLMEntry:
    """The entry with these prices, or with none. Raises UsageError for one without the other."""
    settings: dict[str, Any] = {k: v for k, v in entry.settings.items() if k != "prices"}
    if (prompt is None) != (completion is None):
        raise UsageError("A price has two parts; fill in both, for tokens in and out, or none.")
    if prompt is not None:
        settings["prices"] = {"prompt": prompt, "completion": completion}
    return entry.model_copy(update={"settings": settings})
