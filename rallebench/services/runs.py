"""Runs of a chain or an agent: run directly or as a job, stop, continue and open them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from rallebench.core.audits import JudgeProbes, WrongAnswers
from rallebench.core.deciding import Decided, Decision, StoppingRule
from rallebench.core.errors import BadFileError, NotFoundError, RalleError, StoppedError, UsageError
from rallebench.core.events import Operation, Progress, Warned
from rallebench.core.own_folders import list_files
from rallebench.core.runs import DatasetRef, PreparedRun, RunOptions, RunResult
from rallebench.core.spending_limit import SpendingLimit
from rallebench.core.types import Chain, Episode, Example
from rallebench.engine.execute import execute, rescore
from rallebench.engine.metric_choice import choose_metrics, stored_metrics
from rallebench.engine.run_files import RunDescription
from rallebench.engine.run_marks import RunMarks, checked_note, checked_tags, write_marks
from rallebench.engine.score import stored_examples
from rallebench.engine.store import LONGEST_TITLE, RUN, RunFolder, list_runs
from rallebench.experiments.prepared_run import prepare_run
from rallebench.metrics.judge_scorers import check_sources, split_judges
from rallebench.services.context import EngineContext, EngineParts
from rallebench.services.jobs import Job, JobManager
from rallebench.services.leases import Lease
from rallebench.workspace.flows import (
    Agent,
    chain_flow,
    prepare_agent,
)
from rallebench.workspace.references import forget_run, set_reference


@dataclass(frozen=True, slots=True)
class OpenedQuestion:
    """A question of a run, with the chain and episode of that run."""

    chain: Chain
    dataset: str
    example: Example
    episode: Episode


def _require_chain(run: RunFolder, stored: RunDescription) -> Chain:
    """Return the chain of a run. Raises UsageError for runs of predictions or suites, which have no chain."""
    chain = stored.chain
    if chain is None:
        raise UsageError(
            f"The run {run.name!r} was made by {stored.spec.workflow!r}, not by a chain, so there is no chain to open or "
            "to continue."
        )
    return chain


class Runs:
    """Starts, scores, stops, continues and opens runs of a workspace. Threads may share it."""

    def __init__(self, parts: EngineParts, jobs: JobManager, allow_python: bool) -> None:
        self._parts, self._jobs, self._allow_python = parts, jobs, allow_python
        self._workspace, self._models = parts.workspace, parts.models
        self._folders: dict[str, RunFolder] = {}

    def run(
        self,
        prepared: PreparedRun,
        lease: Lease | None = None,
        *,
        heavy: bool = True,
        on_open: Callable[[RunFolder], None] = lambda folder: None,
    ) -> Operation[RunResult]:
        """Run a benchmark in the calling thread; one with a stopping rule ends once it is decided.

        ``lease``: the lease of a larger work that this run belongs to; the run's models then stay loaded with it.
        ``heavy``: also load models that may take gigabytes. ``on_open``: called with the run's folder.
        """
        for sentence in prepared.warnings:
            yield Warned("", sentence)
        with self._models.lease(f"the run {prepared.name!r}") as own:
            context = EngineContext(self._parts, lease or own, heavy=heavy)
            if prepared.request.stopping is not None:
                return (yield from self._until_decided(prepared, context, on_open))
            return (yield from execute(prepared.request, context, prepared.options, on_open))

    def _until_decided(
        self, prepared: PreparedRun, context: EngineContext, on_open: Callable[[RunFolder], None]
    ) -> Operation[RunResult]:
        """Let a run grow by whole articles until its stopping rule decides or all questions are asked."""
        from rallebench.experiments.until_decided import looks, watch_runs

        request, options = prepared.request, prepared.options
        rule, examples = request.stopping, request.examples
        assert rule is not None
        base = self._base(request.name, rule)
        before = len(self.open(request.name).records()) if self.exists(request.name) else 0
        for count in looks(examples, options.batch_size):
            if count < before:
                continue
            part = replace(request, examples=examples[:count])
            result = yield from execute(part, context, replace(options, track=False), on_open)
            options = replace(options, resume=True)
            if result.stopped:
                return result
            folder = self.open(request.name)
            decided = Decided(rule, watch_runs(folder, base, rule))
            if report := folder.report():
                folder.write_report(replace(report, decided=decided))
            yield Progress(request.label, count, len(examples), str(decided))
            if decided.outcome is not Decision.OPEN:
                break
        return (yield from execute(part, context, replace(options, track=prepared.options.track)))

    def rescore(
        self, name: str, metrics: Sequence[str] = (), budget: SpendingLimit | None = None
    ) -> Operation[RunResult]:
        """Add ``metrics``, including judges, to a stored run; no judge is asked about the same answer twice.
        ``budget``: the spending limit of its judges.
        """
        run = self.open(name)
        own, judges = split_judges(metrics, self._workspace.llm_mark)
        examples = stored_examples(run)
        dataset = run.description().dataset
        chosen = choose_metrics([*stored_metrics(run), *own], examples, dataset)
        check_sources(judges, examples, dataset)
        with self._models.lease(f"the scoring of the run {name!r}") as lease:
            context = EngineContext(self._parts, lease)
            return (yield from rescore(run, chosen, judges, context, budget))

    def rescore_or_fail(
        self, name: str, metrics: Sequence[str], budget: SpendingLimit | None = None
    ) -> Operation[RunResult]:
        """``rescore`` as a job: raises RalleError after the scoring if a judge gave no score at all."""
        result = yield from self.rescore(name, metrics, budget)
        if result.failure:
            raise RalleError(result.failure)
        return result

    def probe(
        self,
        name: str,
        grader: str,
        wrong: WrongAnswers,
        probes: Sequence[str] = (),
        *,
        sample: int | None = None,
        seed: int = 0,
        budget: SpendingLimit | None = None,
    ) -> Operation[JudgeProbes]:
        """Probe the judge of a run, by default in all ways; see ``judge_probes.probe_judge``."""
        from rallebench.services.judge_probes import probe_judge

        return (
            yield from probe_judge(
                self._parts,
                self.open(name),
                grader,
                wrong,
                probes,
                sample=sample,
                seed=seed,
                budget=budget,
            )
        )

    def start(self, prepared: PreparedRun) -> Job:
        """Run a benchmark as a job. Raises UsageError if one of that name is running."""
        name = prepared.name
        job = self._jobs.get("run", name)
        if job is not None and not job.done:
            raise UsageError(f"The run {name!r} is running already.")
        lease = self._models.lease(f"the run {name!r}")

        def work(job: Job) -> Operation[RunResult]:
            lease.hold(prepared.request.flow.names)  # hold now, not only when the thread starts
            return self._work(prepared, lease, job)

        try:
            return self._jobs.submit("run", name, prepared, work, record={})
        except BaseException:
            lease.close()
            raise

    def _work(self, prepared: PreparedRun, lease: Lease, job: Job) -> Operation[RunResult]:
        def on_open(folder: RunFolder) -> None:
            self._folders[job.name] = folder
            job.stop_by(folder.ask_to_stop)

        self._folders.pop(job.name, None)
        job.stop_by(lambda: None)  # a run stops after its current batch and is scored
        with lease:
            result = yield from self.run(prepared, lease, heavy=False, on_open=on_open)
        if result.stopped:
            raise StoppedError(f"The run {job.name!r} was stopped; resume it to continue.")
        return result

    def job_folder(self, job: Job) -> RunFolder | None:
        """Return the folder of a run's job; None before it is opened."""
        return self._folders.get(job.name)

    def stop(self, name: str) -> None:
        """Ask a run in this or another process to stop after the current batch."""
        job = self._jobs.get("run", name)
        if job is not None:
            job.stop()
        with suppress(UsageError):
            RunFolder.open(self._workspace.runs, name).ask_to_stop()

    def resume(self, name: str) -> PreparedRun:
        """Return the benchmark that continues an existing run, as its folder describes it. If its dataset was changed or
        deleted since, the run continues with the questions that it began with.
        """
        folder = RunFolder.open(self._workspace.runs, name)
        stored = folder.description()
        agent = self._remake_agent(stored)
        own, rule = self._earlier_questions(folder, stored), stored.stopping
        prepared = prepare_run(
            self._workspace,
            agent.flow if agent else chain_flow(_require_chain(folder, stored)),
            stored.dataset if own else stored.dataset_source,
            examples=own,
            metrics=stored.metrics,
            name=name,
            options=RunOptions(stored.batch_size, resume=True),
            seed=stored.spec.seed,
            may_grow=rule is None,
            limit=stored.spec.limit if rule else None,
            sampled=rule is not None and stored.is_sampled,
        )
        if not own and rule:
            from rallebench.experiments.until_decided import ask_until_decided

            return ask_until_decided(prepared, self._base(name, rule), rule)
        if not own:
            return prepared
        ref = DatasetRef(stored.dataset, stored.dataset_file, stored.dataset_sha256)
        request = replace(prepared.request, dataset=ref, examples=own, stopping=rule)
        sentence = f"The dataset {stored.dataset} changed since this run began; the run asks and scores the questions that it began with."
        return replace(prepared, request=request, warnings=(*prepared.warnings, sentence))

    def _earlier_questions(self, folder: RunFolder, stored: RunDescription) -> tuple[Example, ...]:
        """Return the questions of a run whose dataset is not the same any more; () if it is."""
        sha256 = ""
        with suppress(RalleError, OSError):
            sha256 = self._workspace.dataset_ref(stored.dataset_source).sha256
            if not sha256:  # a folder, whose records count
                return ()
        return () if sha256 == stored.dataset_sha256 else tuple(stored_examples(folder))

    def _remake_agent(self, stored: RunDescription) -> Agent | None:
        """Rebuild the agent of a stored run; None for a run of a chain."""
        agent = stored.agent
        if agent is None:
            return None
        return prepare_agent(
            self._workspace,
            agent.workflow,
            agent.environment_name,
            agent.llm,
            agent.all_settings,
            seed=stored.spec.seed,
            allow_python=self._allow_python,
        )

    def list(self) -> Sequence[RunFolder]:
        """Return all runs of the workspace, newest first."""
        return list_runs(self._workspace.runs)

    def exists(self, name: str) -> bool:
        """Return whether a run of that name exists."""
        return bool(name) and (self._workspace.runs / name / RUN).is_file()

    def open(self, name: str) -> RunFolder:
        """Open a run by name. Raises UsageError if there is none."""
        return RunFolder.open(self._workspace.runs, name)

    def open_question(self, run: str, position: int) -> OpenedQuestion:
        """Return question ``position`` (from 1) of a run, with the chain and episode of that run."""
        folder = self.open(run)
        stored = folder.description()
        example = stored_examples(folder)[position - 1]
        dataset = stored.dataset
        with suppress(RalleError):
            dataset, _ = self._workspace.dataset(stored.dataset_source)
        episode = folder.episodes()[example.question.qid]
        return OpenedQuestion(_require_chain(folder, stored), dataset, example, episode)

    def _base(self, name: str, rule: StoppingRule) -> RunFolder:
        """Open the run that another one is decided against. Raises NotFoundError with the way out if it was deleted."""
        if self.exists(rule.against):
            return self.open(rule.against)
        sentence = (
            f"The run {name!r} is decided against the run {rule.against!r}, which was deleted"
        )
        if (self._workspace.run_bin / rule.against / "run.json").is_file():
            raise NotFoundError(f"{sentence}; bring it back from the bin of Runs, then resume.")
        raise NotFoundError(
            f"{sentence} for good, so it cannot be resumed; its answers stay. Start a new run of the chain."
        )

    # titles and the bin

    def rename(self, name: str, title: str) -> None:
        """Give a run a title. Its folder keeps its name, which experiments and MLflow refer to. Raises UsageError."""
        run, title = self.open(name), " ".join(title.split())
        if len(title) > LONGEST_TITLE:
            raise UsageError(
                f"The name has more than {LONGEST_TITLE} characters; choose a shorter one."
            )
        run.set_title(title)

    def mark(self, name: str, tags: Iterable[str], note: str) -> None:
        """Replace the tags and the note of a run. Raises UsageError."""
        write_marks(self.open(name), RunMarks(checked_tags(tags), checked_note(note)))

    def star(self, name: str, starred: bool = True) -> None:
        """Make a run the reference run of its dataset, in place of any other, or remove its star. Raises UsageError."""
        dataset = self.open(name).description().dataset
        set_reference(self._workspace.path, dataset, name if starred else "")

    def delete(self, name: str) -> None:
        """Move a run to the bin, without its star. Raises UsageError if it is running."""
        run = self.open(name)
        if run.state().is_active:
            raise UsageError(f"The run {name!r} is running; stop it before you delete it.")
        folder = self._workspace.run_bin
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / name).exists():
            raise UsageError(
                f"The bin holds another run {name!r}; empty the bin, or bring that run back first."
            )
        os.rename(run.path, folder / name)
        with suppress(BadFileError):
            forget_run(self._workspace.path, name)

    def restore(self, name: str) -> None:
        """Restore a run from the bin. Raises UsageError."""
        if not (self._workspace.run_bin / name / "run.json").is_file():
            raise UsageError(f"There is no run {name!r} in the bin.")
        target = self._workspace.runs / name
        if target.exists():
            raise UsageError(f"There is a run {name!r} already; delete or rename that one first.")
        os.rename(self._workspace.run_bin / name, target)

    def empty_bin(self) -> int:
        """Delete everything in the bin permanently; return the number of runs."""
        binned = list_files(self._workspace.run_bin, "*/run.json")
        for file in binned:
            shutil.rmtree(file.parent)
        return len(binned)
