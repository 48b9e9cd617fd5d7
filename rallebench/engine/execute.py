"""A run request → a scored run: load, ask, score, write RaLLe's files, track. The one way in which anything is run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from rallebench.core.errors import BadFileError, RalleError, StoppedError
from rallebench.core.events import Finished, Operation, Progress, Warned, under
from rallebench.core.runs import (
    DEFAULT_OPTIONS,
    Backends,
    DatasetRef,
    FlowFactory,
    Judge,
    Rates,
    RunOptions,
    RunRequest,
    RunResult,
    imported_flow,
)
from rallebench.core.types import Episode
from rallebench.engine.answer import answer
from rallebench.engine.judging import judged
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.run_file import end, finish, run_json
from rallebench.engine.run_warnings import ReplyCounts, judgements, lost_tools, unread
from rallebench.engine.score import examples_of, score_episode
from rallebench.engine.statistics import Mean
from rallebench.engine.store import JUDGES, RunFolder

HEADLINE = ("accuracy", "em", "f1", "has_answer", "Rprec", "recall@5")
"""The metrics whose means are shown while a run goes on."""


class RunContext(Protocol):
    """What ``execute`` needs of the product around it."""

    @property
    def runs(self) -> Path:
        """The folder of all runs."""

    def load(self, request: RunRequest) -> Operation[Backends]:
        """Load and hold what a run names."""

    def reply_cache(self) -> ReplyCache | None:
        """The cache of replies; opened only when all is loaded, so that a refused request writes nothing."""

    def memory(self, names: tuple[str, ...]) -> Mapping[str, Mapping[str, int] | None]:
        """Model or index, and what it is made of → bytes of ``ram`` and ``vram``; None where they are not known."""

    def coverage(self, request: RunRequest, backends: Backends | None) -> tuple[str, ...]:
        """One sentence per retriever that lacks gold pages. Without ``backends``: what can be told before the load; with
        them: what could not be told before."""

    def track(self, run: RunFolder) -> str:
        """Log a run; '' or one sentence on why that did not work."""


def execute(
    request: RunRequest,
    context: RunContext,
    options: RunOptions = DEFAULT_OPTIONS,
    on_open: Callable[[RunFolder], None] = lambda run: None,
) -> Operation[RunResult]:
    """Perform a run. Raises RalleError; what was answered is kept, and a run that failed or was stopped is scored as far as it
    got.

    A run that is complete already asks nothing; that of an experiment is then not tracked again either. ``on_open``: called
    once the run has its folder.
    """
    task = request.label
    warnings = list(context.coverage(request, None))
    for sentence in warnings:
        yield Warned(task, sentence)
    loaded = yield from under(task, context.load(request))
    backends, make_flow = request.flow.open(loaded)
    memory = context.memory(request.flow.names)
    spec = run_json(request, backends, batch_size=options.batch_size, memory=memory)
    run = _opened(request, context.runs, spec, options)
    cache = context.reply_cache()
    with run.locked():
        try:
            run.forget_stop()
            on_open(run)
            reused = options.resume and is_complete(run, request)
            warnings += yield from _answers(
                run, request, backends, make_flow, cache, context, options, reused
            )
            request, judges, judge_warnings = yield from judged(run, request, context, options)
            warnings += judge_warnings
            yield Progress(task, message="scoring")
            request, judges, lost = with_stored_judges(run, request, judges)
            warnings += lost
            report = finish(run, request, judges)
            stopped = not report["complete"]
            if options.track and not (reused and request.label):
                yield Progress(task, message="tracking")
                warnings += filter(None, [context.track(run)])
            end(run, report, "stopped" if stopped else "done", " ".join(warnings))
        except (KeyboardInterrupt, GeneratorExit, StoppedError) as stop:
            _end_early(run, request, "stopped", str(stop) or "Stopped by you.")
            raise
        except BaseException as error:
            _end_early(run, request, "failed", str(error) or type(error).__name__)
            raise
    result = result_of(request, run, report, memory)
    result = replace(result, warnings=tuple(warnings), stopped=stopped, reused=reused)
    if not stopped:
        yield Finished(task, result.run, reused, result)
    return result


def _answers(
    run: RunFolder,
    request: RunRequest,
    backends: Backends,
    make_flow: FlowFactory,
    cache: ReplyCache | None,
    context: RunContext,
    options: RunOptions,
    reused: bool,
) -> Operation[list[str]]:
    """Ask what is not answered yet, unless the run is ``reused``; returns what the user should know."""
    before = [*context.coverage(request, backends)]
    if not reused:
        before += lost_tools(request.flow, backends)
    if cache is not None and cache.warning:
        before.append(cache.warning)
    for sentence in before:
        yield Warned(request.label, sentence)
    counts = ReplyCounts()
    for episode in run.episodes().values() if options.resume else ():
        if not episode.error:
            counts.count(episode)
    yield Progress(request.label, 0, len(request.examples), "running")
    after: list[str] = []
    if not reused:
        earlier = judgements(request.flow.names, backends)
        yield from answer(
            run,
            make_flow,
            request.questions,
            backends,
            task=request.label,
            workflow=request.flow.workflow,
            memo=cache,
            batch_size=options.batch_size,
            max_errors=options.max_errors,
            observe=_observer(request, counts),
        )
        after += unread(earlier, judgements(request.flow.names, backends))
    after += counts.sentences()
    for sentence in after:
        yield Warned(request.label, sentence)
    return before + after


def rescore(
    run: RunFolder,
    metrics: tuple[str, ...],
    judges: tuple[Judge, ...],
    context: RunContext,
    options: RunOptions = DEFAULT_OPTIONS,
) -> Operation[RunResult]:
    """Score a stored run by ``metrics`` and ``judges``; its answers are not asked again, and its own columns stay."""
    request = replace(stored_request(run), metrics=metrics, judges=judges)
    with run.locked():
        request, judgements_of, warnings = yield from judged(run, request, context, options)
        yield Progress("", message="scoring")
        request, judgements_of, lost = with_stored_judges(run, request, judgements_of)
        warnings += lost
        report = finish(run, request, judgements_of)
        state = run.state()
        ended = {**state, "message": " ".join([*warnings, *filter(None, [state.get("message")])])}
        run.set_state(ended.pop("state"), **{k: v for k, v in ended.items() if k != "pid"})
    result = replace(result_of(request, run, report), warnings=warnings)
    yield Finished("", run.name, False, result)
    return result


def stored_request(run: RunFolder) -> RunRequest:
    """The request of a stored run as far as scoring needs it: its questions, and its own columns as they were scored."""
    spec = run.spec()
    rates = stored_rates(run, run.report() or {})
    inner = spec["spec"]
    return RunRequest(
        imported_flow(inner["workflow"], inner["settings"]),
        DatasetRef(inner["dataset"], spec.get("dataset_file", "")),
        examples_of(run),
        rates=rates,
        limit=inner["limit"],
        seed=inner["seed"],
        name=run.name,
    )


def stored_rates(
    run: RunFolder, report: Mapping[str, Any], only: Container[str] | None = None
) -> Rates:
    """A run's own columns, or ``only`` some of them, as they were scored."""
    definitions = report.get("definitions") or {}
    columns = {c: text for c, text in definitions.items() if only is None or c in only}
    values: dict[str, dict[str, float | None]] = {}
    for line in run.scores() if columns else ():
        if line["metric"] in columns:
            values.setdefault(line["qid"], {})[line["metric"]] = line["value"]
    ranges = report.get("ranges") or {}
    return Rates(
        columns,
        lambda example, episode: values.get(episode.qid, {}),
        {c: (ranges[c][0], ranges[c][1]) for c in columns if c in ranges},
    )


