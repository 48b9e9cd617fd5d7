"""What is loaded and what is running: the verbs that the page and the command line call.

``Workbench`` is the only mutable object of the product. One table holds what is loaded, so the
screen and the memory cannot disagree; loading adds, unloading removes, nothing is replaced.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rallebench import benchmark
from rallebench.agents import Agent, prepare_agent
from rallebench.background import Works
from rallebench.bench.cost import prices_of
from rallebench.bench.memo import Memo
from rallebench.bench.perform import Backends
from rallebench.bench.score import examples_of
from rallebench.bench.single import Event, answer_one, run_one
from rallebench.bench.store import RunFolder, list_runs
from rallebench.catalog import Manifest, chain_from_json, chain_to_json, read_manifest, save_chain
from rallebench.chain import chain as chains
from rallebench.corpora.chunking import Chunking
from rallebench.corpora.imported import Corpus, Importing, import_corpus
from rallebench.data_verbs import Data
from rallebench.datasets.importing import QuestionSet, import_dataset
from rallebench.datasets.kilt import read_questions
from rallebench.errors import RalleError, UsageError
from rallebench.footprint import Footprint, footprint
from rallebench.indexing import Building, build_index
from rallebench.loads import Loads
from rallebench.model_verbs import Models
from rallebench.tracking.groups import Group
from rallebench.tradeoff import Point, Tradeoff
from rallebench.tradeoff.kept import free_name, measure_and_keep
from rallebench.types import (
    Chain,
    Episode,
    Example,
    Generate,
    Gold,
    Message,
    Question,
    Reply,
    Request,
    Retrieve,
    Step,
)
from rallebench.workflows.continuing import continued
from rallebench.workspace import Workspace

BUILD_PATIENCE = 3.0
"""Seconds that ``close`` waits for a build to end."""

@dataclass(frozen=True, slots=True)
class Opened:
    """A question of a run, as Develop shows it."""

    chain: Chain
    dataset: str
    example: Example
    episode: Episode


@dataclass
class Job:
    """A benchmark that this process works on. ``of``: the run that it is a reference line of, '' for any other."""

    name: str
    phase: str = "loading"
    message: str = ""
    error: str = ""
    done: bool = False
    folder: RunFolder | None = None
    stop: bool = False
    of: str = ""


@lru_cache(maxsize=8)
def _read(path: Path, mtime: int, size: int) -> tuple[Example, ...]:
    return read_questions(path)


def _chain_of(made: Mapping[str, Any], run: str) -> Chain:
    """The chain of a run's ``run.json``. Raises UsageError for a run of predictions or of a suite, which has none."""
    chain = made["spec"]["settings"].get("chain")
    if chain is None:
        raise UsageError(
            f"The run {run!r} was made by {made['spec']['workflow']!r}, not by a chain, so there is no chain to open or "
            "to continue here; read it in Runs or Compare."
        )
    return chain_from_json(chain)


