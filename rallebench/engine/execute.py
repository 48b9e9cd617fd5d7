"""A run request → a scored run: load, ask, judge, score, write RaLLe's files, track."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from rallebench.core.errors import RalleError, StoppedError
from rallebench.core.events import Finished, Operation, Progress, under, warned
from rallebench.core.runs import (
    DEFAULT_OPTIONS,
    Backends,
    FlowFactory,
    Judge,
    RunOptions,
    RunRequest,
    RunResult,
)
from rallebench.core.types import Episode
from rallebench.engine.answer import answer
from rallebench.engine.judging import judged
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.run_file import end, finish, run_json
from rallebench.engine.run_warnings import ReplyCounts, judgements, lost_tools, unread
from rallebench.engine.score import score_episode
from rallebench.engine.store import Answers, RunFolder
from rallebench.engine.stored_runs import is_complete, result_of, stored_request, with_stored_judges

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

    A complete run asks nothing again; if it belongs to an experiment, it is not logged again either. ``on_open``: called
    once the run has its folder.
    """
    task = request.label
    warnings = list(context.coverage(request, None))
    yield from warned(task, warnings)
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
            stored = run.answers() if options.resume else None
            reused = stored is not None and is_complete(run, request)
            warnings += yield from _answers(
                run, request, backends, make_flow, cache, context, options, stored, reused
            )
            request, report, of_scoring = yield from _scored(
                run, request, context, options, stored if reused else None
            )
            warnings += of_scoring
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
    stored: Answers | None,
    reused: bool,
) -> Operation[list[str]]:
    """Ask what is not answered yet, unless the run is ``reused``; returns warnings. ``stored``: the answers before."""
    before = [*context.coverage(request, backends)]
    if not reused:
        before += lost_tools(request.flow, backends)
    if cache is not None and cache.warning:
        before.append(cache.warning)
    yield from warned(request.label, before)
    counts = ReplyCounts()
    for episode in stored.episodes.values() if stored else ():
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
    yield from warned(request.label, after)
    return before + after


def _scored(
    run: RunFolder,
    request: RunRequest,
    context: RunContext,
    options: RunOptions,
    answers: Answers | None = None,
) -> Operation[tuple[RunRequest, dict[str, Any], tuple[str, ...]]]:
    """(the request with the columns of its judges and of earlier ones, the report of what is answered, warnings).

    ``answers``: those of the folder, where they have been read.
    """
    request, judges, warnings = yield from judged(run, request, context, options)
    yield Progress(request.label, message="scoring")
    request, judges, lost = with_stored_judges(run, request, judges)
    return request, finish(run, request, judges, answers), (*warnings, *lost)


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
        request, report, warnings = yield from _scored(run, request, context, options)
        state = run.state()
        messages = [*warnings, *filter(None, [state.get("message")])]
        ended = {key: value for key, value in state.items() if key not in ("state", "pid")}
        run.set_state(state["state"], **{**ended, "message": " ".join(messages)})
    result = replace(result_of(request, run, report), warnings=warnings)
    yield Finished("", run.name, False, result)
    return result


def _opened(
    request: RunRequest, runs: Path, spec: Mapping[str, Any], options: RunOptions
) -> RunFolder:
    """The run's folder: a new one, or with ``resume`` the one of that name if it was made with the same settings."""
    if options.resume and (runs / request.name).exists():
        run = RunFolder.open(runs, request.name)
        run.check_same(spec)
        return run
    return RunFolder.create(runs, request.name, spec, (dict(e.record) for e in request.examples))


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
