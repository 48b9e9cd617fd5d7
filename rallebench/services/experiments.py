"""Plan experiments, measure them with a pilot, run them, and open them again."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace

from rallebench.core.errors import Hint, UsageError
from rallebench.core.events import Event, Failed, Finished, IndexReady, Operation, Progress
from rallebench.core.experiment_reports import (
    ExperimentReport,
    PartResult,
    SuiteReport,
    TradeoffReport,
)
from rallebench.core.experiments import PILOT_QUESTIONS, ExperimentRequest, ExperimentResult
from rallebench.core.forecast import Forecast
from rallebench.core.improvements import IMPROVEMENT
from rallebench.core.runs import DEFAULT_OPTIONS, RunOptions
from rallebench.engine import driver
from rallebench.engine.driver import ExperimentRules
from rallebench.engine.dry_run import plan
from rallebench.engine.experiment_store import (
    REPORT,
    ExperimentStore,
    check_free,
)
from rallebench.engine.pilot import pilot
from rallebench.experiments import EXPERIMENTS, SUITES
from rallebench.experiments.prepared_run import check_options
from rallebench.services import builders
from rallebench.services.builders import NOUN
from rallebench.services.context import EngineContext, EngineParts
from rallebench.services.jobs import Job, JobManager
from rallebench.services.leases import Lease
from rallebench.services.runs import Runs
from rallebench.workspace.indexes.estimate import estimate_build
from rallebench.workspace.paths import WorkspaceFolder

SWEEP_NAME = re.compile(r"(?!\.)[\w\-.]{1,40}")

ENCODING = "encoding passages"
"""The slowest step of a build."""
ANSWERING = ("", "running")
"""Steps of a run in which questions are counted."""
ALMOST = 0.9
"""Share of a build's time spent encoding."""

TRACKABLE = ("run", "sweep", "suite", "baselines", "batch", "improvement")
"""Kinds that `track` can log; several may share a name."""


def experiment_rules(name: str) -> ExperimentRules:
    """Return the rules for experiments of a kind. Raises NotFoundError."""
    return _RULES[EXPERIMENTS.entry(name).traits["place"]]


WorkspaceRequest = ExperimentRequest[WorkspaceFolder]
"""The request for an experiment of a workspace."""


def nouns_of_experiments() -> frozenset[str]:
    """Kinds of experiment jobs, without dataset builders."""
    return frozenset(rules.noun for rules in _RULES.values()) - {NOUN}


