"""A run request → a scored run: load, ask, judge, score, write RaLLe's files, track.

Only this module assembles ``run.json``, also for runs with answers from elsewhere.
"""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rallebench import __version__
from rallebench.chains.ralle import experiment_to_json
from rallebench.core.backends import NOTHING_LOADED, Backends
from rallebench.core.errors import RalleError, StoppedError
from rallebench.core.events import Finished, Operation, Progress, Warned, under, warning_events
from rallebench.core.memory import Memory, peak_bytes
from rallebench.core.repeats import ONCE, RepeatOptions
from rallebench.core.report import JudgeReport, RunReport
from rallebench.core.runs import DEFAULT_OPTIONS, FlowFactory, RunOptions, RunRequest, RunResult
from rallebench.core.scoring import Judgements, Pair, Scorer
from rallebench.core.spending_limit import SpendingLimit
from rallebench.core.types import Episode
from rallebench.core.versions import RECORDED, versions
from rallebench.engine.answer import answer
from rallebench.engine.cost import llm_prices
from rallebench.engine.headline import coverage_sentence
from rallebench.engine.judging import (
    InnerContext,
    failure_reason,
    failure_sentence,
    pass_request,
    summarise,
    unscored_judges,
    unscored_sentence,
)
from rallebench.engine.ports import RunContext
from rallebench.engine.ralle_files import write_ralle_files
from rallebench.engine.repeats import play_repeats, requested_repeats
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.run_files import RunDescription, RunState
from rallebench.engine.run_warnings import (
    ReplyCounts,
    judgements,
    lost_tools,
    refused_to,
    text_choices,
    unread,
)
from rallebench.engine.score import score_pairs, score_run
from rallebench.engine.store import JUDGES, REPEATS, Answers, RunFolder
from rallebench.engine.stored_runs import (
    is_complete,
    make_result,
    stored_request,
    with_stored_judges,
)
from rallebench.metrics.scorers import metric_scorers

HEADLINE = ("accuracy", "em", "f1", "has_answer", "Rprec", "recall@5")
"""Metrics with means that are shown during a run."""
SINGLY = RunOptions(batch_size=1)
"""The options of answers from elsewhere."""


def execute(
    request: RunRequest,
    context: RunContext,
    options: RunOptions = DEFAULT_OPTIONS,
    on_open: Callable[[RunFolder], None] = lambda run: None,
) -> Operation[RunResult]:
    """Perform a run. Raises RalleError; finished answers are kept, and a failed or stopped run is scored as far as it got.

    A complete run is not repeated, and not logged again if it belongs to an experiment. ``on_open``: called once the run
    has its folder.
    """
    task = request.label
    warnings = list(context.coverage(request, None))
    yield from warning_events(task, warnings)
    loaded = yield from under(task, context.load(request))
    backends, make_flow = request.flow.open(loaded)
    memory = context.memory(request.flow.names)
    described = describe_run(request, backends, options, memory)
    run = _open_folder(request, context.runs, described, options)
    cache = context.reply_cache()
    with run.lock():
        try:
            run.forget_stop()
            on_open(run)
            stored = run.answers() if options.resume else None
            reused = stored is not None and is_complete(run, request)
            warnings += yield from _answers(
                run, request, backends, make_flow, cache, context, options, stored, reused
            )
            options = replace(options, repeats=requested_repeats(run, options.repeats))
            inside = InnerContext(context, run.path / REPEATS)
            again = replace(options, resume=True, track=False, repeats=ONCE)
            warnings += yield from play_repeats(
                run, request, backends, options.repeats, lambda r: execute(r, inside, again)
            )
            report, of_scoring = yield from _score(
                run, request, context, options, stored if reused else None
            )
            warnings += of_scoring
            stopped = not report.complete
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
    result = make_result(request, run, report, memory)
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
    """Ask the open questions, unless the run is ``reused``; returns warnings. ``stored``: the earlier answers."""
    before = [*context.coverage(request, backends)]
    if not reused:
        before += lost_tools(request.flow, backends)
    if cache is not None and cache.warning:
        before.append(cache.warning)
    yield from warning_events(request.label, before)
    counts = ReplyCounts()
    for episode in stored.episodes.values() if stored else ():
        if not episode.error:
            counts.count(episode)
    yield Progress(request.label, 0, len(request.examples), "running")
    after: list[str] = []
    if not reused:
        earlier = judgements(request.flow.names, backends)
        try:
            yield from answer(
                run,
                make_flow,
                request.questions,
                backends,
                task=request.label,
                workflow=request.flow.workflow,
                reply_cache=cache,
                batch_size=options.batch_size,
                max_errors=options.max_errors,
                budget=options.budget,
                observe=_observer(request, counts),
            )
        finally:
            request.flow.disconnect()
        after += unread(earlier, judgements(request.flow.names, backends))
        after += refused_to(request.flow.names, backends)
        after += text_choices(request.flow.names, backends)
    after += counts.sentences()
    yield from warning_events(request.label, after)
    return before + after