def with_stored_judges(
    run: RunFolder, request: RunRequest, judges: Mapping[str, Any]
) -> tuple[RunRequest, dict[str, Any], tuple[str, ...]]:
    """The request and the report's judges with those of an earlier scoring, and a warning if theirs are damaged.

    They are not asked again: their scores stay, but for columns that the request's own judges give, or failed to give.
    """
    own = {column for judge in request.judges for column in judge.columns}
    try:
        report = run.report() or {}
        earlier = {
            name: summary
            for name, summary in (report.get("judges") or {}).items()
            if name not in judges and own.isdisjoint(summary.get("columns", ()))
        }
        names = {c for of in earlier.values() for c in of.get("columns", ())}
        names -= request.rates.columns.keys()
        stored = stored_rates(run, report, names)
    except BadFileError as error:
        if not (run.path / JUDGES).exists():
            return request, dict(judges), ()
        lost = f"The earlier judges' scores are lost ({error}); score the run by its judges again."
        return request, dict(judges), (lost,)
    if names:
        request = replace(request, rates=request.rates.joined(stored))
    return request, {**earlier, **judges}, ()


def _opened(
    request: RunRequest, runs: Path, spec: Mapping[str, Any], options: RunOptions
) -> RunFolder:
    """The run's folder: a new one, or with ``resume`` the one of that name if it was made with the same settings."""
    if options.resume and (runs / request.name).exists():
        run = RunFolder.open(runs, request.name)
        run.check_same(spec)
        return run
    return RunFolder.create(runs, request.name, spec, (dict(e.record) for e in request.examples))


