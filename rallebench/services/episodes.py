"""Episodes of agents: run as jobs that continue when the page is closed, opened from a run, or saved as a run."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from rallebench import sandbox
from rallebench.core.backends import Backends
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.events import Operation
from rallebench.core.live import Delta, Event, StepDone, StepStarted
from rallebench.core.runs import DatasetRef, RunRequest
from rallebench.core.stopping import Stop, obey
from rallebench.core.types import (
    Episode,
    Example,
    Gold,
    Json,
    Question,
    Reply,
    Request,
    Step,
    UseTool,
    digest,
)
from rallebench.engine.execute import write_run
from rallebench.engine.metric_choice import choose_metrics
from rallebench.engine.perform import flow_error
from rallebench.engine.score import stored_examples
from rallebench.engine.store import RunFolder
from rallebench.experiments.prepared_run import fresh_name
from rallebench.services.jobs import Job
from rallebench.workflows.edits import was_edited
from rallebench.workspace.flows import Agent
from rallebench.workspace.paths import WorkspaceFolder

Trace = Callable[[Episode, str, str], object]
"""Logs an episode with its question and source ("agent")."""

TYPED = "typed"
"""Replaces the dataset's name for a question of the user's own."""

State = Literal["starting", "running", "stopped", "ended", "failed"]


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """The request for an episode. ``settings``: of the workflow and its environment (``env.NAME``); ``before``:
    steps to continue from.
    """

    workflow: str
    env: str
    llm: str
    settings: Json
    dataset: str
    example: Example
    before: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class EpisodeState:
    """An episode at one moment. ``request``: the request in progress; ``writing``: its answer so far. ``seconds``:
    wall-clock time.

    ``version`` increases with every change. ``error``: one sentence. ``run``: the run from which the episode was
    read.
    """

    name: str
    episode_request: EpisodeRequest
    state: State = "starting"
    steps: tuple[Step, ...] = ()
    request: Request | None = None
    writing: str = ""
    episode: Episode | None = None
    error: str = ""
    agent: Agent | None = None
    began: float = field(default_factory=time.time)
    seconds: float = 0.0
    version: int = 0
    run: str = ""

    @property
    def mark(self) -> str:
        """Key that changes whenever the page must be redrawn, including once per second."""
        return f"{self.name} {self.version} {self.seconds:.0f}"

    @property
    def going(self) -> bool:
        return self.state in ("starting", "running")


def chosen_example(workspace: WorkspaceFolder, dataset: str, chosen: str) -> tuple[str, Example]:
    """Return (dataset, chosen question), or (TYPED, the user's own question, without gold). Raises UsageError."""
    chosen = (chosen or "").strip()
    if not chosen:
        raise UsageError("No question is chosen; choose one, or type your own.")
    for example in workspace.questions(dataset) if dataset else ():
        if example.question.qid == chosen:
            return dataset, example
    qid = f"{TYPED}-{digest(chosen)[:8]}"
    return TYPED, Example(Question(qid, chosen), Gold(), {"id": qid, "input": chosen, "output": []})


class Agents(Protocol):
    """Creates agents and runs their episodes; implemented by ``services.asking.Asking``."""

    def agent(
        self,
        workflow: str,
        env: str,
        llm: str,
        settings: Json | None = None,
        *,
        seed: int | None = None,
    ) -> Agent:
        """Build an agent from a workflow, an environment and a model, all checked. Raises UsageError."""

    def run_agent(
        self,
        agent: Agent,
        question: Question,
        *,
        stream: bool = False,
        before: Sequence[Reply] = (),
    ) -> Iterator[Event]:
        """Run one episode, yielding its events and the Episode last."""


class EpisodeJob:
    """One episode as a job. ``now``: its state, which is replaced rather than modified."""

    def __init__(self, request: EpisodeRequest) -> None:
        self.now = EpisodeState(uuid.uuid4().hex[:12], request, steps=request.before)
        self._lock = threading.Lock()
        self._clock = time.monotonic()
        self._hang_up = Stop()

    def state(self) -> EpisodeState:
        """Return the state, with the seconds so far."""
        now = self.now
        return replace(now, seconds=time.monotonic() - self._clock) if now.going else now

    def stop(self) -> None:
        """Stop immediately: ignore later events, close a model's stream at its next word, disconnect from servers,
        kill programs.
        """
        current = self.now.request
        if not self._set(state="stopped", request=None, writing=""):
            return
        self._hang_up.set()
        if isinstance(current, UseTool) and current.tool == sandbox.TOOL:
            sandbox.stop(current.arguments["session"])

    def _set(self, **changes: Any) -> bool:
        """Change the state; return whether the episode was still running."""
        with self._lock:
            going = self.now.going
            if going:
                took = time.monotonic() - self._clock
                self.now = replace(
                    self.now, **{"seconds": took, "version": self.now.version + 1, **changes}
                )
            return going

    def work(self, agents: Agents, trace: Trace, job: Job) -> Operation[None]:
        """Run the episode; ``trace`` receives it at the end."""
        yield from ()  # followers read ``now`` instead of events
        obey(self._hang_up)
        job.stop_by(self.stop)
        request = self.now.episode_request
        try:
            agent = agents.agent(
                request.workflow, request.env, request.llm, request.settings, seed=0
            )
            if not self._set(agent=agent):
                return
            replies = [step.reply for step in request.before]
            with closing(
                agents.run_agent(agent, request.example.question, stream=True, before=replies)
            ) as events:  # type: ignore[type-var]
                for event in events:
                    if not self._heard(event):
                        return
            if self.now.episode is not None:
                trace(self.now.episode, request.example.question.text, "agent")
        except (
            Exception
        ) as error:  # flow_error logs the traceback of a bug; the episode must not remain running
            self._set(state="failed", error=str(flow_error(error)), request=None, writing="")

    def _heard(self, event: Event) -> bool:
        now = self.now
        if isinstance(event, StepStarted):
            return self._set(state="running", request=event.request, writing="")
        if isinstance(event, Delta):
            return self._set(writing=now.writing + event.text)
        if isinstance(event, StepDone):
            return self._set(steps=(*now.steps, event.step), request=None, writing="")
        whole = replace(event, steps=(*now.episode_request.before, *event.steps))
        state = "failed" if event.error else "ended"
        return self._set(
            state=state,
            episode=whole,
            steps=whole.steps,
            error=event.error,
            request=None,
            writing="",
        )


# saving as a run


def save_episode(
    workspace: WorkspaceFolder, backends: Backends, state: EpisodeState | None
) -> RunFolder:
    """Save a finished episode as a scored run of its own. Raises UsageError if it cannot be compared.

    The run records its question and whether an action was edited. It is never resumed as a benchmark.
    """
    if state is not None and state.run:
        raise UsageError(
            f"This episode is part of the run {state.run!r} already; compare that run."
        )
    if state is None or state.agent is None:
        raise UsageError("There is no episode to keep; run one first.")
    if state.going:
        raise UsageError("The episode is running; wait for its end, then keep it.")
    if state.episode is None:
        raise UsageError(
            "The episode was stopped before it ended, so it has no outcome to compare; continue it, or run it again."
        )
    edited = was_edited(state.steps)
    request = _run_request(workspace, state, edited)
    return write_run(
        workspace.runs,
        request,
        [state.episode],
        backends,
        session=f"{state.began:.3f}",
        seconds=state.seconds,
        message="One episode of an agent" + (", an action edited." if edited else "."),
    )


def _run_request(workspace: WorkspaceFolder, state: EpisodeState, edited: bool) -> RunRequest:
    request, agent = state.episode_request, state.agent
    assert agent is not None and state.episode is not None
    dataset = DatasetRef(TYPED, sha256=digest(request.example.question.text))
    if request.dataset != TYPED:
        dataset = workspace.dataset_ref(request.dataset)
    settings = {"question": state.episode.qid, "edited": edited}
    flow = replace(agent.flow, settings={**agent.flow.settings, **settings})
    qid = request.example.question.qid
    return RunRequest(
        flow,
        dataset,
        (request.example,),
        choose_metrics(None, (request.example,), dataset.name),
        seed=agent.seed or 0,
        name=fresh_name(workspace, f"{flow.name}-{agent.llm}", qid),
    )


# opening from a run


def open_episode(workspace: WorkspaceFolder, run: str, qid: str) -> EpisodeState:
    """Open a stored episode from an agent's run. Raises UsageError, BadFileError."""
    folder = RunFolder.open(workspace.runs, run)
    stored = folder.description()
    agent = stored.agent
    episode = folder.episodes().get(qid)
    if agent is None or episode is None:
        raise UsageError(
            f"The run {run!r} holds no episode of an agent for the question {qid!r}; choose another."
        )
    example = next(example for example in stored_examples(folder) if example.question.qid == qid)
    dataset = TYPED
    with suppress(RalleError):
        dataset, _ = workspace.dataset(stored.dataset_source)
    return EpisodeState(
        f"{run} {qid}",
        EpisodeRequest(
            agent.workflow, agent.environment_name, agent.llm, agent.all_settings, dataset, example
        ),
        "failed" if episode.error else "ended",
        episode.steps,
        episode=episode,
        error=episode.error,
        seconds=sum(step.seconds for step in episode.steps),
        run=run,
    )