def _score(
    run: RunFolder,
    request: RunRequest,
    context: RunContext,
    options: RunOptions,
    answers: Answers | None = None,
) -> Operation[tuple[RunReport, tuple[str, ...]]]:
    """Judge and score the answers; returns the report and warnings. ``answers``: the folder's, if already read."""
    judgements, judges, failed, warnings = yield from _judge(run, request, context, options)
    yield Progress(request.label, message="scoring")
    request, judges, lost = with_stored_judges(run, request, judges)
    report = finish(run, request, judgements, judges, answers, options.repeats)
    if failed:
        report = replace(report, failed_judges={**report.failed_judges, **failed})
        run.write_report(report)
    return report, (*warnings, *lost)


def _judge(
    run: RunFolder, request: RunRequest, context: RunContext, options: RunOptions
) -> Operation[tuple[Judgements, tuple[JudgeReport, ...], Mapping[str, str], tuple[str, ...]]]:
    """Play the pass of each judge as a run inside the run. Returns judgements, reports of the passes, judge → the
    reason of those that failed, and warnings.

    Only missing judgements are requested. A judge that fails as a whole gives no scores, with a warning. Raises
    StoppedError.
    """
    judgements: dict[str, Mapping[str, Episode]] = {}
    passes: list[JudgeReport] = []
    failed: dict[str, str] = {}
    warnings: list[str] = []
    every = run.episodes() if request.judges else {}
    episodes = {qid: episode for qid, episode in every.items() if not episode.error}
    again = replace(options, resume=True, track=False, max_errors=None)
    for judge in request.judges:
        try:
            result = yield from play_judge(run, request, judge, episodes, context, again)
        except StoppedError:
            raise
        except RalleError as error:
            failed[judge.name] = failure_reason(run, error)
            warnings.append(failure_sentence(judge.name, failed[judge.name]))
            yield Warned(request.label, warnings[-1])
            continue
        warnings += [f"Of the judge {judge.name!r}: {sentence}" for sentence in result.warnings]
        judgements[judge.name] = result.episodes
        passes.append(summarise(result, judge))
        warnings += filter(None, [unscored_sentence(passes[-1]), coverage_sentence(passes[-1])])
    return judgements, tuple(passes), failed, tuple(warnings)


def play_judge(
    run: RunFolder,
    request: RunRequest,
    judge: Scorer,
    episodes: Mapping[str, Episode],
    context: RunContext,
    options: RunOptions,
) -> Operation[RunResult]:
    """Play the pass of a judge over answers, as a run inside the run. Raises StoppedError if it was stopped."""
    inner = pass_request(request, judge, episodes)
    task = f"{request.label}/{judge.name}".strip("/")
    inside = InnerContext(context, run.path / JUDGES)
    result = yield from under(task, execute(inner, inside, options))
    if result.stopped:
        raise StoppedError(
            f"Stopped while {judge.name!r} judged the answers of {run.name!r}; resume the run to continue."
        )
    return result


def rescore(
    run: RunFolder,
    metrics: tuple[str, ...],
    judges: tuple[Scorer, ...],
    context: RunContext,
    budget: SpendingLimit | None = None,
) -> Operation[RunResult]:
    """Score a stored run and its repeats by ``metrics`` and ``judges``. Its answers are not requested again, and its own columns stay.

    ``budget``: the spending limit of the judges. Raises StoppedError when it is spent; finished judgements are kept. The result's
    ``failure`` names judges without any score.
    """
    for number, repeat in enumerate(run.repeats(), 2):
        inner = InnerContext(context, run.path / REPEATS)
        yield from under(f"repeat {number}", rescore(repeat, metrics, judges, inner, budget))
    request = stored_request(run)
    request = replace(request, metrics=metrics, scorers=(*request.scorers, *judges))
    with run.lock():
        options = replace(DEFAULT_OPTIONS, budget=budget)
        report, warnings = yield from _score(run, request, context, options)
        state = run.state()
        messages = filter(None, [*warnings, state.message])
        run.set_state(replace(state, message=" ".join(messages)))
    result = make_result(request, run, report)
    result = replace(result, warnings=warnings, failure=unscored_judges(judges, report))
    yield Finished("", run.name, False, result)
    return result


