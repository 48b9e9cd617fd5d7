"""What is loaded and what is running: the verbs that the page and the command line call.

``Workbench`` is the only mutable object of the product. One table holds what is loaded, so the
screen and the memory cannot disagree; loading adds, unloading removes, nothing is replaced.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.core.parts import remove_all_abandoned
from rallebench.core.runs import Backends
from rallebench.core.types import Chain, Episode, Message, Question
from rallebench.corpora.chunking import Chunking
from rallebench.corpora.imported import Corpus, ImportProgress, import_corpus
from rallebench.datasets.importing import QuestionSet, import_dataset
from rallebench.engine.cost import prices_of
from rallebench.engine.reply_cache import Memo
from rallebench.engine.single import Event
from rallebench.engine.store import RunFolder
from rallebench.services.asking import Asking
from rallebench.services.context import Context
from rallebench.services.data import Data
from rallebench.services.experiments import Experiments
from rallebench.services.grouping import group_of
from rallebench.services.jobs import JobManager, operation_of, pieces_of
from rallebench.services.memory_usage import Footprint, footprint
from rallebench.services.model_entries import Models
from rallebench.services.models import Loads
from rallebench.services.runs import Runs
from rallebench.tracking.groups import Group
from rallebench.workspace.entries import Manifest, read_manifest
from rallebench.workspace.indexes.build import Building, build_index
from rallebench.workspace.paths import Workspace

PATIENCE = 5.0
"""Seconds that ``close`` waits for all work to end."""


KINDS = ("run", "sweep", "suite", "baselines", "batch")
"""What a name can be one of."""


class Workbench:
    """See the module. Every verb is safe to call from several sessions at once."""

    def __init__(
        self,
        workspace: Path,
        *,
        base_settings: Path | None = None,
        tracking_uri: str | None = None,
        allow_python: bool = False,
        allowed_hosts: Sequence[str] = (),
    ) -> None:
        """``allow_python``: whether agents may run programs that a model wrote.

        ``allowed_hosts``: further host names, of a proxy say, that MLflow's page answers to.
        """
        self.workspace = Workspace(workspace, base_settings)
        remove_all_abandoned(self.workspace.path)
        self.tracking_uri = tracking_uri
        self.allow_python, self.allowed_hosts = allow_python, allowed_hosts
        self._memo: Memo | None = None
        self.jobs = JobManager()
        self._lock = threading.RLock()
        self.loads = Loads(self.workspace, self.jobs)
        self.data = Data(self.workspace, self.loads, self.jobs)
        self.models = Models(self.workspace, self.loads)
        self.verify_index = self.data.verify_index
        self.asking = Asking(self.workspace, self.loads, lambda: self.memo, allow_python)
        self.benches = Runs(
            self.workspace,
            self.loads,
            self.asking.agent,
            lambda lease, heavy: Context(self, lease, heavy=heavy),
            self.jobs,
        )
        self.experiments = Experiments(self)
        # The verbs of its parts are the workbench's own.
        self.load, self.unload, self.lease = self.loads.load, self.loads.unload, self.loads.lease
        self.room, self.cancel_load = self.loads.room, self.loads.cancel
        self.status, self.loading, self.is_loaded = (
            self.loads.status,
            self.loads.loading,
            self.loads.is_loaded,
        )
        asking, runs = self.asking, self.benches
        self.questions, self.example, self.gold_rank = (
            asking.questions,
            asking.example,
            asking.gold_rank,
        )
        self.plan_action, self.execute_action = asking.plan_action, asking.execute_action
        self.execute_chain, self.ask_model = asking.execute_chain, asking.ask_model
        self.agent, self.run_agent, self.save_chain = (
            asking.agent,
            asking.run_agent,
            asking.save_chain,
        )
        self.run, self.start_run = runs.run, runs.start_run
        self.stop_run, self.resume_plan, self.running = (
            runs.stop_run,
            runs.resume_plan,
            runs.running,
        )
        self.runs, self.open_run, self.open_question = runs.runs, runs.open_run, runs.open_question

    @property
    def backends(self) -> Backends:
        """What is loaded now; a snapshot, so that an unload never pulls a model from under a run."""
        return self.loads.backends

    def close(self) -> None:
        """Stop all jobs, unload all models: for a process that ends, or a workbench that is not needed any more.

        The jobs have PATIENCE seconds to end, to remove what they have half written and to release their models.
        """
        deadline = time.monotonic() + PATIENCE
        self.jobs.close(PATIENCE)
        self.loads.leases.wait(deadline - time.monotonic())
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
                self._memo = Memo.open(self.workspace.memo)
            return self._memo

    @property
    def memo_warning(self) -> str:
        """Why replies are not kept beyond this process; '' if they are, or if nothing was asked yet."""
        return self._memo.warning if self._memo is not None else ""

    def chat(self, chain: Chain, history: Sequence[Message], text: str) -> Iterator[Event]:
        """One chat turn: the chain as a flow, its last answer streamed."""
        question = Question("chat", text, history=tuple(history))
        return self.execute_chain(chain, question, stream=True, holder=chat_holder(chain))

    # runs and their records

    def kinds_of(self, name: str) -> list[str]:
        """The kinds that have this name in the workspace."""
        kinds = ["run"] if (self.workspace.runs / name / "run.json").is_file() else []
        noun = self.experiments.store.noun_of(name)
        return [*kinds, noun] if noun else kinds

    def footprint(self, names: Iterable[str]) -> Footprint:
        """What loaded models and indexes took in memory, those included that they are made of."""
        return footprint(self.workspace, self.status(), names)

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
        from rallebench.tracking.runs import log_run

        stages = lost(folder, self.workspace)
        return log_run(
            folder.path,
            workspace=self.workspace.path,
            tracking_uri=self.tracking_uri,
            waterfall=stages,
        )

    def log_group(self, group: Group) -> str:
        """Put several runs below one parent run in MLflow; the parent's id. Raises RalleError."""
        from rallebench.tracking.groups import log_group

        return log_group(group, workspace=self.workspace.path, tracking_uri=self.tracking_uri)

    def track_experiment(self, document: Mapping[str, Any], kind: str) -> str:
        """Put an experiment's runs below one parent in MLflow; '' or one sentence on why that did not work."""
        group = group_of(self.workspace, document, kind)
        if group is None:
            return ""
        try:
            self.log_group(group)
        except RalleError as error:
            return (
                f"The {group.kind} {group.name!r} is complete but was not put together in MLflow: {error} "
                f"Send it later: rallebench track {group.name!r}."
            )
        return ""

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

        server = start_ui(
            self.workspace.path, tracking_uri=self.tracking_uri, allowed_hosts=self.allowed_hosts
        )
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
            "encoder_name": encoder,
            "page_map": page_map,
            "chunking": chunking,
            "form": form,
            "parameters": parameters,
            "source": source,
        }
        passages = self.workspace.corpus(str(corpus))
        job = self.jobs.submit(
            "build",
            name,
            (passages, kind, settings),
            lambda job: operation_of(
                build_index(self.workspace.indexes, name, passages, kind, **settings), Manifest
            ),
        )
        return pieces_of(job)

    def import_corpus(
        self,
        name: str,
        source: Path,
        *,
        form: str = "",
        page_map: Path | None = None,
        skip_bad: bool = False,
    ) -> Iterator[ImportProgress | Corpus]:
        """Import a corpus under a name, yielding progress, the Corpus last; it goes on in a thread of its own."""
        settings: dict[str, Any] = {"form": form, "page_map": page_map, "skip_bad": skip_bad}
        job = self.jobs.submit(
            "import",
            name,
            (source, settings),
            lambda job: operation_of(
                import_corpus(self.workspace.corpora, name, source, **settings), Corpus
            ),
        )
        return pieces_of(job)

    def import_dataset(
        self,
        name: str,
        source: Path,
        *,
        form: str = "",
        skip_bad: bool = False,
        sample: int = 0,
        seed: int = 42,
    ) -> QuestionSet:
        """Import a question set under a name, all of it or a sample; returns what was made of it."""
        folder = self.workspace.path / "datasets"
        return import_dataset(
            folder, name, source, form=form, skip_bad=skip_bad, sample=sample, seed=seed
        )

    def manifest(self, name: str) -> Manifest:
        """What an index says of itself."""
        return read_manifest(self.workspace.indexes / name)


def chat_holder(chain: Chain) -> str:
    """What holds the models of a chain while one turn of a conversation is answered."""
    return f"a chat turn of the chain {chain.name!r}, which is being answered"
