"""Estimate the cost of an experiment: answer a few questions of every run, and scale their cost to all questions.

The replies stay in the reply cache, so the experiment does not request them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from rallebench.core.backends import Backends
from rallebench.core.errors import BackendError, RalleError, StoppedError, UsageError
from rallebench.core.events import Operation, Progress, under
from rallebench.core.experiments import (
    PILOT_QUESTIONS,
    Experiment,
    ExperimentRequest,
    IndexRequest,
    IndexResult,
    MeasureRequest,
    RowsRequest,
    W,
    WorkRequest,
)
from rallebench.core.forecast import QUANTITIES, Forecast, PilotSample
from rallebench.core.runs import RunRequest, RunResult
from rallebench.core.scoring import Judgements
from rallebench.core.types import Episode, Generate, Retrieve, Step
from rallebench.engine import loop
from rallebench.engine.cost import llm_prices, total
from rallebench.engine.driver import WorkReply, drive
from rallebench.engine.judging import pass_request
from rallebench.engine.ports import WorkContext
from rallebench.engine.score import own_scores

MOST_SECONDS = 300.0
"""Seconds after which no further run begins. The cost of the remaining runs is estimated from similar ones."""

T = TypeVar("T")


class NoneAnswered(BackendError):
    """All questions of a run failed; ``failures``: the reasons."""

    def __init__(self, label: str, failures: Sequence[str]) -> None:
        super().__init__(
            f"All {len(failures)} questions that the probe asked of {label!r} failed: {failures[0]}"
        )
        self.failures = failures


class _Enough(Exception):
    """The plan has no more runs, the time is up, or an index must be built first."""


@dataclass
class Pilot:
    """The player that answers ``questions`` evenly spaced questions of each run, and stores only replies."""

    plan: Forecast
    context: WorkContext
    questions: int
    batch_size: int
    deadline: float

    def __post_init__(self) -> None:
        self.samples: list[PilotSample | None] = []
        self.failure: RalleError | None = None

    def play(self, step: WorkRequest) -> Operation[WorkReply]:
        """Answer a few questions of a run; see Player. The pilot ends at a request for rows or for a missing index."""
        if isinstance(step, RowsRequest):
            raise _Enough  # a pilot writes no file
        if not isinstance(step, (RunRequest, IndexRequest)):
            return () if isinstance(step, MeasureRequest) else None
        if isinstance(step, IndexRequest):
            name, built = self.context.foresee(step.recipe)
            if not built:
                raise _Enough  # a pilot builds no index
            return IndexResult(name)
        if len(self.samples) >= self.plan.count or time.monotonic() >= self.deadline:
            raise _Enough
        try:
            return (yield from self._run(step))
        except StoppedError:
            raise
        except RalleError as error:
            failures = error.failures if isinstance(error, NoneAnswered) else ()
            reason = next(iter(failures), str(error))
            self.samples.append(PilotSample(len(failures), len(failures), (), reason))
            self.failure = error
            raise

    def _run(self, request: RunRequest) -> Operation[RunResult]:
        backends, good, failures = yield from self._answers(request, request.label)
        n, steps = len(good) + len(failures), {qid: episode.steps for qid, episode in good.items()}
        judgements = {}
        for judge in request.judges:
            inner = pass_request(request, judge, good)
            loaded, judged, errors = yield from self._answers(
                inner, f"{request.label}/{judge.name}"
            )
            backends = replace(backends, llms={**backends.llms, **loaded.llms})
            judgements[judge.name] = judged
            failures += errors
            lost = {question.qid for question in inner.questions} - judged.keys()
            steps = {
                qid: (*of_question, *(judged[qid].steps if qid in judged else ()))
                for qid, of_question in steps.items()
                if qid not in lost
            }
        self.samples.append(_sample(backends, n, steps, failures))
        return _result(request, good, n, judgements)

    def _answers(
        self, request: RunRequest, task: str
    ) -> Operation[tuple[Backends, dict[str, Episode], list[str]]]:
        """(the backends of a run, the episodes of a few questions, the reasons why others failed). Raises NoneAnswered."""
        loaded = yield from under(task, self.context.load(request))
        backends, make_flow = request.flow.open(loaded)
        chosen = spread(request.examples, self.questions)
        episodes: dict[str, Episode] = {}
        yield Progress(task, 0, len(chosen))
        try:
            for episode in loop.run(
                make_flow,
                [example.question for example in chosen],
                backends,
                workflow=request.flow.workflow,
                reply_cache=self.context.reply_cache(),
                batch_size=min(self.batch_size, max(len(chosen), 1)),
                stop=lambda: bool(episodes) and time.monotonic() > self.deadline,
            ):
                episodes[episode.qid] = episode
                yield Progress(task, len(episodes), len(chosen))
        finally:
            request.flow.disconnect()
        good = {qid: episode for qid, episode in episodes.items() if not episode.error}
        failures = [episode.error for episode in episodes.values() if episode.error]
        if failures and not good:
            raise NoneAnswered(task, failures)
        return backends, good, failures


def pilot(
    plan: Forecast,
    request: ExperimentRequest[W],
    experiment: Callable[[ExperimentRequest[W]], Experiment],
    context: WorkContext,
    *,
    questions: int = PILOT_QUESTIONS,
    batch_size: int = 20,
    seconds: float = MOST_SECONDS,
) -> Operation[Forecast]:
    """Answer ``questions`` evenly spaced questions of each run of a plan; return the plan with their costs.

    A run that needs earlier answers uses the pilot's. Raises RalleError for a request that cannot be made, and
    BackendError if all questions of a run fail.
    """
    if questions < 1:
        raise UsageError(
            f"The probe is to ask {questions} questions a part; it must ask at least 1."
        )
    player = Pilot(plan, context, questions, batch_size, time.monotonic() + seconds)
    try:
        yield from drive(experiment(request), player)
    except _Enough:
        pass
    except StoppedError:
        raise
    except Exception as error:  # an experiment may fail on so few answers
        if error is player.failure or not player.samples:
            raise
    left = iter(player.samples)
    samples: list[PilotSample | None] = []
    for run in plan.runs:  # a repeat costs as much as its run
        samples.append(samples[-1] if run.repeat > 1 else next(left, None))
    return plan.measure(samples)


def _sample(
    backends: Backends, n: int, steps: Mapping[str, Sequence[Step]], failures: Sequence[str]
) -> PilotSample:
    """The cost of the answers to ``n`` questions, judgements included. ``steps``: of the questions that did not fail."""
    prices = llm_prices(backends.llms)
    spent = [total(of_question, prices) for of_question in steps.values()]
    unpriced = {name: why for row in spent for name, why in row.usd_unknown_for.items()}
    reason = ", ".join(f"{name} ({why})" for name, why in unpriced.items())
    rows = tuple(
        {
            **{name: getattr(row, name) for name in QUANTITIES},
            "seconds": sum(_held_seconds(step, backends) for step in of_question),
        }
        for row, of_question in zip(spent, steps.values())
    )
    return PilotSample(n, n - len(rows), rows, failures[0] if failures else reason)


def _result(
    request: RunRequest, good: Mapping[str, Episode], n: int, judgements: Judgements
) -> RunResult:
    ordered = {q.qid: good[q.qid] for q in request.questions if q.qid in good}
    own = own_scores(request.scorers, request.examples, ordered, judgements)
    means = own.means if ordered else {}
    return RunResult(
        request,
        "",
        ordered,
        own.values,
        means,
        n,
        n - len(good),
        judgements=judgements,
        columns=own.columns,
    )


def spread(items: Sequence[T], count: int) -> list[T]:
    """At most ``count`` of the items, evenly spaced: the first ones are often alike.

    >>> spread("abcdefghi", 3), spread("ab", 3)
    (['b', 'e', 'h'], ['a', 'b'])
    """
    if len(items) <= count:
        return list(items)
    return [items[int((i + 0.5) * len(items) / count)] for i in range(count)]


def _held_seconds(step: Step, backends: Backends) -> float:
    """Seconds, divided by the number of requests that a backend answers at a time."""
    if not isinstance(step.request, (Generate, Retrieve)):
        return step.seconds
    return step.seconds / max(1, int(getattr(backends.of(step.request), "concurrency", 1)))
