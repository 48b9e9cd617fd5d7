"""Experiments as jobs: measure costs with a pilot, and report progress over all runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.core.events import Failed, Finished, Operation, Progress
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.forecast import Forecast, PilotCosts, as_json
from rallebench.core.runs import RunResult
from rallebench.core.types import Json
from rallebench.engine.headline import deciding_metric
from rallebench.experiments import SUITES
from rallebench.metrics import metric
from rallebench.services.experiments import Experiments, nouns_of_experiments
from rallebench.services.jobs import Job, JobManager
from rallebench.workspace.indexes.ensure import index_costs
from rallebench.workspace.paths import WorkspaceFolder

PILOT = "estimate"
"""Kind of the jobs that estimate an experiment's cost."""


@dataclass(frozen=True, slots=True)
class PartState:
    """A run within a running experiment. ``state``: done, failed, running; ``means``: metric → (mean so far, count)."""

    label: str
    state: str
    done: int = 0
    total: int | None = None
    message: str = ""
    run: str = ""
    means: dict[str, tuple[Any, int]] = field(default_factory=dict)


def estimate(
    experiments: Experiments,
    jobs: JobManager,
    request: ExperimentRequest[WorkspaceFolder],
    planned: Forecast,
) -> Job:
    """Run a job that asks a few questions of each planned run; its result is the ``Forecast`` with costs."""
    work = experiments.pilot(planned, request)
    identity = _pilot_identity(planned, request)
    return jobs.submit(PILOT, request.name, identity, lambda job: work, anew=True)


def _pilot_identity(planned: Forecast, request: ExperimentRequest[WorkspaceFolder]) -> str:
    repeats = max((run.repeat for run in planned.runs), default=1)
    return repr((request.kind, request.to_json(), repeats))


def pilot_costs(
    jobs: JobManager, request: ExperimentRequest[WorkspaceFolder], planned: Forecast
) -> PilotCosts | None:
    """Return the costs measured by the newest successful pilot of exactly this plan; None if there is none."""
    job = jobs.get(PILOT, request.name)
    if job is None or not isinstance(job.result, Forecast):
        return None
    return job.result.pilot if job.identity == _pilot_identity(planned, request) else None


def active(jobs: JobManager) -> list[Job]:
    """Running experiments, newest first."""
    return [job for job in reversed(_all(jobs)) if not job.done]


def ended_jobs(jobs: JobManager) -> list[Job]:
    """Experiments that finished since the program started, newest first."""
    return sorted((job for job in _all(jobs) if job.done), key=lambda job: -(job.ended or 0.0))


def newest(jobs: JobManager, name: str) -> Job | None:
    """Return the running or else most recently finished job of an experiment; None if there is none since the
    program started.
    """
    return next((job for job in (*active(jobs), *ended_jobs(jobs)) if job.name == name), None)


def _all(jobs: JobManager) -> list[Job]:
    nouns = nouns_of_experiments()
    return [job for job in jobs.list() if job.kind in nouns]


def parts(job: Job) -> list[PartState]:
    """The runs of an experiment that have started, in order."""
    states: dict[str, PartState] = {}
    for task, event in job.tasks.items():
        label, _, inner = task.partition("/")
        if label and inner and label in states and states[label].state == "running":
            states[label] = replace(
                states[label], message=f"{inner} {getattr(event, 'message', '')}"
            )
        elif label and not inner:
            states[label] = _part(label, event)
    return list(states.values())


def _part(label: str, event: Any) -> PartState:
    """Return the state of a run from its newest event."""
    if isinstance(event, Failed):
        return PartState(label, "failed", message=event.error)
    if isinstance(event, Finished) and isinstance(event.result, RunResult):
        result = event.result
        estimates = {**(result.report.metrics if result.report else {}), **result.means}
        means = {name: (mean.value, mean.n) for name, mean in estimates.items()}
        return PartState(label, "done", result.n, result.n, run=result.run, means=means)
    if isinstance(event, Finished):
        return PartState(label, "done", message=event.message)
    if isinstance(event, Progress):
        means = {name: (value[0], value[1]) for name, value in event.means.items()}
        return PartState(label, "running", event.done, event.total, event.message, means=means)
    return PartState(label, "running", message=getattr(event, "message", ""))


def headline(part: PartState) -> tuple[str, float, int] | None:
    """Return (metric, mean so far, count) of a run: the first metric that ranks a sweep, otherwise its first own
    metric. Times and token counts are excluded.
    """
    known = {n: mean for n, mean in part.means.items() if mean[0] is not None and not is_cost(n)}
    name = deciding_metric(known) or next(iter(known), "")
    return (name, *known[name]) if name else None


def is_cost(name: str) -> bool:
    """Return whether a metric measures cost rather than quality."""
    with suppress(RalleError):  # a benchmark's own metric
        return bool(metric(name).traits.get("reads") == "cost")
    return False


# plans


def plan_json(plan: Forecast, *, probe: bool = False) -> Json:
    """Return a plan as JSON, with the costs that ``probe`` measured."""
    return as_json(plan, "suite" if plan.kind in SUITES else "experiment", probe=probe)


def plan_with_costs(
    experiments: Experiments,
    request: ExperimentRequest[WorkspaceFolder],
    *,
    questions: int,
    batch_size: int,
    repeats: int = 1,
) -> Operation[Forecast]:
    """Plan an experiment and measure its costs with a pilot of ``questions`` per run (0: no pilot). ``repeats``: of each
    question."""
    plan = experiments.plan(request, repeats)
    if not questions:
        return plan
    if plan.builds:
        costs = yield from index_costs(request.workspace, plan.builds)
        plan = replace(plan, index_costs=costs.sentence)
    return (yield from experiments.pilot(plan, request, questions=questions, batch_size=batch_size))
