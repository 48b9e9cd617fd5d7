"""The calls of other programs: ask, search, start and follow runs, read and compare results, list names.

Gradio's endpoints and the tools of MCP are these methods; their docstrings and hints describe them there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rallebench.core.errors import NotFoundError, ReadOnlyError, UsageError
from rallebench.core.events import Event, complete, ignore
from rallebench.core.registry import unknown
from rallebench.core.report import RunReport
from rallebench.core.runs import RunOptions
from rallebench.core.spending_limit import spending_limit
from rallebench.core.types import Episode
from rallebench.remote.shapes import (
    AnswerJson,
    HitJson,
    RunStatusJson,
    answer_json,
    hits_json,
    job_json,
)
from rallebench.services.data import Search
from rallebench.services.workbench import Workbench
from rallebench.views import comparing, lists
from rallebench.views.run_requests import BenchmarkOptions, changed_chain, of_chain


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of a call. ``works``: it asks a model or changes a file, so a read-only server refuses it; ``repeatable``: an
    equal second call changes nothing more.
    """

    works: bool = False
    repeatable: bool = True


CALLS: Mapping[str, Effect] = {
    "ask": Effect(works=True, repeatable=False),
    "search": Effect(),
    "start_run": Effect(works=True, repeatable=False),
    "run_status": Effect(),
    "stop_run": Effect(works=True),
    "report": Effect(),
    "compare": Effect(),
    "list_names": Effect(),
}
"""Name of a call, a method of Calls → its effect. Every front end offers exactly these."""


NOUNS = {
    "chains": "chain",
    "datasets": "dataset",
    "llms": "language model",
    "retrievers": "retriever",
}


