"""Runs of a chain or an agent: prepared from names and overrides, run here or as a job, stopped, continued, opened again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.chains.overrides import overridden
from rallebench.core.errors import RalleError, StoppedError, UsageError
from rallebench.core.events import Operation, Warned
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import FlowSpec, RunResult
from rallebench.core.types import Chain, Episode, Example
from rallebench.engine.execute import execute, rescore
from rallebench.engine.experiment_store import LONGEST_RUN, folder_name
from rallebench.engine.metric_choice import choose_metrics, metrics_of
from rallebench.engine.score import examples_of
from rallebench.engine.store import RunFolder, list_runs
from rallebench.engine.stored_runs import chain_of
from rallebench.experiments.prepared_run import PreparedRun, fresh_name, prepare_run
from rallebench.experiments.sweeps.running import chain_entry
from rallebench.metrics.judges import check_sources, split_judges
from rallebench.services.context import EngineContext
from rallebench.services.jobs import Job
from rallebench.services.leases import Lease
from rallebench.workspace.flows import Agent, chain_flow, ending_summary
from rallebench.workspace.paths import DEFAULT_DATASET

if TYPE_CHECKING:
    from rallebench.services.workbench import Workbench


__all__ = ["PreparedRun"]

BATCH = 20
"""Questions asked at once by default."""


@dataclass(frozen=True, slots=True)
class BenchmarkOptions:
    """The options of a benchmark; None: as RaLLe's experiment file says, or the default. ``sampled``: the questions are drawn
    by ``seed``. ``settings``: ``key=value``. ``examples``: the questions themselves, of which ``dataset`` is then only the name."""

    dataset: str | None = None
    limit: int | None = None
    batch_size: int | None = None
    metrics: tuple[str, ...] | None = None
    sampled: bool = False
    max_errors: int | None = None
    seed: int = 0
    track: bool = True
    llm: str | None = None
    retriever: str | None = None
    settings: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()


def changed_chain(
    workbench: Workbench,
    reference: str | Chain,
    llm: str | None,
    retriever: str | None,
    settings: Sequence[str],
) -> Chain:
    """A chain, or that of a name or file, with another model, retriever and ``key=value`` settings. Raises UsageError."""
    chain = workbench.workspace.chain(reference) if isinstance(reference, str) else reference
    return overridden(chain, llm, retriever, settings)


def of_chain(
    workbench: Workbench,
    reference: str | Chain,
    options: BenchmarkOptions,
    *,
    run: str = "",
    resume: bool = False,
) -> PreparedRun:
    """The checked benchmark of a chain, or of that of a name or file. Raises UsageError."""
    chain = changed_chain(workbench, reference, options.llm, options.retriever, options.settings)
    if isinstance(reference, str):
        options = _as_in_file(workbench, reference, options)
    return of_flow(workbench, chain_flow(chain), options, run=run, resume=resume)


def batch_request(
    workbench: Workbench,
    files: Sequence[tuple[str, Path]],
    options: BenchmarkOptions,
    *,
    title: str,
    run: str = "",
    resume: bool = False,
) -> ExperimentRequest:
    """The request for a run of every chain of a folder; ``run``: the start of their names. A setting need not fit every chain.

    Raises UsageError, naming the file.
    """
    chains: dict[str, Any] = {}
    for label, path in files:
        try:
            chains[label] = _entry(workbench, label, str(path), options, run)
        except UsageError as error:
            raise error.saying(f"{path}: {error}") from None
    name = run or folder_name(f"{title} {time.strftime('%Y%m%d-%H%M%S')}", LONGEST_RUN)
    settings = {"title": title, "chains": chains, "metrics": options.metrics, "resume": resume}
    return workbench.experiments.request("batch", name, settings, seed=options.seed)


def _entry(
    workbench: Workbench, label: str, file: str, options: BenchmarkOptions, run: str
) -> dict[str, Any]:
    workspace = workbench.workspace
    chain = replace(workspace.chain(file), name=label)
    chain = overridden(chain, options.llm, options.retriever, options.settings, all_fit=False)
    options = _as_in_file(workbench, file, options)
    dataset = options.dataset or DEFAULT_DATASET
    own = f"{run}-{label}" if run else fresh_name(workspace, label, workspace.dataset(dataset)[0])
    return chain_entry(
        file,
        chain,
        dataset,
        options.limit,
        options.sampled,
        BATCH if options.batch_size is None else options.batch_size,
        own,
    )


def _as_in_file(
    workbench: Workbench, reference: str, options: BenchmarkOptions
) -> BenchmarkOptions:
    """The options, with the values of RaLLe's experiment file, if the reference is one, for those that are None."""
    experiment = workbench.workspace.experiment(reference)
    if experiment is None:
        return options
    limit, batch = options.limit, options.batch_size
    return replace(
        options,
        dataset=options.dataset or experiment.dataset_name,
        limit=experiment.num_evaluate if limit is None else limit,
        batch_size=experiment.batch_size if batch is None else batch,
    )


