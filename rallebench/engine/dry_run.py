"""The dry run of an experiment: its runs and their requests, with fake replies.

The experiment is played several times, each time with different replies. A run or a count that never changes does not
depend on the answers; the plan marks every other one. Complete runs use their stored answers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

from rallebench.core.backends import Backends
from rallebench.core.errors import RalleError
from rallebench.core.events import Operation, complete
from rallebench.core.experiments import (
    Experiment,
    ExperimentRequest,
    HasFolder,
    IndexRecipe,
    IndexRequest,
    IndexResult,
    MeasureRequest,
    Notice,
    RowsRequest,
    W,
    WorkRequest,
)
from rallebench.core.forecast import Forecast, PlannedRun, Range, flow_identity
from rallebench.core.report import Estimate
from rallebench.core.runs import RunRequest, RunResult, records_sha256
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
from rallebench.engine.driver import WorkReply, complete_run_request, drive
from rallebench.engine.judging import pass_request
from rallebench.engine.ports import WorkContext
from rallebench.engine.record import EpisodeHead
from rallebench.engine.rowfile import RowFile
from rallebench.engine.store import JUDGES, REPEATS, RunFolder
from rallebench.engine.stored_runs import requested_spec, stored_result, stored_spec

MOST_RUNS = 500
MOST_PLAYED = 300
"""The most questions of a run that are played. The requests of further questions differ in their text only."""
MOST_REQUESTS = 64
"""Requests after which a flow is ended: with fake replies it would never end by itself."""


class Needs(NamedTuple):
    """The indexes, measurements and rows that the dry runs of a plan need, and warnings for the user.

    ``built``: existing indexes that runs search, by name; ``missing``: recipes by label; ``measurements``: labels;
    ``rows``: file of rows → True if a model fills it; ``warnings``: also the experiment's own sentences.
    """

    built: dict[str, None]
    missing: dict[str, IndexRecipe]
    measurements: dict[str, None]
    rows: dict[str, bool]
    warnings: dict[str, None]


class DryRunner:
    """The player that answers with fake replies: ``text``, and ``value`` for every metric.

    ``runs``: the requested runs, each with a digest of its questions. The digest varies for questions made from fake
    answers. ``repeats``: how often each question is asked if a model samples.
    """

    def __init__(
        self,
        request: ExperimentRequest[HasFolder],
        context: WorkContext,
        text: str,
        value: float,
        needs: Needs,
        repeats: int = 1,
    ) -> None:
        self._repeats = repeats
        self._request, self._context, self._needs = request, context, needs
        self._text, self._value = text, value
        self._real = True
        self.runs: list[tuple[PlannedRun, str]] = []
        self.failure: RalleError | None = None

    def play(self, step: WorkRequest) -> Operation[WorkReply]:
        """Answer one request of the experiment without calling a backend."""
        yield from ()
        try:
            if isinstance(step, RunRequest):
                return self._run(step)
            if isinstance(step, MeasureRequest):
                self._needs.measurements[step.label] = None
                return ()
            if isinstance(step, RowsRequest):
                return self._rows(step)
            if isinstance(step, Notice):
                self._needs.warnings.update(dict.fromkeys(step.sentences))
            return self._index(step) if isinstance(step, IndexRequest) else None
        except RalleError as error:
            self.failure = error
            raise

    @property
    def begun(self) -> bool:
        """True if the experiment has requested a run, an index or rows so far."""
        return bool(self.runs or self._needs.built or self._needs.missing or self._needs.rows)

    def _rows(self, step: RowsRequest[Any]) -> RowFile:
        """The stored rows, if any; the source itself is not read."""
        self._needs.rows[step.label] = bool(step.llms)
        rows = RowFile(self._request.folder / f"{step.label}.jsonl")
        rows.settle_all()
        return rows

    def _index(self, step: IndexRequest) -> IndexResult:
        name, built = self._context.foresee(step.recipe)
        missing = self._needs.missing
        if built:
            self._needs.built[name] = None
        else:
            same = (label for label, recipe in missing.items() if recipe == step.recipe)
            missing[name or next(same, step.label)] = step.recipe
        self._real = self._real and bool(name)
        return IndexResult(name or f"({step.label})")

    def _run(self, step: RunRequest) -> RunResult:
        """The run with stored answers if it is complete, else with fake ones."""
        if len(self.runs) >= MOST_RUNS:
            raise _TooMany
        request = complete_run_request(self._request, step)
        folder = RunFolder(self._context.runs / request.name)
        lines = self._lines(folder, request) if folder.path.exists() else {}
        episodes, left, generations, retrievals = self._answers(request, lines)
        stored = stored_result(folder, request) if lines and not left else None
        calls = _Calls(left, generations, retrievals)
        judgements, calls = self._judge(
            request, folder, stored.episodes if stored else episodes, calls
        )
        left = calls.open
        mark = (
            f"{records_sha256(request.examples)} {json.dumps(request.flow.settings, default=str)}"
        )
        judging = (llm for judge in request.judges for llm in judge.llms)
        planned = PlannedRun(
            request.label,
            request.name,
            request.flow.workflow,
            request.dataset.name,
            len(request.examples),
            left,
            calls.generations,
            calls.retrievals,
            tuple(dict.fromkeys((*request.flow.llms, *judging))),
            request.flow.retrievers,
            flow=""
            if request.judges
            else flow_identity(request.flow.workflow, request.flow.settings),
        )
        self.runs.append((planned, f"{request.label} {mark}"))
        self._add_repeats(request, folder, episodes, planned, mark)
        for sentence in self._context.coverage(request, None):
            if sentence not in self._needs.warnings:  # else the experiment itself says so
                self._needs.warnings[f"{request.dataset.name}: {sentence}"] = None
        columns = {column.name for column in request.columns}
        if stored is not None and not left and columns <= stored.means.keys():
            return stored
        self._real = False
        return replace(_simulate(request, episodes, self._value), judgements=judgements)

    def _judge(
        self, request: RunRequest, folder: RunFolder, episodes: Mapping[str, Episode], calls: _Calls
    ) -> tuple[dict[str, dict[str, Episode]], _Calls]:
        """Return judge → its fake judgements, and ``calls`` with those of all judges. ``folder``: of the judged run."""
        judgements = {}
        for judge in request.judges:
            inner = pass_request(request, judge, episodes)
            path = RunFolder(folder.path / JUDGES / inner.name)
            judgements[judge.name], left, generations, retrievals = self._answers(
                inner, path.heads() if path.path.exists() else {}
            )
            calls = _Calls(
                max(calls.open, left),
                calls.generations + generations,
                calls.retrievals + retrievals,
            )
        return judgements, calls

    def _add_repeats(
        self,
        request: RunRequest,
        folder: RunFolder,
        episodes: Mapping[str, Episode],
        planned: PlannedRun,
        mark: str,
    ) -> None:
        """Add the repeats of a run, unless it is known that no model samples. If unknown, they may take no call."""
        sampling = self._samples(request, episodes) if self._repeats > 1 else False
        for number in range(2, self._repeats + 1) if sampling is not False else ():
            own = RunFolder(folder.path / REPEATS / str(number))
            lines = own.heads() if own.path.exists() else {}
            _, left, generations, retrievals = self._answers(request, lines)
            calls = _Calls(left, generations, retrievals)
            _, calls = self._judge(request, own, episodes, calls)
            least = None if sampling else Range(0, 0)
            label = f"{request.label}/repeat {number}".strip("/")
            repeat = replace(
                planned,
                label=label,
                open=calls.open,
                generations=calls.generations.either(least) if least else calls.generations,
                retrievals=calls.retrievals.either(least) if least else calls.retrievals,
                repeat=number,
            )
            self.runs.append((repeat, f"{label} {mark}"))

    def _samples(self, request: RunRequest, episodes: Mapping[str, Episode]) -> bool | None:
        """Return whether a model samples in a run; None if unknown before it is loaded, or without a complete fake episode."""
        temperatures = {
            step.request.llm if step.request.temperature is None else step.request.temperature
            for episode in [*episodes.values()][:MOST_PLAYED]
            for step in episode.steps
            if isinstance(step.request, Generate)
        }
        known = [self._context.temperature(t) if isinstance(t, str) else t for t in temperatures]
        if any(known):
            return True
        if None in known:
            return None
        return None if len(episodes) < len(request.examples) else False

    def _answers(
        self, request: RunRequest, lines: Mapping[str, EpisodeHead]
    ) -> tuple[dict[str, Episode], int, Range, Range]:
        """(fake answers to all questions; the questions without one of the stored ``lines``, their generations and
        retrievals)."""
        left, generations, retrievals = 0, Range(0, 0), Range(0, 0)
        make_flow = request.flow.make(Backends())
        played: list[tuple[Episode | None, Range, Range]] = []
        episodes = {}
        for number, question in enumerate(request.questions):
            if number < MOST_PLAYED:
                flow = make_flow(question)
                episode, requests, ended = _answer(
                    flow, question, request.flow.workflow, self._text
                )
                asks, searches = (_count(requests, kind, ended) for kind in (Generate, Retrieve))
                played.append((episode, asks, searches))
            episode, generates, retrieves = played[number % MOST_PLAYED]
            if episode is not None:
                episodes[question.qid] = replace(episode, qid=question.qid)
            if question.qid not in lines or lines[question.qid].error:
                left += 1
                generations += generates
                retrievals += retrieves
        return episodes, left, generations, retrievals

    def _lines(self, folder: RunFolder, request: RunRequest) -> dict[str, EpisodeHead]:
        """The answers of the run of that name. Raises MismatchError if it was made with other settings, unless ``request``
        depends on fake answers of an earlier run."""
        theirs, ours = stored_spec(folder), requested_spec(request)
        if ours == theirs:
            return folder.heads()
        if self._real:
            raise folder.mismatch(theirs, ours)
        return {}


class _Calls(NamedTuple):
    """The open questions of a run, with their model calls and searches."""

    open: int
    generations: Range
    retrievals: Range


class _TooMany(Exception):
    """More runs than a plan can list."""


def plan(
    request: ExperimentRequest[W],
    experiment: Callable[[ExperimentRequest[W]], Experiment],
    context: WorkContext,
    repeats: int = 1,
) -> Forecast:
    """Everything that ``perform`` would run, each question ``repeats`` times where a model samples. Loads nothing, writes nothing. Raises RalleError for a wrong request, and
    MismatchError if a run of that name has other settings."""
    needs = Needs({}, {}, {}, {}, {})
    dry_runs = [
        _dry_run(experiment(request), DryRunner(request, context, *fake, needs, repeats))
        for fake in FAKES
    ]
    most, least = (count(len(runs) for runs, _ in dry_runs) for count in (max, min))
    runs = tuple(
        _merge([played[i] if i < len(played) else None for played, _ in dry_runs])
        for i in range(most)
    )
    open_end = ""
    if not any(ended for played, ended in dry_runs if len(played) == most):
        last = runs[-1].label if runs else [*needs.built, *needs.rows, *needs.missing][-1]
        open_end = f"The work after {last!r} depends on its answers and can only be planned when they exist."
    elif least < most:
        open_end = f"How many runs there are depends on the answers; at least {least}."
    builds = tuple(needs.missing.values())
    return Forecast(
        request.kind,
        request.name,
        runs,
        open_end,
        len(needs.built) + len(builds),
        builds,
        tuple(needs.warnings),
        tuple(needs.measurements),
        tuple(needs.rows),
        tuple(label for label, asks in needs.rows.items() if asks),
    )


def _merge(dry_runs: Sequence[tuple[PlannedRun, str] | None]) -> PlannedRun:
    """Merge one run of every dry run; None for a dry run without it."""
    runs = [dry_run[0] for dry_run in dry_runs if dry_run is not None]
    same = len({dry_run[1] for dry_run in dry_runs if dry_run is not None}) == 1
    # by character, because such a label ends with a digest of fake answers.
    label = runs[0].label if same else os.path.commonprefix([run.label for run in runs]).rstrip()  # noqa: RUF071
    return replace(
        runs[0],
        label=label or runs[0].label,
        run=runs[0].run if same else "",
        questions=max(run.questions for run in runs),
        open=max(run.open for run in runs),
        generations=reduce(Range.either, (run.generations for run in runs)),
        retrievals=reduce(Range.either, (run.retrievals for run in runs)),
        depends=not same or len(runs) < len(dry_runs),
    )


def _dry_run(
    experiment: Experiment, player: DryRunner
) -> tuple[list[tuple[PlannedRun, str]], bool]:
    """(the runs so far, True if the experiment reached its end). Raises RalleError for a wrong request."""
    try:
        complete(drive(experiment, player))
    except Exception as error:
        if error is player.failure or not player.begun:
            raise
        return player.runs, False  # an experiment may fail on fake answers
    return player.runs, True


def _simulate(request: RunRequest, episodes: Mapping[str, Episode], value: float) -> RunResult:
    """The result of a run with ``value`` as every score."""
    names = [column.name for column in request.columns]
    values = {name: dict.fromkeys(episodes, value) for name in names}
    mean = (
        Estimate(value, value, value, len(episodes)) if episodes else Estimate(None, None, None, 0)
    )
    n = len(request.examples)
    return RunResult(
        request,
        request.name,
        episodes,
        values,
        dict.fromkeys(names, mean),
        n,
        n - len(episodes),
        simulated=True,
        columns=request.columns,
    )


def _count(requests: list[Request], kind: type, ended: bool) -> Range:
    count = sum(isinstance(request, kind) for request in requests)
    return Range(count, count if ended else None)


def _answer(
    flow: Flow, question: Question, workflow: str, text: str
) -> tuple[Episode | None, list[Request], bool]:
    """(the episode made of fake replies, the requests, True if the flow reached its end)."""
    steps: list[Step] = []
    episode, ended = None, False
    try:
        request = next(flow)
        while len(steps) < MOST_REQUESTS:
            reply = request.reply() if isinstance(request, Note) else _reply(text, request)
            steps.append(Step(request, reply))
            request = flow.send(reply)
    except StopIteration as end:
        outcome = end.value if isinstance(end.value, Outcome) else None
        episode, ended = Episode(question.qid, workflow, tuple(steps), outcome), True
    except Exception:  # failed on a fake reply
        pass
    finally:
        flow.close()
    return episode, [step.request for step in steps], ended


def _reply(text: str, request: Request) -> Reply:
    """A fake reply: ``text``, or up to 20 passages for a retrieval. An empty ``text`` gives no passages."""
    if not text or not isinstance(request, Retrieve):
        return Reply(text)
    hits = tuple(
        Hit(Passage(f"{n}", "A passage.", f"Page {n}", f"{n}"), 1.0 / n)
        for n in range(1, min(request.k, 20) + 1)
    )
    return Reply("A passage.", hits)


FAKES = (("", 0.0), ("Yes. True. 1", 1.0), ("No. False. 0", 0.5))
"""Text of all replies, value of all metrics: the experiment is played once with each pair."""
