"""The calls of other programs: ask, search, start and follow runs, read and compare results, list names.

Gradio's endpoints and the tools of MCP are these methods; their docstrings and hints describe them there.
"""

from __future__ import annotations

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.events import complete
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

READ_ONLY = "This server is read-only, so it asks no model and starts no run."


class Calls:
    """The calls over one workbench; threads may share it. ``read_only``: refuse all that asks a model or changes a file.

    Every method raises RalleError with one sentence for a wrong request.
    """

    def __init__(self, workbench: Workbench, *, read_only: bool = False) -> None:
        self._bench, self._read_only = workbench, read_only

    def ask(
        self, question: str, chain: str = "starter", llm: str = "", retriever: str = ""
    ) -> AnswerJson:
        """Ask a chain one question; returns the answer with every prompt, passage and reply.

        ``chain``: the name of a saved chain; ``llm`` and ``retriever`` replace those that the chain names.
        """
        self._require_work()
        answerer = changed_chain(self._bench.workspace, chain, llm or None, retriever or None, ())
        episode = complete(self._bench.asking.answer(question, answerer))
        assert isinstance(episode, Episode)
        return answer_json(episode)

    def search(self, query: str, retriever: str = "starter-bm25", k: int = 5) -> list[HitJson]:
        """Return the ``k`` best passages of an index, best first; ``k`` is at most 1000."""
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
    ) -> RunStatusJson:
        """Start to ask a chain the questions of a dataset, and score the answers. Follow it by ``run_status``.

        ``limit``: the first so many questions, 0 for all. ``metrics``: names with commas, '' for those that fit the gold.
        ``name``: '' for a new one. ``llm`` and ``retriever`` replace those that the chain names.
        """
        self._require_work()
        if limit < 0:
            raise UsageError(f"limit is {limit}; it must be 0 for all questions, or more.")
        options = BenchmarkOptions(
            dataset,
            limit=limit or None,
            metrics=tuple(filter(None, map(str.strip, metrics.split(",")))) or None,
            llm=llm or None,
            retriever=retriever or None,
        )
        prepared = of_chain(self._bench.workspace, chain, options, run=name)
        return job_json(self._bench.runs.start(prepared))

    def run_status(self, run: str) -> RunStatusJson:
        """Return the state of a run, its share and the seconds left; also of one that ended before."""
        job = self._bench.jobs.get("run", run)
        if job is not None and (not job.done or job.status == "failed"):
            return job_json(job)
        report = self._bench.runs.open(run).report()
        if report is None:
            return _ended_status(run, False, 0, 0)
        return _ended_status(run, report.complete, report.n_done, report.n)

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
            raise UsageError(READ_ONLY)


def _ended_status(run: str, complete: bool, done: int, total: int) -> RunStatusJson:
    """The state of a run that no job of this program is working on."""
    return {
        "run": run,
        "state": "finished" if complete else "stopped",
        "done": done,
        "total": total,
        "share": done / total if total else None,
        "seconds_left": None,
        "message": "",
        "error": "",
    }