def _open_folder(
    request: RunRequest, runs: Path, described: RunDescription, options: RunOptions
) -> RunFolder:
    """The folder of a new run, or with ``resume`` of the run of that name if it has the same settings."""
    if options.resume and (runs / request.name).exists():
        run = RunFolder.open(runs, request.name)
        run.check_same(described)
        run.grow([dict(example.record) for example in request.examples])
        return run
    return RunFolder.create(runs, described, (dict(e.record) for e in request.examples))


def _observer(
    request: RunRequest, counts: ReplyCounts
) -> Callable[[Episode], dict[str, float | None]]:
    """The values of a few metrics of an episode, for the state of an active run; also counts its replies."""
    scorers = metric_scorers([name for name in HEADLINE if name in request.metrics])
    examples = {example.question.qid: example for example in request.examples}

    def values(episode: Episode) -> dict[str, float | None]:
        counts.count(episode)
        series = score_pairs(scorers, [Pair(examples[episode.qid], episode)])
        return {name: column.values[0] for name, column in series.items()}

    return values


def _end_early(run: RunFolder, request: RunRequest, state: str, message: str) -> None:
    """Score the answers of an interrupted run."""
    report = RunReport(n=len(request.examples))
    with contextlib.suppress(RalleError):
        thresholds = run.description().repeats.thresholds
        report = finish(run, request, repeats=RepeatOptions(thresholds=thresholds))
    end(run, report, state, message)


def describe_run(
    request: RunRequest,
    backends: Backends = NOTHING_LOADED,
    options: RunOptions = SINGLY,
    memory: Mapping[str, Memory | None] | None = None,
) -> RunDescription:
    """Describe a run for ``run.json``. Its fingerprint changes with everything that may change an episode.

    The fingerprint covers no prices, no number of repeats, and no retrievers that ask language models themselves: they only change costs.
    """
    llms = {name: backends.llms[name] for name in request.flow.llms if name in backends.llms}
    retrievers = {
        name: backends.retrievers[name]
        for name in request.flow.retrievers
        if name in backends.retrievers
    }
    fingerprints = {f"retriever {n}": r.fingerprint for n, r in retrievers.items()}
    fingerprints |= {f"llm {n}": m.fingerprint for n, m in llms.items()}
    spec = request.spec(fingerprints)
    installed = {"rallebench": __version__, "python": platform.python_version()}
    return RunDescription(
        request.name,
        spec,
        spec.fingerprint(),
        (*request.metrics, *(judge.name for judge in request.judges)),
        options.batch_size,
        time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        request.dataset.file,
        llm_prices(llms),
        tuple(name for name, r in retrievers.items() if hasattr(r, "unread")),
        memory,
        {**installed, **versions(*RECORDED)},
        platform.platform(),
        repeats=options.repeats,
    )


def write_run(
    runs: Path,
    request: RunRequest,
    episodes: Iterable[Episode],
    backends: Backends = NOTHING_LOADED,
    *,
    session: str = "import",
    seconds: float = 0.0,
    message: str = "",
) -> RunFolder:
    """Write a scored run with answers from elsewhere: imported predictions, the log of another program, a live episode.

    ``seconds``: the duration of answering, 0 if unknown. Raises UsageError if a run of that name exists.
    """
    records = (dict(example.record) for example in request.examples)
    folder = RunFolder.create(runs, describe_run(request, backends), records)
    with folder.log() as log:
        for episode in episodes:
            folder.append(log, episode, session, seconds)
    report = finish(folder, request)
    end(folder, report, "done", message)
    return folder


def finish(
    folder: RunFolder,
    request: RunRequest,
    judgements: Judgements | None = None,
    judges: Sequence[JudgeReport] = (),
    answers: Answers | None = None,
    repeats: RepeatOptions = ONCE,
) -> RunReport:
    """Score all stored answers of a run and write RaLLe's files; returns the report.

    ``judges``: their passes, for the report; ``answers``: the folder's, if already read. ``repeats``: as requested.
    """
    answers = answers or folder.answers()
    report = score_run(
        folder,
        request.metrics,
        request.scorers,
        request.examples,
        judgements,
        judges,
        answers,
        repeats,
    )
    chain = request.flow.chain
    config = None
    if chain is not None:
        stored = folder.description()
        questions = -1 if stored.spec.limit is None else len(request.examples)
        config = experiment_to_json(chain, stored.dataset, questions, stored.batch_size)
    write_ralle_files(folder.path, folder.records(), answers.episodes, report, chain, config)
    return report


def end(folder: RunFolder, report: RunReport, state: str, message: str) -> None:
    """Write the final state of a run."""
    folder.set_state(
        RunState(
            state,
            report.n_done,
            report.n,
            report.n_errors,
            report.seconds,
            message,
            peak_memory=peak_bytes(),
        )
    )