class Experiments:
    """Plans, probes, starts and opens experiments. It is stateless, so threads may share it."""

    def __init__(self, parts: EngineParts, jobs: JobManager, runs: Runs) -> None:
        self._parts, self._jobs, self._runs = parts, jobs, runs
        self._workspace, self._models = parts.workspace, parts.models
        self.store = ExperimentStore(self._workspace.path)

    def plan(self, request: WorkspaceRequest, repeats: int = 1) -> Forecast:
        """Return everything that ``run`` would run, without loading or writing anything. ``repeats``: of each question. Raises RalleError for an
        invalid request, MismatchError if a run of that name has other settings.
        """
        with self._lease(request, "the plan of ") as lease:
            context = EngineContext(self._parts, lease)
            return plan(request, EXPERIMENTS[request.kind], context, repeats)

    def pilot(
        self,
        planned: Forecast,
        request: WorkspaceRequest,
        *,
        questions: int = PILOT_QUESTIONS,
        batch_size: int = 20,
        **limits: float,
    ) -> Operation[Forecast]:
        """Ask a few questions of each planned run; return the plan with all costs. See ``engine.pilot``."""
        with self._lease(request, "the probe of ") as lease:
            work = pilot(
                planned,
                request,
                EXPERIMENTS[request.kind],
                EngineContext(self._parts, lease),
                questions=questions,
                batch_size=batch_size,
                **limits,
            )
            measured = yield from work
            building = yield from self._measure_builds(planned)
            return measured.with_building(building)

    def _measure_builds(self, planned: Forecast) -> Operation[float]:
        """Measure a small sample of each missing index; return the seconds to build them all."""
        seconds, encoders = 0.0, self._models.encoders
        for recipe in planned.builds:
            for news in estimate_build(self._workspace, recipe, encoders):
                if isinstance(news, str):
                    yield Progress("", message=news)
                else:
                    seconds += news.seconds
        return seconds

    def run(
        self, request: WorkspaceRequest, options: RunOptions = DEFAULT_OPTIONS
    ) -> Operation[ExperimentResult]:
        """Run an experiment. If one of that name with the same content exists, resume it. Raises RalleError for
        problems found before the first run. See ``engine.driver``.
        """
        check_options(options.batch_size, options.max_errors)
        factory, rules = EXPERIMENTS[request.kind], experiment_rules(request.kind)
        with self._lease(request) as lease:
            context = EngineContext(self._parts, lease)
            work = driver.run_experiment(request, factory, context, self.store, options, rules)
            return (yield from work)

    def start(
        self,
        request: WorkspaceRequest,
        options: RunOptions = DEFAULT_OPTIONS,
        planned: Forecast | None = None,
    ) -> Job:
        """Start an experiment as a job, or join its running job. ``planned``: used for one progress over all its
        runs.

        Raises UsageError if a different experiment of that name is running.
        """
        work = self.run(request, options)
        if planned is not None:
            work = _count_progress(work, planned)
        identity = repr((request.kind, request.to_json()))
        noun = experiment_rules(request.kind).noun
        return self._jobs.submit(
            noun, request.name, identity, lambda job: work, anew=True, record={}
        )

    def stop(self, name: str) -> None:
        """Ask the current run of an experiment to stop after the current batch; do nothing if there is none."""
        runs = self.store.open(name).runs.values() if self.store.exists(name) else ()
        for run in [*runs][-1:]:
            self._runs.stop(run)

    def kinds_named(self, name: str) -> list[str]:
        """Return the kinds of experiment with this name in the workspace."""
        kinds = ["run"] if (self._workspace.runs / name / "run.json").is_file() else []
        noun = self.store.find_noun(name)
        return [*kinds, noun] if noun else kinds

    def _lease(self, request: WorkspaceRequest, use: str = "") -> Lease:
        """Check the request and return its lease; ``use`` precedes the noun, as in "the plan of ". Raises
        UsageError, NotFoundError.
        """
        kind, noun = request.kind, experiment_rules(request.kind).noun
        if kind == SWEEP and not SWEEP_NAME.fullmatch(request.name):
            raise UsageError(
                f"The sweep's name {request.name!r} must be 1 to 40 letters, digits, '-', '_' or '.'."
            )
        if kind in SUITES:
            if SUITES.entry(kind).traits.get("needs_llm", True) and not request.llm:
                raise UsageError(
                    f"The suite {kind!r} needs a language model.", hint=Hint("choose", "llm")
                )
            if request.limit is not None and request.limit < 1:
                raise UsageError(
                    f"The number of questions is {request.limit}; it must be at least 1."
                )
        check_free(self._workspace.path, kind, request.name, noun)
        return self._models.lease(f"{use}the {noun} {request.name!r}")

    def list(self, noun: str = "") -> list[str]:
        """Return the names of all experiments, newest first. ``noun``: only this kind, such as "sweep". Trade-offs
        appear once finished.
        """
        names = [n for n in self.store.names() if not noun or self.store.find_noun(n) == noun]
        if noun != _RULES["tradeoffs"].noun:
            return names
        return [name for name in names if (self.store.folder(name) / REPORT).is_file()]

    def open_tradeoff(self, name: str) -> TradeoffReport:
        """Open a finished trade-off. Raises UsageError if there is none of that name, BadFileError if its file is
        damaged.
        """
        report = self.store.open(name, "trade-off").report
        if not isinstance(report, TradeoffReport):
            raise UsageError(f"{name!r} is not a finished trade-off; measure it under its name.")
        return report


