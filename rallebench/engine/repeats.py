"""Repeats of a run. Each repeat after the first is a run inside the run, so it is resumed, cached and read in the same way.

``runs/NAME/repeats/2/`` holds the same files as a run. The first repeat is the run itself, with its usual fingerprint and
keys of the reply cache. The scores of a run are the means over its repeats (``RunFolder.scores``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from rallebench.core.backends import Backends
from rallebench.core.errors import StoppedError
from rallebench.core.events import Operation, under
from rallebench.core.repeats import MetricRepeats, RepeatOptions, RepeatReport
from rallebench.core.runs import FlowFactory, RunRequest, RunResult
from rallebench.core.types import Episode, Flow, Generate, Outcome, Question, Reply
from rallebench.engine.perform import prepare_request
from rallebench.engine.repeat_statistics import metric_repeats
from rallebench.engine.reply_cache import default_seed, temperature
from rallebench.engine.store import RunFolder

Repeats = Sequence[Mapping[str, Mapping[str, "float | None"]]]
"""Of each repeat after the first: column → question id → score."""
SEED_STEP = 1_000_003
"""Distance between the seeds of two repeats: a flow may use the seeds that follow its own."""


def samples(episodes: Iterable[Episode], backends: Backends) -> bool:
    """Return whether a model samples in one of the episodes, so that a repeat may end in another way."""
    return any(
        isinstance(step.request, Generate)
        and temperature(step.request, backends.of(step.request)) > 0
        for episode in episodes
        for step in episode.steps
    )


def requested_repeats(run: RunFolder, options: RepeatOptions) -> RepeatOptions:
    """Return the repeats to play now: at least those that the run was begun with or has, none if it was stopped. The
    thresholds are those of its beginning, unless ``options`` have others.
    """
    begun = run.description().repeats
    number = max(options.number, begun.number, 1 + len(run.repeats()))
    if run.state().state == "stopped":
        number = 1
    return RepeatOptions(number, {**begun.thresholds, **options.thresholds})


def play_repeats(
    run: RunFolder,
    request: RunRequest,
    backends: Backends,
    options: RepeatOptions,
    play: Callable[[RunRequest], Operation[RunResult]],
) -> Operation[tuple[str, ...]]:
    """Play the repeats after the first as runs inside the run; returns warnings. ``play``: plays one.

    None are played if no model samples. Raises StoppedError.
    """
    if options.number == 1 or not samples(run.episodes().values(), backends):
        return ()
    warnings: list[str] = []
    for repeat in range(2, options.number + 1):
        task = f"{request.label}/repeat {repeat}".strip("/")
        result = yield from under(task, play(repeat_request(request, repeat)))
        if result.stopped:
            raise StoppedError(
                f"Stopped in repeat {repeat} of {run.name!r}; resume the run to continue."
            )
        warnings += [f"Of repeat {repeat}: {sentence}" for sentence in result.warnings]
    return tuple(warnings)


def repeat_request(request: RunRequest, number: int) -> RunRequest:
    """Return the request for a repeat, from 2 on. Its name is that of its folder below ``repeats/``."""

    def make(backends: Backends) -> FlowFactory:
        return _with_seeds(request.flow.make(backends), backends, number)

    settings = {**request.flow.settings, "repeat": number}
    flow = replace(request.flow, settings=settings, make=make)
    return replace(request, flow=flow, name=str(number), label="", on_result=None)


def _with_seeds(make_flow: FlowFactory, backends: Backends, number: int) -> FlowFactory:
    """Give the sampled requests of a repeat their own seeds, so that they are sampled anew and have their own keys in the
    reply cache. Sampled requests without a seed are sampled anew in any case; all others stay as they are."""

    def flow(question: Question) -> Flow:
        inner = make_flow(question)
        reply: Reply | None = None
        try:
            while True:
                request = inner.send(reply) if reply is not None else next(inner)
                request = prepare_request(request, backends)
                if isinstance(request, Generate):
                    request = _own_seed(request, backends, number)
                reply = yield request
        except StopIteration as ended:
            outcome: Outcome = ended.value
            return outcome
        finally:
            inner.close()

    return flow


def _own_seed(request: Generate, backends: Backends, number: int) -> Generate:
    llm = backends.of(request)
    seed = default_seed(request, llm)
    if seed is None or temperature(request, llm) <= 0:
        return request
    return replace(request, seed=seed + SEED_STEP * (number - 1), explicit=True)


def count_failures(run: RunFolder) -> int:
    """Return the number of failed answers in the repeats after the first."""
    return sum(bool(head.error) for repeat in run.repeats() for head in repeat.heads().values())


def read_repeats(run: RunFolder) -> Repeats:
    """Read the scores of all repeats after the first."""
    repeats = []
    for folder in run.repeats():
        columns: dict[str, dict[str, float | None]] = {}
        for score in folder.scores():
            columns.setdefault(score.metric, {})[score.qid] = score.value
        repeats.append(columns)
    return repeats


def average(
    name: str, qids: Sequence[str], values: Sequence[float | None], repeats: Repeats
) -> tuple[float | None, ...]:
    """Return the mean of each question over its scored repeats. ``values``: of the first."""
    if not repeats:
        return tuple(values)
    rows = score_rows(name, qids, values, repeats)
    return tuple(sum(row) / len(row) if row else None for row in rows)


def score_rows(
    name: str, qids: Sequence[str], values: Sequence[float | None], repeats: Repeats
) -> list[list[float]]:
    """Return the scores of each question in the repeats that have one."""
    later = [columns.get(name, {}) for columns in repeats]
    every = ([value, *(column.get(qid) for column in later)] for qid, value in zip(qids, values))
    return [[value for value in row if value is not None] for row in every]


def repeat_report(
    columns: Mapping[str, Mapping[str, float | None]],
    repeats: Repeats,
    options: RepeatOptions,
    earlier: RepeatReport | None,
    failed: int,
) -> RepeatReport | None:
    """Summarise the repeats of a run; None for a run without. ``columns``: the first repeat's scores; ``earlier``: the
    repeats in its last report; ``failed``: answers of later repeats that failed."""
    thresholds = {**(earlier.thresholds if earlier else {}), **options.thresholds}
    number = 1 + len(repeats)
    requested = max(options.number, number, earlier.requested if earlier else 1)
    if requested == 1:
        return None
    metrics: dict[str, MetricRepeats] = {}
    for name, scores in columns.items() if repeats else ():
        rows = score_rows(name, [*scores], [*scores.values()], repeats)
        metrics[name] = metric_repeats(rows, thresholds.get(name))
    return RepeatReport(requested, number, thresholds, metrics, failed)