def is_complete(run: RunFolder, request: RunRequest) -> bool:
    """Whether a run has ended with an answer to each question of ``request``."""
    if run.state()["state"] != "done":
        return False
    lines = run.lines()
    return all(
        question.qid in lines and not lines[question.qid].get("error")
        for question in request.questions
    )


def result_of(
    request: RunRequest,
    run: RunFolder,
    report: Mapping[str, Any],
    memory: Mapping[str, Any] | None = None,
) -> RunResult:
    """A scored run as a result. The episodes are read when they are first needed.

    Raises LookupError or TypeError for a report that lacks the request's own metrics.
    """
    columns = request.rates.columns
    values: dict[str, dict[str, float | None]] = {name: {} for name in columns}
    if columns:
        failed = {qid for qid, line in run.lines().items() if line.get("error")}
        for score in run.scores():
            if score["metric"] in values and score["qid"] not in failed:
                values[score["metric"]][score["qid"]] = score["value"]
    means = {name: Mean(**mean) for name, mean in report["suite"].items()} if columns else {}
    return RunResult(
        request,
        run.name,
        StoredEpisodes(run, request),
        values,
        means,
        report["n"],
        report["n_errors"],
        report.get("seconds", 0.0),
        report,
        memory={
            name: size["ram"] + size["vram"]
            for name in request.flow.names
            if (size := (memory or {}).get(name)) is not None
        },
        judgements={
            name: StoredEpisodes(RunFolder(run.path / summary["run"]), request)
            for name, summary in (report.get("judges") or {}).items()
        },
    )


class StoredEpisodes(Mapping[str, Episode]):
    """The episodes of a run that did not fail, by question id, in the order asked; read at the first use."""

    def __init__(self, run: RunFolder, request: RunRequest) -> None:
        self._run, self._request = run, request
        self._episodes: dict[str, Episode] | None = None

    def _read(self) -> dict[str, Episode]:
        if self._episodes is None:
            stored = self._run.episodes()
            self._episodes = {
                question.qid: stored[question.qid]
                for question in self._request.questions
                if question.qid in stored and not stored[question.qid].error
            }
        return self._episodes

    def __getitem__(self, qid: str) -> Episode:
        return self._read()[qid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


def _observer(
    request: RunRequest, counts: ReplyCounts
) -> Callable[[Episode], dict[str, float | None]]:
    """The values of a few metrics of an episode, for the state of a run that goes on; its replies are counted."""
    names = [name for name in HEADLINE if name in request.metrics]
    examples = {example.question.qid: example for example in request.examples}

    def values(episode: Episode) -> dict[str, float | None]:
        counts.count(episode)
        scores = score_episode(episode, examples[episode.qid], names)
        return {score.metric: score.value for score in scores}

    return values


def _end_early(run: RunFolder, request: RunRequest, state: str, message: str) -> None:
    """Score what was answered, so that a run that broke off still has its numbers."""
    report: Mapping[str, Any] = {
        "n_done": 0,
        "n": len(request.examples),
        "n_errors": 0,
        "seconds": 0.0,
    }
    with contextlib.suppress(RalleError):
        report = finish(run, request)
    end(run, report, state, message)