def _count_progress(
    work: Operation[ExperimentResult], planned: Forecast
) -> Operation[ExperimentResult]:
    """Run the work and add one progress over all its runs and indexes, whose task is ""."""
    count = _Count(planned)
    yield count.progress
    with closing(work):
        while True:
            try:
                event = next(work)
            except StopIteration as end:
                result: ExperimentResult = end.value
                return result
            yield event
            before = count.percent
            count.hear(event)
            if count.percent > before:  # a job keeps an event once another task's follows
                yield count.progress


class _Count:
    """Counts the answered questions and built indexes of a planned experiment. The total is unknown if rows are
    built first.
    """

    def __init__(self, planned: Forecast) -> None:
        self._sizes = {run.label: run.questions for run in planned.runs}
        self._done: dict[str, int] = {}
        self._indexes, self._needed = len(planned.builds), planned.indexes
        self._ready: dict[str, bool] = {}
        self._share = 0.0
        total = sum(self._sizes.values()) or len(planned.measurements)
        self.total = 0 if planned.rows else total

    def hear(self, event: Event) -> None:
        """Process an event of the work."""
        outer = "/" not in event.task
        if isinstance(event, IndexReady):
            self._ready[event.name] = self._ready.get(event.name, False) or event.built
            self._share = 0.0
        elif isinstance(event, (Finished, Failed)) and outer:
            self._done[event.task] = self._sizes.get(event.task, 1)
        elif isinstance(event, Progress) and event.message in ANSWERING:
            if event.task in self._sizes:
                self._done[event.task] = event.done
        elif isinstance(event, Progress) and event.message == ENCODING and event.total:
            self._share = max(self._share, event.done / event.total)

    @property
    def progress(self) -> Progress:
        done = min(sum(self._done.values()), self.total)
        new = sum(self._ready.values())
        ready = max(new, self._indexes - max(0, self._needed - len(self._ready)))
        built = min(float(self._indexes), ready + ALMOST * self._share)
        runs, indexes = len(self._sizes), self._indexes
        return Progress("", done, self.total or None, runs=runs, indexes=indexes, built=built)

    @property
    def percent(self) -> int:
        """Percentage over both counts."""
        now = self.progress
        answered = 100 * now.done // now.total if now.total else 0
        return answered + int(100 * now.built)


def suite_report(result: ExperimentResult) -> SuiteReport:
    """Return every run with its means, then the suite's own results."""
    own = result.report
    definitions = {column.name: column.definition for run in result.runs for column in run.columns}
    parts = (
        PartResult(run.request.label, run.run, run.n, run.n_errors, run.seconds, run.means)
        for run in result.runs
    )
    return SuiteReport(
        result.request.kind,
        result.request.name,
        tuple(parts),
        definitions,
        own.data,
        own.notes,
        own.tables,
        own.figures,
        result.files,
        str(result.folder),
    )


def improvement_report(result: ExperimentResult) -> SuiteReport:
    """Return the report of an improvement: every run with its mean by the metric that decided."""
    report = suite_report(result)
    name = str(result.report.data[IMPROVEMENT]["metric"])
    means = {run.run: run.report.metrics.get(name) for run in result.runs if run.report}
    parts = (
        replace(part, metrics={name: mean} if (mean := means.get(part.run)) else {})
        for part in report.parts
    )
    return replace(report, parts=tuple(parts))


def own_report(result: ExperimentResult) -> ExperimentReport:
    """Return the report that the experiment produced."""
    if result.report.result is None:
        raise TypeError(f"the experiment {result.request.kind!r} has no result in its Report")
    return result.report.result


SWEEP, TRADEOFF = "sweep", "tradeoff"
_RULES = {
    "suites": ExperimentRules("suite", suite_report, fixed=False),
    "builders": ExperimentRules(NOUN, builders.report, False, ("articles",), True),
    "sweeps": ExperimentRules("sweep", own_report),
    "runs": ExperimentRules("baselines", own_report),
    "batches": ExperimentRules("batch", own_report, fixed=False),
    "tradeoffs": ExperimentRules("trade-off", own_report),
    "improvements": ExperimentRules(
        "improvement", improvement_report, guarded=True, saves_chain=True
    ),
}
"""Place in the registry → the rules for its experiments."""
