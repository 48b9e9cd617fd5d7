"""An episode that goes on in a thread of its own, so that a page which goes away stops nothing and one which comes back finds it."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rallebench import sandbox
from rallebench.core.errors import UsageError
from rallebench.core.events import Operation
from rallebench.core.types import Episode, Example, Gold, Question, Request, Step, UseTool, digest
from rallebench.engine.perform import flow_error
from rallebench.engine.single import Delta, Event, StepDone, StepStarted
from rallebench.services.jobs import Job
from rallebench.services.workbench import Workbench
from rallebench.workspace.flows import Agent

log = logging.getLogger(__name__)

MOST = 30
"""Episodes that are remembered; the oldest that has ended is forgotten first."""

TYPED = "typed"
"""Stands in the question set's place for a question of the user's own."""

State = Literal["starting", "running", "stopped", "ended", "failed"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An episode that is asked for. ``settings``: as ``Workbench.agent`` takes them; ``before``: steps to go on from."""

    workflow: str
    env: str
    llm: str
    settings: Mapping[str, Any]
    dataset: str
    example: Example
    before: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Watched:
    """Where an episode stands. ``request`` is being asked and ``writing`` has come of its answer. ``seconds``: by the clock.

    ``version`` grows with every change. ``error``: one sentence. ``run``: the run that it was read from.
    """

    name: str
    wanted: Wanted
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
        """Changes with whatever a page shows of it, the full seconds included."""
        return f"{self.name} {self.version} {self.seconds:.0f}"

    @property
    def going(self) -> bool:
        """Whether it goes on."""
        return self.state in ("starting", "running")


def example_of(workbench: Workbench, dataset: str, chosen: str) -> tuple[str, Example]:
    """(question set, the question chosen from it), or (TYPED, the user's own, without gold). Raises UsageError."""
    chosen = (chosen or "").strip()
    if not chosen:
        raise UsageError("No question is chosen; choose one, or type your own.")
    for example in workbench.asking.questions(dataset) if dataset else ():
        if example.question.qid == chosen:
            return dataset, example
    qid = f"{TYPED}-{digest(chosen)[:8]}"
    return TYPED, Example(Question(qid, chosen), Gold(), {"id": qid, "input": chosen, "output": []})


class Live:
    """One episode. Whoever watches reads ``now``; it is replaced, never changed."""

    def __init__(self, now: Watched) -> None:
        self.now = now
        self._lock = threading.Lock()
        self._clock = time.monotonic()
        self._job: Job | None = None

    def seen(self) -> Watched:
        """Where it stands, with the seconds until now."""
        now = self.now
        return replace(now, seconds=time.monotonic() - self._clock) if now.going else now

    def start(self, workbench: Workbench) -> None:
        """Begin, as a job."""
        self._job = workbench.jobs.submit(
            "episode", self.now.name, self.now.name, lambda job: self._work(workbench, job)
        )

    def wait(self, seconds: float) -> None:
        """Wait until nothing is asked for it any more, at most ``seconds``: a stopped one may still wait for a model."""
        if self._job is not None:
            self._job.wait(max(0.0, seconds))

    def stop(self) -> None:
        """Stop at once: nothing that still comes is heard; a model's stream is closed at its next word, a program killed."""
        asked = self.now.request
        if (
            self._set(state="stopped", request=None, writing="")
            and isinstance(asked, UseTool)
            and asked.tool == sandbox.TOOL
        ):
            sandbox.stop(asked.arguments["session"])

    def _set(self, **changes: Any) -> bool:
        """Whether it went on until now."""
        with self._lock:
            going = self.now.going
            if going:
                took = time.monotonic() - self._clock
                self.now = replace(
                    self.now, **{"seconds": took, "version": self.now.version + 1, **changes}
                )
            return going

    def _work(self, workbench: Workbench, job: Job) -> Operation[None]:
        yield from ()  # what it does is read from ``now``
        job.stop_by(self.stop)
        wanted = self.now.wanted
        try:
            agent = workbench.asking.agent(
                wanted.workflow, wanted.env, wanted.llm, wanted.settings, seed=0
            )
            if not self._set(agent=agent):
                return
            replies = [step.reply for step in wanted.before]
            with closing(
                workbench.asking.run_agent(
                    agent, wanted.example.question, stream=True, before=replies
                )
            ) as events:  # type: ignore[type-var]
                for event in events:
                    if not self._heard(event):
                        return
            if self.now.episode is not None:
                workbench.tracking.trace(self.now.episode, wanted.example.question.text, "agent")
        except Exception as error:  # flow_error logs a bug with its traceback; it must not leave the episode going on
            self._set(state="failed", error=str(flow_error(error)), request=None, writing="")

    def _heard(self, event: Event) -> bool:
        now = self.now
        if isinstance(event, StepStarted):
            return self._set(state="running", request=event.request, writing="")
        if isinstance(event, Delta):
            return self._set(writing=now.writing + event.text)
        if isinstance(event, StepDone):
            return self._set(steps=(*now.steps, event.step), request=None, writing="")
        whole = replace(event, steps=(*now.wanted.before, *event.steps))
        state = "failed" if event.error else "ended"
        return self._set(
            state=state,
            episode=whole,
            steps=whole.steps,
            error=event.error,
            request=None,
            writing="",
        )


class Lives:
    """The episodes of this process, the newest last."""

    def __init__(self) -> None:
        self._lives: dict[str, Live] = {}
        self._lock = threading.Lock()

    def start(self, workbench: Workbench, wanted: Wanted) -> Watched:
        """Begin an episode; it is found under its name."""
        live = Live(Watched(uuid.uuid4().hex[:12], wanted, steps=wanted.before))
        self._enter(live)
        live.start(workbench)
        return live.now

    def add(self, watched: Watched) -> Watched:
        """Remember an episode that has ended elsewhere."""
        self._enter(Live(watched))
        return watched

    def _enter(self, live: Live) -> None:
        with self._lock:
            self._lives.pop(live.now.name, None)
            self._lives[live.now.name] = live
            ended = [
                name for name, one in self._lives.items() if not one.now.going and one is not live
            ]
            for name in ended[: max(0, len(self._lives) - MOST)]:
                del self._lives[name]

    def get(self, name: str) -> Watched | None:
        """Where the episode ``name`` stands, None if it is not known here (any more)."""
        with self._lock:
            live = self._lives.get(name)
        return live.seen() if live else None

    def known(self) -> list[Watched]:
        """All that are known, the newest first."""
        with self._lock:
            return [live.seen() for live in reversed(self._lives.values())]

    def wait(self, seconds: float) -> None:
        """Wait until nothing is asked for any episode, at most ``seconds``."""
        deadline = time.monotonic() + seconds
        with self._lock:
            lives = list(self._lives.values())
        for live in lives:
            live.wait(deadline - time.monotonic())

    def stop(self, name: str = "") -> None:
        """Stop an episode at once, all without a name. Raises UsageError if ``name`` does not go on."""
        if not name:
            for watched in self.known():
                if watched.going:
                    self._lives[watched.name].stop()
            return
        with self._lock:
            live = self._lives.get(name)
        if live is None or not live.now.going:
            raise UsageError("No episode goes on, so there is nothing to stop.")
        live.stop()
