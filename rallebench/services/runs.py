"""Benchmarks: run here or in the background, stopped, continued, opened again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.events import Event, Operation, Progress, Warned, complete
from rallebench.core.runs import RunResult
from rallebench.core.types import Chain, Episode, Example
from rallebench.engine.execute import execute, rescore
from rallebench.engine.score import choose_metrics, examples_of
from rallebench.engine.store import RunFolder, list_runs
from rallebench.experiments.benchmark import Benchmark, prepare
from rallebench.metrics.judges import JUDGES
from rallebench.metrics.recorded import IMPORTED
from rallebench.services.context import Context
from rallebench.services.leases import Lease
from rallebench.services.models import Loads
from rallebench.workspace.entries import chain_from_json
from rallebench.workspace.flows import Agent, chain_flow
from rallebench.workspace.judges import split_judges
from rallebench.workspace.paths import Workspace


@dataclass(frozen=True, slots=True)
class Opened:
    """A question of a run, as Develop shows it."""

    chain: Chain
    dataset: str
    example: Example
    episode: Episode


@dataclass
class Job:
    """A benchmark that this process works on. ``warning``: what the user should know while it runs."""

    name: str
    phase: str = "loading"
    message: str = ""
    error: str = ""
    done: bool = False
    folder: RunFolder | None = None
    stop: bool = False
    warning: str = ""


def _chain_of(made: Mapping[str, Any], run: str) -> Chain:
    """The chain of a run's ``run.json``. Raises UsageError for a run of predictions or of a suite, which has none."""
    chain = made["spec"]["settings"].get("chain")
    if chain is None:
        raise UsageError(
            f"The run {run!r} was made by {made['spec']['workflow']!r}, not by a chain, so there is no chain to open or "
            f"to continue here; read it in {where_read(made)}."
        )
    return chain_from_json(chain)


def where_read(made: Mapping[str, Any]) -> str:
    """Where the questions of a run that no chain made can be read, by its ``run.json``."""
    if "agent" in made["spec"]["settings"]:
        return "Agent"
    return (
        "Runs or Compare"
        if made["spec"]["workflow"] == IMPORTED
        else "Suites, under Read the answers"
    )


PHASES = ("running", "scoring", "tracking")
"""What a run's progress says of where it is; any other message is of loading."""