class Calls:
    """The calls over one workbench; threads may share it. ``hear``: called with the progress of a question.

    Every method raises RalleError with one sentence for a wrong request, and for work in a read-only workbench.
    """

    def __init__(self, workbench: Workbench, hear: Callable[[Event], None] = ignore) -> None:
        self._bench, self._hear = workbench, hear
        self._read_only = workbench.workspace.read_only

    def by_name(self, name: str) -> Callable[..., object]:
        """Return the call of a name in ``CALLS``."""
        call: Callable[..., object] = getattr(self, name)
        return call

    def ask(
        self, question: str, chain: str = "starter", llm: str = "", retriever: str = ""
    ) -> AnswerJson:
        """Ask a chain one question; returns the answer with every prompt, passage and reply.

        ``chain``: the name of a saved chain; ``llm`` and ``retriever`` replace those that the chain names.
        """
        self._require_work()
        self._check_names(chains=chain, llms=llm, retrievers=retriever)
        answerer = changed_chain(self._bench.workspace, chain, llm or None, retriever or None, ())
        episode = complete(self._bench.asking.answer(question, answerer), self._hear)
        assert isinstance(episode, Episode)
        return answer_json(episode)

    def search(self, query: str, retriever: str = "starter-bm25", k: int = 5) -> list[HitJson]:
        """Return the ``k`` best passages of an index, best first; ``k`` is at most 1000."""
        self._check_names(retrievers=retriever)
        if self._read_only and self._bench.models.asks_model(retriever):
            raise ReadOnlyError(
                f"The retriever {retriever!r} asks a language model, and this program is read-only."
            )
        *_, result = self._bench.data.search(retriever, query, k)
        assert isinstance(result, Search)
        return hits_json(result.hits)

    def start_run(
        self,
        chain: str,
        dataset: str,
        limit: int = 0,
        metrics: str = "",
        name: str = "",
        llm: str = "",
        retriever: str = "",
        max_usd: float = 0,
    ) -> RunStatusJson:
        """Start to ask a chain the questions of a dataset, and score the answers. Follow it by ``run_status``.

        ``limit``: the first so many questions, 0 for all. ``metrics``: names with commas, '' for those that fit the gold.
        ``name``: '' for a new one; that of an equal run which was stopped continues it. ``llm`` and ``retriever`` replace those that the chain names.
        ``max_usd``: the run stops once new calls of models have cost so many US dollars, 0 for no such limit.
        """
        self._require_work()
        if limit < 0:
            raise UsageError(f"limit is {limit}; it must be 0 for all questions, or more.")
        chosen = tuple(filter(None, map(str.strip, metrics.split(","))))
        self._check_names(chains=chain, datasets=dataset, llms=llm, retrievers=retriever)
        self._check_metrics(chosen)
        options = BenchmarkOptions(
            dataset,
            limit=limit or None,
            metrics=chosen or None,
            llm=llm or None,
            retriever=retriever or None,
            run=RunOptions(budget=spending_limit(max_usd or None)),
        )
        prepared = of_chain(
            self._bench.workspace, chain, options, run=name, resume=self._bench.runs.exists(name)
        )
        return job_json(self._bench.runs.start(prepared))

    def run_status(self, run: str) -> RunStatusJson:
        """Return the state of a run, its share and the seconds left; also of one that ended before."""
        job = self._bench.jobs.get("run", run)
        if job is not None and (not job.done or job.status == "failed"):
            return job_json(job)
        folder = self._bench.runs.open(run)
        report = folder.report() or RunReport()
        return _ended_status(run, report, folder.state().message)

    def stop_run(self, run: str) -> RunStatusJson:
        """Ask a run to stop after its current batch; start it again under its name to continue."""
        self._require_work()
        if self._bench.jobs.get("run", run) is None:
            self._bench.runs.open(run)
        self._bench.runs.stop(run)
        return self.run_status(run)

    def report(self, run: str) -> dict[str, object]:
        """Return the results of a run: every metric with its interval and count, costs, and the losses by stage."""
        report = self._bench.runs.open(run).report()
        if report is None:
            raise NotFoundError(f"The run {run!r} has no results yet; wait for its end.")
        return dict(report.to_json())

    def compare(self, run: str, other: str, metric: str = "") -> dict[str, object]:
        """Compare two runs question by question: the difference of ``other`` from ``run`` with its interval and p, wins, ties, losses.

        ``metric``: '' for the one that decides.
        """
        folders = [self._bench.runs.open(name) for name in (run, other)]
        return dict(comparing.compare(folders, metric).to_json())

    def list_names(self, kind: str = "chains") -> dict[str, str]:
        """Return the names of a kind, each with a line about it.

        ``kind``: such as chains, datasets, corpora, retrievers, llms, encoders, metrics, judges, suites, workflows or runs.
        """
        return dict(lists.abouts(self._bench.workspace, kind))

    def _require_work(self) -> None:
        if self._read_only:
            raise ReadOnlyError()

    def _check_names(self, **references: str) -> None:
        """Refuse what is not a listed name of its kind ('' is allowed). A file, or a model with its address and its key, is
        named by the user of this server alone: a program could read any file, and send any key anywhere.
        """
        for kind, name in references.items():
            if name and name not in (names := lists.names(self._bench.workspace, kind)):
                raise NotFoundError(unknown(NOUNS[kind], name, [*names]))

    def _check_metrics(self, metrics: Iterable[str]) -> None:
        """Refuse metrics whose model or encoder is not a listed name."""
        listed = [lists.abouts(self._bench.workspace, kind) for kind in ("llms", "encoders")]
        for metric in metrics:
            _, _, name = metric.partition(":")
            if name and not any(name in names for names in listed):
                raise NotFoundError(
                    f"There is no model or encoder {name!r} for {metric!r}; list_names('llms') and list_names('encoders') list them."
                )


def _ended_status(run: str, report: RunReport, message: str) -> RunStatusJson:
    """The state of a run that no job of this program is working on."""
    done, total = report.n_done, report.n
    return {
        "run": run,
        "state": "finished" if report.complete else "stopped",
        "done": done,
        "total": total,
        "share": done / total if total else None,
        "seconds_left": None,
        "message": message,
        "error": "",
    }
