"""Episodes of agents' runs, as if they had just been watched: to be read, edited and gone on from."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.types import Question
from rallebench.engine.score import examples_of
from rallebench.engine.store import RunFolder
from rallebench.services.live.watching import TYPED, Wanted, Watched
from rallebench.services.workbench import Workbench

MOST_RUNS = 200
"""Of the newest runs so many are looked at."""


def agent_runs(workbench: Workbench) -> list[str]:
    """The runs that an agent made, the newest first."""
    found = []
    for folder in workbench.runs.list()[:MOST_RUNS]:
        with suppress(RalleError):
            if is_agents(folder):
                found.append(folder.name)
    return found


def is_agents(folder: RunFolder) -> bool:
    """Whether an agent made the run. Raises BadFileError."""
    return bool(folder.spec()["spec"]["settings"].get("agent"))


def questions_of(workbench: Workbench, run: str) -> list[Question]:
    """The questions of a run that were answered or failed, in order. Raises UsageError, BadFileError."""
    folder = workbench.runs.open(run)
    done = folder.lines()
    return [example.question for example in examples_of(folder) if example.question.qid in done]


def opened(workbench: Workbench, run: str, qid: str) -> Watched:
    """What the agent of a run did with a question. Raises UsageError, BadFileError."""
    folder = workbench.runs.open(run)
    spec = folder.spec()
    made: dict[str, Any] | None = spec["spec"]["settings"].get("agent")
    episode = folder.episodes().get(qid)
    if made is None or episode is None:
        raise UsageError(
            f"The run {run!r} holds no episode of an agent for the question {qid!r}; choose another."
        )
    env = made.get("environment") or {"name": "", "settings": {}}
    settings = {
        **made["settings"],
        **{f"env.{name}": value for name, value in env["settings"].items()},
    }
    example = next(one for one in examples_of(folder) if one.question.qid == qid)
    dataset = TYPED
    with suppress(RalleError):
        dataset, _ = workbench.workspace.dataset(
            spec.get("dataset_file") or spec["spec"]["dataset"]
        )
    wanted = Wanted(made["workflow"], env["name"], made["llm"], settings, dataset, example)
    seconds = sum(step.seconds for step in episode.steps)
    state: Any = "failed" if episode.error else "ended"
    return Watched(
        f"{run} {qid}",
        wanted,
        state,
        episode.steps,
        episode=episode,
        error=episode.error,
        seconds=seconds,
        run=run,
    )