class Runs:
    """The verbs of the Benchmark and Runs tabs. ``jobs``: every benchmark that this process works on or has worked on."""

    def __init__(
        self,
        workspace: Workspace,
        loads: Loads,
        agent: Callable[..., Agent],
        context: Callable[[Lease, bool], Context],
    ) -> None:
        """``agent`` makes the agent of a run again."""
        self._workspace, self._loads = workspace, loads
        self._agent, self._context = agent, context
        self.jobs: dict[str, Job] = {}
        self._lock = threading.RLock()

    def run(
        self, benchmark: Benchmark, job: Job | None = None, lease: Lease | None = None
    ) -> Operation[RunResult]:
        """Run a benchmark in the calling thread.

        ``lease``: that of the work which the run is part of, which keeps what the run loads; else it has its own.
        """

        def on_open(folder: RunFolder) -> None:
            if job is not None:
                job.folder = folder
                if job.stop:
                    folder.ask_to_stop()

        with self._lease(benchmark) as own:
            context = self._context(lease or own, job is None)
            return (yield from execute(benchmark.request, context, benchmark.options, on_open))

    def rescore(self, name: str, metrics: Sequence[str] = ()) -> Operation[RunResult]:
        """Score a stored run by ``metrics`` too, judges included; none is asked about an answer twice."""
        run = self.open_run(name)
        stored = [m for m in run.spec()["metrics"] if m.partition(":")[0] not in JUDGES]
        own, judges = split_judges(self._workspace, metrics)
        examples = examples_of(run)
        chosen = choose_metrics([*stored, *own], examples, run.spec()["spec"]["dataset"])
        with self._loads.lease(f"the scoring of the run {name!r}") as lease:
            return (yield from rescore(run, chosen, judges, self._context(lease, True)))

    def _lease(self, benchmark: Benchmark) -> Lease:
        return self._loads.lease(f"the run {benchmark.name!r}")

    def start_run(self, benchmark: Benchmark) -> Job:
        """Run a benchmark in the background; follow it by the job and its run folder."""
        with self._lock:
            running = self.jobs.get(benchmark.name)
            if running and not running.done:
                raise UsageError(f"The run {benchmark.name!r} is running already.")
            job = Job(benchmark.name, warning=" ".join(benchmark.warnings))
            self.jobs[benchmark.name] = job
        # Held from now on, and not only once the thread has begun.
        lease = self._lease(benchmark).hold(benchmark.request.flow.names)
        threading.Thread(
            target=self._work,
            args=(benchmark, job, lease),
            name=f"run {benchmark.name}",
            daemon=True,
        ).start()
        return job

    def _work(self, benchmark: Benchmark, job: Job, lease: Lease) -> None:
        def hear(event: Event) -> None:
            if isinstance(event, Warned):
                job.warning = " ".join(filter(None, dict.fromkeys([job.warning, event.message])))
            elif isinstance(event, Progress) and event.message:
                known = event.message in PHASES
                job.phase, job.message = (
                    (event.message, "") if known else ("loading", event.message)
                )

        try:
            result = complete(self.run(benchmark, job, lease), hear)
            job.phase = "stopped" if result.stopped else "done"
            job.message = " ".join(result.warnings)
        except RalleError as error:
            job.phase, job.error = "failed", str(error)
        except Exception as error:
            job.phase, job.error = (
                "failed",
                f"Internal error, please report it: {type(error).__name__}: {error}",
            )
            raise
        finally:
            lease.close()
            job.done = True

    def stop_run(self, name: str) -> None:
        """Ask a run, in this or another process, to stop after the current batch."""
        job = self.jobs.get(name)
        if job is not None:
            job.stop = True
        with suppress(UsageError):
            RunFolder.open(self._workspace.runs, name).ask_to_stop()

    def stop(self) -> None:
        """Ask every run of this process to stop after its current batch."""
        for job in list(self.jobs.values()):
            if not job.done:
                self.stop_run(job.name)

    def wait(self, seconds: float) -> None:
        """Wait until no run of this process goes on, at most ``seconds``."""
        deadline = time.monotonic() + seconds
        while any(not job.done for job in list(self.jobs.values())) and time.monotonic() < deadline:
            time.sleep(0.02)

    def resume_plan(self, name: str) -> Benchmark:
        """The benchmark that continues an existing run, from what its folder says."""
        stored = RunFolder.open(self._workspace.runs, name).spec()
        spec = stored["spec"]
        agent = self._agent_of(spec)
        return prepare(
            self._workspace,
            agent.flow if agent else chain_flow(_chain_of(stored, name)),
            stored.get("dataset_file") or spec["dataset"],
            limit=spec["limit"],
            metrics=tuple(stored["metrics"]),
            name=name,
            batch_size=stored["batch_size"],
            seed=spec["seed"],
            resume=True,
        )

    def _agent_of(self, spec: Mapping[str, Any]) -> Agent | None:
        """The agent of a run's specification, made anew; None for a run of a chain."""
        made = spec["settings"].get("agent")
        if made is None:
            return None
        env = made.get("environment") or {"name": "", "settings": {}}
        settings = {
            **made["settings"],
            **{f"env.{name}": value for name, value in env["settings"].items()},
        }
        return self._agent(made["workflow"], env["name"], made["llm"], settings, seed=spec["seed"])

    def running(self) -> str:
        """The name of a benchmark that goes on now, in this process or another; '' if none does."""
        for job in list(self.jobs.values()):
            if not job.done:
                return job.name
        for folder in self.runs()[:20]:
            if folder.state()["state"] in ("running", "scoring"):
                return folder.name
        return ""

    def runs(self) -> list[RunFolder]:
        """All runs of the workspace, the newest first."""
        return list_runs(self._workspace.runs)

    def open_run(self, name: str) -> RunFolder:
        """A run by name; UsageError if there is none."""
        return RunFolder.open(self._workspace.runs, name)

    def open_question(self, run: str, position: int) -> Opened:
        """Question ``position`` (from 1) of a run, with the chain and the episode it had there."""
        folder = self.open_run(run)
        made = folder.spec()
        example = examples_of(folder)[position - 1]
        dataset = made["spec"]["dataset"]
        with suppress(RalleError):
            dataset, _ = self._workspace.dataset(made.get("dataset_file") or dataset)
        return Opened(
            _chain_of(made, run), dataset, example, folder.episodes()[example.question.qid]
        )