class Workbench:
    """See the module. Every verb is safe to call from several sessions at once."""

    def __init__(
        self,
        workspace: Path,
        *,
        base_settings: Path | None = None,
        tracking_uri: str | None = None,
        allow_python: bool = False,
    ) -> None:
        """``allow_python``: whether agents may run programs that a model wrote."""
        self.workspace = Workspace(workspace, base_settings)
        self.tracking_uri = tracking_uri
        self.allow_python = allow_python
        self.jobs: dict[str, Job] = {}
        self._memo: Memo | None = None
        self.builds = Works("build", Manifest)
        self.imports = Works("import", Corpus)
        self.tradeoffs = Works("trade-off", Tradeoff)
        self._lock = threading.RLock()
        self.loads = Loads(self.workspace, lambda: any(not job.done for job in self.jobs.values()))
        self.data = Data(self.workspace, self.loads, self.builds)
        self.models = Models(self.workspace, self.loads)
        self.verify_index = self.data.verify_index
        # What is loaded stands in ``loads``; its verbs are the workbench's own.
        self.load, self.unload, self.load_for = self.loads.load, self.loads.unload, self.loads.load_for
        self.room, self.cancel_load = self.loads.room, self.loads.cancel
        self.status, self.loading, self.is_loaded = self.loads.status, self.loads.loading, self.loads.is_loaded
        self.stop_builds, self.stop_tradeoffs = self.builds.stop, self.tradeoffs.stop
        self.stop_imports = self.imports.stop

    @property
    def backends(self) -> Backends:
        """What is loaded now; a snapshot, so that an unload never pulls a model from under a run."""
        return self.loads.backends

    def close(self) -> None:
        """Let go of everything: for a process that ends, or a workbench that nobody needs any more.

        A build that goes on is stopped and has a moment to take away what it has written.
        """
        for works in (self.builds, self.imports, self.tradeoffs, self.data.verifications):
            works.stop()
            works.wait(BUILD_PATIENCE)
        self.loads.close()
        with self._lock:
            if self._memo is not None:
                self._memo.close()
                self._memo = None

    @property
    def memo(self) -> Memo:
        """The step-level memory of the workspace."""
        with self._lock:
            if self._memo is None:
                self._memo = Memo(self.workspace.memo)
            return self._memo

    # develop

    def questions(self, dataset: str) -> tuple[Example, ...]:
        """The examples of a question set, read once per version of its file. Raises BadFileError."""
        _, path = self.workspace.dataset(dataset)
        stat = path.stat()
        return _read(path, stat.st_mtime_ns, stat.st_size)

    def example(self, dataset: str, chosen: str) -> Example:
        """The example whose id is ``chosen``; any other text is a question of the user's own, without gold."""
        for example in self.questions(dataset):
            if example.question.qid == chosen:
                return example
        if not (chosen or "").strip():
            raise UsageError("No question is chosen; choose one or type your own.")
        return Example(Question("custom", chosen), Gold())

    def plan_action(self, chain: Chain, index: int, question: Question, steps: Sequence[Step]) -> str:
        """Interpret the template of action ``index``; runs nothing."""
        return chains.interpret(chain.actions[index], question, steps[:index])

    def execute_action(self, chain: Chain, index: int, question: Question, steps: Sequence[Step]) -> Step:
        """Run one action on what the earlier ones answered; loads what it names alone. Raises RalleError."""
        request = chains.plan(chain.actions[index], question, steps[:index])
        return answer_one(request, self._ready(replace(chain, actions=(chain.actions[index],))), self.memo)

    def execute_chain(self, chain: Chain, question: Question, *, stream: bool = False) -> Iterator[Event]:
        """Run every action up to the last, yielding events; the Episode is last."""
        backends = self._ready(chain)
        flow = chains.as_flow(chain, question)
        yield from run_one(flow, backends, qid=question.qid, memo=self.memo, stream=stream)

    def gold_rank(self, step: Step, pages: frozenset[str], depth: int = 100) -> int | None:
        """The rank of the first gold page for a retrieval, looked for down to ``depth``; None if not there."""
        if not isinstance(step.request, Retrieve) or not pages:
            return None
        for rank, hit in enumerate(step.reply.hits, 1):
            if hit.passage.page_id in pages:
                return rank
        deeper: Request = Retrieve(step.request.retriever, step.request.query, max(depth, step.request.k))
        found = answer_one(deeper, self.backends, self.memo).reply.hits
        return next((rank for rank, hit in enumerate(found, 1) if hit.passage.page_id in pages), None)

    def _ready(self, chain: Chain) -> Backends:
        for piece in self.load_for(chain, heavy=False):
            if isinstance(piece, Backends):
                return piece
        raise AssertionError("load_for ends with the backends")

    def chat(self, chain: Chain, history: Sequence[Message], text: str) -> Iterator[Event]:
        """One chat turn: the chain as a flow, its last answer streamed."""
        return self.execute_chain(chain, Question("chat", text, history=tuple(history)), stream=True)

    def ask_model(self, name: str, prompt: str) -> Step:
        """Ask a loaded model one prompt, past the memory: to try it. Raises RalleError."""
        return answer_one(Generate(name, (Message("user", prompt),)), self.backends)

    # agents

    def agent(
        self, workflow: str, env: str, llm: str, settings: Mapping[str, Any] | None = None, *, seed: int | None = None
    ) -> Agent:
        """A workflow with its environment and model, all checked; loads no model. Raises UsageError."""
        return prepare_agent(
            self.workspace, workflow, env, llm, settings or {}, seed=seed, allow_python=self.allow_python
        )

    def run_agent(
        self, agent: Agent, question: Question, *, stream: bool = False, before: Sequence[Reply] = ()
    ) -> Iterator[Event]:
        """One episode, live: events, the Episode last. What it names is loaded, but for a heavy model.

        ``before``: replies of an earlier episode's first steps, the last perhaps edited, to go on from; see ``continued``.
        The events, and the Episode's steps, are those that come then.
        """
        backends = agent.with_tools(self._ready(agent.named_backends()))
        flow = continued(agent.flows(backends)(question), before)
        yield from run_one(flow, backends, qid=question.qid, workflow=agent.workflow, memo=self.memo, stream=stream)

    # chains

    def save_chain(self, chain: Chain, name: str) -> Path:
        """Save a chain in the workspace under ``name``; returns the file. UsageError if it could not be read again."""
        if not name.strip() or any(c in name for c in '/\\:*?"<>|\0') or name.startswith("."):
            raise UsageError(
                f"The chain name {name!r} cannot be a file name; use letters, digits, '-' and '_'."
            )
        named = chain_from_json(chain_to_json(replace(chain, name=name.strip())), "The chain")
        path = self.workspace.path / "chains" / f"{name.strip()}.json"
        save_chain(named, path)
        return path

    # benchmarks

    def footprint(self, names: Iterable[str]) -> Footprint:
        """What loaded models and indexes took in memory, those included that they are made of."""
        return footprint(self.workspace, self.status(), names)

    def run(self, plan: benchmark.Plan, job: Job | None = None) -> Generator[benchmark.Stage, None, None]:
        """Run a plan in the calling thread, yielding its stages."""
        heavy = job is None

        def opened(folder: RunFolder) -> None:
            if job is not None:
                job.folder = folder
                if job.stop:
                    folder.ask_to_stop()

        return benchmark.execute(
            self.workspace,
            plan,
            lambda chain: self.load_for(chain, heavy=heavy),
            lambda: self.memo,
            self.track_run,
            opened,
            self.footprint,
        )

    def start_run(self, plan: benchmark.Plan) -> Job:
        """Run a plan in the background; follow it by the job and its run folder."""
        with self._lock:
            running = self.jobs.get(plan.name)
            if running and not running.done:
                raise UsageError(f"The run {plan.name!r} is running already.")
            job = self.jobs[plan.name] = Job(plan.name)
        threading.Thread(target=self._work, args=(plan, job), name=f"run {plan.name}", daemon=True).start()
        return job

    def _work(self, plan: benchmark.Plan, job: Job) -> None:
        try:
            for stage in self.run(plan, job):
                if isinstance(stage, benchmark.Phase):
                    job.phase, job.message = stage.name, stage.message
                elif isinstance(stage, benchmark.Finished):
                    job.phase, job.message = stage.state, " ".join(stage.warnings)
        except RalleError as error:
            job.phase, job.error = "failed", str(error)
        except Exception as error:
            job.phase, job.error = (
                "failed",
                f"Internal error, please report it: {type(error).__name__}: {error}",
            )
            raise
        finally:
            job.done = True

    def start_references(self, name: str, *, track: bool = True) -> list[Job]:
        """Run the missing reference lines of a run in the background, one after another; see ``benchmark.lines``.

        What they were loaded for is let go again. Raises UsageError if there is none to run.
        """
        plans = list(benchmark.line_plans(self.workspace, self.open_run(name), track=track).values())
        if not plans:
            raise UsageError(f"All reference lines of {name!r} are there already.")
        with self._lock:
            if any(job.of == name and not job.done for job in self.jobs.values()):
                raise UsageError(f"The reference lines of {name!r} are being run already.")
            jobs = [Job(plan.name, "waiting", of=name) for plan in plans]
            self.jobs |= {job.name: job for job in jobs}
        threading.Thread(
            target=self._work_through, args=(plans, jobs), name=f"reference lines of {name}", daemon=True
        ).start()
        return jobs

    def _work_through(self, plans: Sequence[benchmark.Plan], jobs: Sequence[Job]) -> None:
        """One after another; once one was asked to stop, those after it are not begun."""
        before = {line.name for line in self.status()}
        for plan, job in zip(plans, jobs):
            if any(one.stop for one in jobs):
                job.phase, job.done = "stopped", True
                continue
            job.phase = "loading"
            with suppress(Exception):  # the job tells it, and the other lines go on
                self._work(plan, job)
        retrievers = {action.target for plan in plans for action in plan.chain.actions if action.kind == "retrieve"}
        for name in retrievers - before:
            with suppress(RalleError):
                self.unload(name, told=False)

    def stop_run(self, name: str) -> None:
        """Ask a run, in this or another process, to stop after the current batch."""
        job = self.jobs.get(name)
        if job is not None:
            job.stop = True
        with suppress(UsageError):
            RunFolder.open(self.workspace.runs, name).ask_to_stop()

    def resume_plan(self, name: str) -> benchmark.Plan:
        """The plan that continues an existing run, from what its folder says."""
        made = RunFolder.open(self.workspace.runs, name).spec()
        spec = made["spec"]
        agent = self._agent_of(spec)
        return benchmark.prepare(
            self.workspace,
            agent.named_backends() if agent else _chain_of(made, name),
            made.get("dataset_file") or spec["dataset"],
            limit=spec["limit"],
            metrics=tuple(made["metrics"]),
            name=name,
            batch_size=made["batch_size"],
            seed=spec["seed"],
            resume=True,
            agent=agent,
        )

    def _agent_of(self, spec: Mapping[str, Any]) -> Agent | None:
        """The agent of a run's specification, made anew; None for a run of a chain."""
        made = spec["settings"].get("agent")
        if made is None:
            return None
        env = made.get("environment") or {"name": "", "settings": {}}
        settings = {**made["settings"], **{f"env.{name}": value for name, value in env["settings"].items()}}
        return self.agent(made["workflow"], env["name"], made["llm"], settings, seed=spec["seed"])

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
        return list_runs(self.workspace.runs)

    def open_run(self, name: str) -> RunFolder:
        """A run by name; UsageError if there is none."""
        return RunFolder.open(self.workspace.runs, name)

    def open_question(self, run: str, position: int) -> Opened:
        """Question ``position`` (from 1) of a run, with the chain and the episode it had there."""
        folder = self.open_run(run)
        made = folder.spec()
        example = examples_of(folder)[position - 1]
        dataset = made["spec"]["dataset"]
        with suppress(RalleError):
            dataset, _ = self.workspace.dataset(made.get("dataset_file") or dataset)
        return Opened(_chain_of(made, run), dataset, example, folder.episodes()[example.question.qid])

    def track_run(self, folder: RunFolder) -> str:
        """Log a finished run to MLflow; '' or one sentence saying why that did not work."""
        try:
            self.log_run(folder)
        except RalleError as error:
            return f"The run is complete but was not logged to MLflow: {error} Send it later: rallebench track {folder.name}."
        return ""

    def log_run(self, folder: RunFolder) -> str:
        """Log a run to MLflow, with where it lost its questions; the id it has there. Raises RalleError."""
        from rallebench.analysis.runs import lost
        from rallebench.tracking.mlflow import log_run

        stages = lost(folder, self.workspace)
        return log_run(
            folder.path, workspace=self.workspace.path, tracking_uri=self.tracking_uri, waterfall=stages
        )

    def log_group(self, group: Group) -> str:
        """Put several runs below one parent run in MLflow; the parent's id. Raises RalleError."""
        from rallebench.tracking.groups import log_group

        return log_group(group, workspace=self.workspace.path, tracking_uri=self.tracking_uri)

    def trace(self, episode: Episode, question: str, source: str = "") -> None:
        """Hand one episode of ``develop`` or ``chat`` to MLflow's traces; returns at once and never fails."""
        from rallebench.tracking.live import trace_later

        trace_later(
            episode,
            question,
            workspace=self.workspace.path,
            tracking_uri=self.tracking_uri,
            source=source,
            prices=self.prices(),
        )

    def prices(self) -> dict[str, dict[str, float] | None]:
        """Loaded language model → US dollars per million ``prompt`` and ``completion`` tokens, None if unknown."""
        return prices_of(self.backends.llms)

    def start_mlflow(self) -> Iterator[str]:
        """Start MLflow's own page on loopback, yielding what goes on, its address last. Raises BackendError."""
        from rallebench.tracking.server import start_ui

        server = start_ui(self.workspace.path, tracking_uri=self.tracking_uri)
        while not server.ready():
            yield f"MLflow is starting ({server.waited:.0f} s; the first time takes longest) …"
            time.sleep(1.0)
        yield server.url

    # indexes

    def build_index(
        self,
        name: str,
        corpus: str | Path,
        kind: str,
        *,
        encoder: str = "minilm",
        page_map: Path | None = None,
        chunking: Chunking | None = None,
        form: str = "",
        parameters: dict[str, Any] | None = None,
        source: Path | None = None,
    ) -> Iterator[Building | Manifest]:
        """Build an index of the workspace, yielding progress, the Manifest last.

        ``corpus``: the name of an imported corpus, or a file or folder whose format is ``form`` ('' recognises it).
        It is built in a thread of its own: a page that goes away stops nothing, and whoever asks for
        the same name again follows the build that goes on.
        """
        settings: dict[str, Any] = {
            "encoder_name": encoder, "page_map": page_map, "chunking": chunking, "form": form, "parameters": parameters,
            "source": source,
        }  # fmt: skip
        passages = self.workspace.corpus(str(corpus))
        return self.builds.follow(
            name,
            (passages, kind, settings),
            lambda: build_index(self.workspace.indexes, name, passages, kind, **settings),
        )

    def import_corpus(
        self, name: str, source: Path, *, form: str = "", page_map: Path | None = None, skip_bad: bool = False
    ) -> Iterator[Importing | Corpus]:
        """Import a corpus under a name, yielding progress, the Corpus last; it goes on in a thread of its own."""
        settings: dict[str, Any] = {"form": form, "page_map": page_map, "skip_bad": skip_bad}
        return self.imports.follow(
            name, (source, settings), lambda: import_corpus(self.workspace.corpora, name, source, **settings)
        )

    def import_dataset(
        self, name: str, source: Path, *, form: str = "", skip_bad: bool = False, sample: int = 0, seed: int = 42
    ) -> QuestionSet:
        """Import a question set under a name, all of it or a sample; returns what was made of it."""
        folder = self.workspace.path / "datasets"
        return import_dataset(folder, name, source, form=form, skip_bad=skip_bad, sample=sample, seed=seed)

    def manifest(self, name: str) -> Manifest:
        """What an index says of itself."""
        return read_manifest(self.workspace.indexes / name)

    def measure_tradeoff(
        self,
        indexes: Sequence[str],
        dataset: str,
        *,
        k: int = 10,
        limit: int = 200,
        name: str = "",
        swept: Mapping[str, Sequence[Any]] | None = None,
    ) -> Iterator[str | Point | Tradeoff]:
        """Compare indexes on the questions of a set, yielding sentences, Points and the Tradeoff last.

        It goes on in a thread of its own; see ``tradeoff.measure`` for what is measured.
        """
        name, examples = free_name(self.workspace, name), self.questions(dataset)
        asked = (tuple(indexes), dataset, k, limit, repr(swept))
        return self.tradeoffs.follow(
            name,
            asked,
            lambda: measure_and_keep(
                self.workspace, name, indexes, dataset, examples, self.loads.encoders, k=k, limit=limit, swept=swept
            ),
        )