def of_flow(
    workbench: Workbench,
    flow: FlowSpec,
    options: BenchmarkOptions,
    *,
    run: str = "",
    resume: bool = False,
) -> PreparedRun:
    """The checked benchmark of a chain's or an agent's flow. Raises UsageError."""
    return prepare_run(
        workbench.workspace,
        flow,
        options.dataset or DEFAULT_DATASET,
        examples=options.examples,
        limit=options.limit,
        sampled=options.sampled,
        metrics=options.metrics,
        name=run,
        batch_size=BATCH if options.batch_size is None else options.batch_size,
        seed=options.seed,
        max_errors=options.max_errors,
        resume=resume,
        may_grow=resume,
        track=options.track,
    )


def result_json(workbench: Workbench, result: RunResult) -> dict[str, Any]:
    """A finished run as JSON; ``recall@5`` also as ``recall_at_5``, RaLLe's key. A metric that is not scored says ``why``."""
    report = result.report
    whole = {**report["metrics"], **report.get("suite", {})}
    reasons = report.get("not_scored") or {}
    metrics = {
        name: {**mean, "why": reasons[name]} if name in reasons else mean
        for name, mean in whole.items()
    }
    metrics |= {
        name.replace("@", "_at_"): metrics[name] for name in report["metrics"] if "@" in name
    }
    value = {
        "run": result.run,
        "n": report["n"],
        "n_errors": report["n_errors"],
        "seconds": report["seconds"],
        "metrics": metrics,
        **({"judges": report["judges"]} if report.get("judges") else {}),
        "clusters": report.get("clusters"),
        "cost": report["cost"],
    }
    if result.request.flow.agent:
        value["agent"] = ending_summary(workbench.runs.open(result.run).episodes().values())
    return value


@dataclass(frozen=True, slots=True)
class OpenedQuestion:
    """A question of a run, with the chain and the episode it had."""

    chain: Chain
    dataset: str
    example: Example
    episode: Episode


def agent_arguments(stored: Mapping[str, Any]) -> tuple[str, str, str, dict[str, Any]]:
    """(workflow, environment, language model, settings) of the agent in a run's ``run.json``."""
    env = stored.get("environment") or {"name": "", "settings": {}}
    settings = {f"env.{name}": value for name, value in env["settings"].items()}
    return (
        stored.get("workflow", ""),
        env["name"],
        stored.get("llm", ""),
        {**stored.get("settings", {}), **settings},
    )


def _chain_of(run: RunFolder, stored: Mapping[str, Any]) -> Chain:
    """The chain of a run's ``run.json``. Raises UsageError for a run of predictions or of a suite, which has none."""
    chain = chain_of(run, stored)
    if chain is None:
        raise UsageError(
            f"The run {run.name!r} was made by {stored['spec']['workflow']!r}, not by a chain, so there is no chain to open or "
            "to continue."
        )
    return chain


