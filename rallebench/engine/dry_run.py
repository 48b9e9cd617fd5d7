"""The dry run of an experiment: which runs come and what their flows ask, found with fake replies.

Runs that are complete are played with what they hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from rallebench.core.errors import RalleError
from rallebench.core.events import Operation, complete
from rallebench.core.experiments import (
    Experiment,
    ExperimentRequest,
    IndexRequest,
    IndexResult,
    MeasureRequest,
    RowsRequest,
    WorkRequest,
)
from rallebench.core.runs import Backends, RunRequest, RunResult, records_sha256
from rallebench.core.types import (
    Episode,
    Flow,
    Generate,
    Hit,
    Note,
    Outcome,
    Passage,
    Question,
    Reply,
    Request,
    Retrieve,
    Step,
)
from rallebench.engine.driver import drive, run_of
from rallebench.engine.execute import RunContext
from rallebench.engine.judging import pass_request, with_columns
from rallebench.engine.rowfile import RowFile
from rallebench.engine.statistics import Mean
from rallebench.engine.store import JUDGES, RunFolder
from rallebench.engine.stored_runs import request_spec, spec_of, stored_result

MOST_RUNS = 500
MOST_REQUESTS = 64
"""A flow that asks more often than this of fake replies would go on for as long as it is answered so."""


class PlanContext(RunContext, Protocol):
    """What a plan needs of the product around it."""

    def foresee(self, recipe: Any) -> tuple[str, bool]:
        """(the name of an index of this recipe, '' where it is not known yet; whether it is built)."""


@dataclass(frozen=True, slots=True)
class FakeReplies:
    """``reply`` makes every reply, ``value`` is the value of every metric."""

    reply: Callable[[Request], Reply]
    value: float


@dataclass(frozen=True, slots=True)
class Range:
    """A count from ``low`` to ``high``; ``high`` None: it depends on the answers."""

    low: int
    high: int | None

    def __add__(self, other: Range) -> Range:
        known = self.high is not None and other.high is not None
        return Range(self.low + other.low, self.high + other.high if known else None)  # type: ignore[operator]

    def either(self, other: Range) -> Range:
        """The range that covers both."""
        known = self.high is not None and other.high is not None
        return Range(
            min(self.low, other.low),
            max(self.high, other.high) if known else None,  # type: ignore[type-var]
        )


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """``remaining``: the questions that are not answered or not judged yet, and the requests for them."""

    remaining: int
    generations: Range
    retrievals: Range

    def joined(self, judging: RequestCounts) -> RequestCounts:
        """These counts with those of a judge of the same answers."""
        return RequestCounts(
            max(self.remaining, judging.remaining),
            self.generations + judging.generations,
            self.retrievals + judging.retrievals,
        )


@dataclass(frozen=True, slots=True)
class DryRun:
    """A run and what its flows and its judges asked. ``mark`` tells its questions from those of a dry run with other replies."""

    request: RunRequest
    run: str
    counts: RequestCounts
    mark: str


@dataclass(slots=True)
class IndexNeeds:
    """The indexes of a recipe that runs search: ``built`` by name, and ``missing`` by label; ``measurements`` by
    label; ``rows``: file of rows → whether a model is asked for it."""

    built: dict[str, None] = field(default_factory=dict)
    missing: dict[str, Any] = field(default_factory=dict)
    measurements: dict[str, None] = field(default_factory=dict)
    rows: dict[str, bool] = field(default_factory=dict)


class Rehearser:
    """The player that answers with fake replies. ``runs``: those that came."""

    def __init__(
        self,
        request: ExperimentRequest,
        context: PlanContext,
        fake: FakeReplies,
        indexes: IndexNeeds,
    ) -> None:
        self._request, self._context, self._fake, self._indexes = request, context, fake, indexes
        self._real = True
        self.runs: list[DryRun] = []
        self.failure: RalleError | None = None

    def play(self, step: WorkRequest) -> Operation[Any]:
        """Answer one request of the experiment without asking anything."""
        yield from ()
        try:
            if isinstance(step, RunRequest):
                return self._run(step)
            if isinstance(step, MeasureRequest):
                self._indexes.measurements[step.label] = None
                return ()
            if isinstance(step, RowsRequest):
                return self._rows(step)
            return self._index(step) if isinstance(step, IndexRequest) else None
        except RalleError as error:
            self.failure = error
            raise

    def _rows(self, step: RowsRequest) -> RowFile:
        """The rows that are stored, none where there are none: what a source holds is not read."""
        self._indexes.rows[step.label] = bool(step.llms)
        rows = RowFile(self._request.folder / f"{step.label}.jsonl")
        rows.settle_all()
        return rows

    def _index(self, step: IndexRequest) -> IndexResult:
        name, built = self._context.foresee(step.recipe)
        missing = self._indexes.missing
        if built:
            self._indexes.built[name] = None
        else:
            same = (label for label, recipe in missing.items() if recipe == step.recipe)
            missing[name or next(same, step.label)] = step.recipe
        self._real = self._real and bool(name)
        return IndexResult(name or f"({step.label})")

    def _run(self, step: RunRequest) -> RunResult:
        """The run with its answers: those that are stored where it is complete, fake ones otherwise."""
        if len(self.runs) >= MOST_RUNS:
            raise _TooMany
        request = run_of(self._request, step)
        folder = RunFolder(self._context.runs / request.name)
        lines = self._lines(folder, request) if folder.path.exists() else {}
        episodes, counts = self._answers(request, lines)
        stored = stored_result(folder, request) if lines and not counts.remaining else None
        judgements = {}
        for judge in request.judges:
            answers = stored.episodes if stored else episodes
            inner = pass_request(request, judge, answers)
            path = RunFolder(folder.path / JUDGES / inner.name)
            judgements[judge.name], more = self._answers(
                inner, path.lines() if path.path.exists() else {}
            )
            counts = counts.joined(more)
        mark = (
            f"{records_sha256(request.examples)} {json.dumps(request.flow.settings, default=str)}"
        )
        self.runs.append(DryRun(request, request.name, counts, mark))
        request = with_columns(request, judgements)
        judged = stored_result(folder, request) if stored and not counts.remaining else None
        self._real = self._real and judged is not None
        simulated = _simulated(request, episodes, self._fake.value)
        return judged or replace(simulated, judgements=judgements)

    def _answers(
        self, request: RunRequest, lines: Mapping[str, Mapping[str, Any]]
    ) -> tuple[dict[str, Episode], RequestCounts]:
        """(fake answers to all questions, what is left of them where ``lines`` are stored)."""
        counts = RequestCounts(0, Range(0, 0), Range(0, 0))
        make_flow = request.flow.make(Backends())
        episodes = {}
        for question in request.questions:
            episode, requests, ended = _answer(
                make_flow(question), question, request.flow.workflow, self._fake.reply
            )
            if episode is not None:
                episodes[question.qid] = episode
            if question.qid not in lines or lines[question.qid].get("error"):
                counts = RequestCounts(
                    counts.remaining + 1,
                    counts.generations + _count(requests, Generate, ended),
                    counts.retrievals + _count(requests, Retrieve, ended),
                )
        return episodes, counts

    def _lines(self, folder: RunFolder, request: RunRequest) -> dict[str, dict[str, Any]]:
        """The answers of the run of that name; MismatchError if it was made with other settings, unless fake answers of an
        earlier run decided on ``request``."""
        theirs, ours = request_spec(folder), spec_of(request)
        if ours == theirs:
            return folder.lines()
        if self._real:
            raise folder.mismatch(theirs, ours)
        return {}


class _TooMany(Exception):
    """More runs than a plan lists."""


def dry_run(
    request: ExperimentRequest,
    experiment: Callable[[ExperimentRequest], Experiment],
    context: PlanContext,
    fake: FakeReplies,
    indexes: IndexNeeds,
) -> tuple[list[DryRun], bool]:
    """(the runs that came, whether the experiment came to its end). Raises RalleError for a wrong request."""
    player = Rehearser(request, context, fake, indexes)
    try:
        complete(drive(experiment(request), player))
    except Exception as error:
        begun = player.runs or indexes.built or indexes.missing or indexes.rows
        if error is player.failure or not begun:
            raise
        return player.runs, False  # the answers were fake: an experiment may make nothing of them
    return player.runs, True


def _simulated(request: RunRequest, episodes: Mapping[str, Episode], value: float) -> RunResult:
    """The run as if every answer were worth ``value``."""
    columns = request.rates.columns
    values = {metric: dict.fromkeys(episodes, value) for metric in columns}
    mean = Mean(value, value, value, len(episodes)) if episodes else Mean(None, None, None, 0)
    n = len(request.examples)
    return RunResult(
        request,
        request.name,
        episodes,
        values,
        dict.fromkeys(columns, mean),
        n,
        n - len(episodes),
        simulated=True,
    )


def _count(requests: list[Request], kind: type, ended: bool) -> Range:
    count = sum(isinstance(request, kind) for request in requests)
    return Range(count, count if ended else None)


def _answer(
    flow: Flow, question: Question, workflow: str, reply_to: Callable[[Request], Reply]
) -> tuple[Episode | None, list[Request], bool]:
    """(the episode that fake replies make, the requests, whether the flow came to its end)."""
    steps: list[Step] = []
    episode, ended = None, False
    try:
        request = next(flow)
        while len(steps) < MOST_REQUESTS:
            reply = request.reply() if isinstance(request, Note) else reply_to(request)
            steps.append(Step(request, reply))
            request = flow.send(reply)
    except StopIteration as end:
        outcome = end.value if isinstance(end.value, Outcome) else None
        episode, ended = Episode(question.qid, workflow, tuple(steps), outcome), True
    except Exception:  # it could make nothing of a fake reply
        pass
    finally:
        flow.close()
    return episode, [step.request for step in steps], ended


def _reply(text: str, request: Request) -> Reply:
    """A fake reply: ``text``, or up to 20 passages to a retrieval, none of them where ``text`` is empty."""
    if not text or not isinstance(request, Retrieve):
        return Reply(text)
    hits = tuple(
        Hit(Passage(f"{n}", "A passage.", f"Page {n}", f"{n}"), 1.0 / n)
        for n in range(1, min(request.k, 20) + 1)
    )
    return Reply("A passage.", hits)


FAKES = (
    FakeReplies(partial(_reply, ""), 0.0),
    FakeReplies(partial(_reply, "Yes. True. 1"), 1.0),
    FakeReplies(partial(_reply, "No. False. 0"), 0.5),
)
"""The experiment is played once with each."""