class Runs:
    """Starts, scores, stops, continues and opens runs of a workspace; threads may share it."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench, self._workspace = workbench, workbench.workspace
        self._models, self._jobs = workbench.models, workbench.jobs
        self._folders: dict[str, RunFolder] = {}

    def run(
        self,
        prepared: PreparedRun,
        lease: Lease | None = None,
        *,
        heavy: bool = True,
        on_open: Callable[[RunFolder], None] = lambda folder: None,
    ) -> Operation[RunResult]:
        """Run a benchmark in the calling thread.

        ``lease``: that of a larger work, if the run is part of one; the models of the run then stay loaded with it.
        ``heavy``: models that may take gigabytes are loaded, too. ``on_open`` is handed the run's folder.
        """
        with self._models.lease(f"the run {prepared.name!r}") as own:
            context = EngineContext(self._workbench, lease or own, heavy=heavy)
            return (yield from execute(prepared.request, context, prepared.options, on_open))

    def rescore(self, name: str, metrics: Sequence[str] = ()) -> Operation[RunResult]:
        """Score a stored run by ``metrics`` too, judges included; none is asked about an answer twice."""
        run = self.open(name)
        own, judges = split_judges(metrics, self._workspace.llm_mark)
        examples = examples_of(run)
        dataset = run.spec()["spec"]["dataset"]
        chosen = choose_metrics([*metrics_of(run), *own], examples, dataset)
        check_sources(judges, examples, dataset)
        with self._models.lease(f"the scoring of the run {name!r}") as lease:
            return (yield from rescore(run, chosen, judges, EngineContext(self._workbench, lease)))

    def start(self, prepared: PreparedRun) -> Job:
        """Run a benchmark as a job. Raises UsageError if one of that name is running."""
        name = prepared.name
        job = self._jobs.get("run", name)
        if job is not None and not job.done:
            raise UsageError(f"The run {name!r} is running already.")
        lease = self._models.lease(f"the run {name!r}")

        def work(job: Job) -> Operation[RunResult]:
            lease.hold(prepared.request.flow.names)  # from now on, not only once the thread runs
            return self._work(prepared, lease, job)

        try:
            return self._jobs.submit("run", name, prepared, work)
        except BaseException:
            lease.close()
            raise

    def _work(self, prepared: PreparedRun, lease: Lease, job: Job) -> Operation[RunResult]:
        def on_open(folder: RunFolder) -> None:
            self._folders[job.name] = folder
            job.stop_by(folder.ask_to_stop)

        self._folders.pop(job.name, None)
        job.stop_by(lambda: None)  # a run ends after its current batch, and is scored
        with lease:
            for sentence in prepared.warnings:
                yield Warned("", sentence)
            result = yield from self.run(prepared, lease, heavy=False, on_open=on_open)
        if result.stopped:
            raise StoppedError(f"The run {job.name!r} was stopped; resume it to continue.")
        return result

    def folder_of(self, job: Job) -> RunFolder | None:
        """The folder of a run's job, None until it is open."""
        return self._folders.get(job.name)

    def stop(self, name: str) -> None:
        """Ask a run, in this or another process, to stop after the current batch."""
        job = self._jobs.get("run", name)
        if job is not None:
            job.stop()
        with suppress(UsageError):
            RunFolder.open(self._workspace.runs, name).ask_to_stop()

    def resume(self, name: str) -> PreparedRun:
        """The benchmark that continues an existing run, from what its folder says."""
        folder = RunFolder.open(self._workspace.runs, name)
        stored = folder.spec()
        spec = stored["spec"]
        agent = self._agent_of(spec)
        return prepare_run(
            self._workspace,
            agent.flow if agent else chain_flow(_chain_of(folder, stored)),
            stored.get("dataset_file") or spec["dataset"],
            metrics=tuple(stored["metrics"]),
            name=name,
            batch_size=stored["batch_size"],
            seed=spec["seed"],
            resume=True,
            may_grow=True,
        )

    def _agent_of(self, spec: Mapping[str, Any]) -> Agent | None:
        """The agent of a run's specification, made anew; None for a run of a chain."""
        stored = spec["settings"].get("agent")
        if stored is None:
            return None
        return self._workbench.asking.agent(*agent_arguments(stored), seed=spec["seed"])

    def list(self) -> Sequence[RunFolder]:
        """All runs of the workspace, the newest first."""
        return list_runs(self._workspace.runs)

    def open(self, name: str) -> RunFolder:
        """A run by name; UsageError if there is none."""
        return RunFolder.open(self._workspace.runs, name)

    def open_question(self, run: str, position: int) -> OpenedQuestion:
        """Question ``position`` (from 1) of a run, with the chain and the episode it had there."""
        folder = self.open(run)
        stored = folder.spec()
        example = examples_of(folder)[position - 1]
        dataset = stored["spec"]["dataset"]
        with suppress(RalleError):
            dataset, _ = self._workspace.dataset(stored.get("dataset_file") or dataset)
        return OpenedQuestion(
            _chain_of(folder, stored), dataset, example, folder.episodes()[example.question.qid]
        )
