"""Probes of a run's judge: it judges the same answers again, with a change that should not change the verdict."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rallebench.core.audits import PRAISED, PROBES, JudgeProbe, JudgeProbes, WrongAnswers
from rallebench.core.errors import UsageError
from rallebench.core.events import Operation
from rallebench.core.numbers import plural
from rallebench.core.report import RunReport
from rallebench.core.runs import DEFAULT_OPTIONS
from rallebench.core.scoring import Pair
from rallebench.core.spending_limit import SpendingLimit
from rallebench.core.types import Episode
from rallebench.engine.clusters import find_clusters
from rallebench.engine.execute import play_judge
from rallebench.engine.judge_flips import measure_flips
from rallebench.engine.store import RunFolder
from rallebench.engine.stored_runs import stored_request
from rallebench.metrics import METRICS
from rallebench.metrics.judges import JudgeScorer, judge_named
from rallebench.metrics.judges.probes import probed_judge
from rallebench.services.context import EngineContext, EngineParts

SAMPLING_ONLY = "seed: a judge that generates at temperature 0 differs only if its server does."


def find_judge(run: RunFolder, grader: str) -> str:
    """Return the judge of a column or of its own name, as "truthfulness:my-llm". Raises UsageError for anything else."""
    report = run.report() or RunReport()
    for judge in report.judges:
        if grader in (judge.name, *judge.columns):
            return judge.name
    if METRICS.is_judge(grader):
        return grader
    known = ", ".join(judge.name for judge in report.judges)
    raise UsageError(
        f"{grader!r} is not a judge, so it cannot be probed; name {known or 'one such as truthfulness:MODEL'}."
    )


def probe_judge(
    parts: EngineParts,
    run: RunFolder,
    grader: str,
    wrong: WrongAnswers,
    probes: Sequence[str] = (),
    *,
    sample: int | None = None,
    seed: int = 0,
    budget: SpendingLimit | None = None,
) -> Operation[JudgeProbes]:
    """Judge the answers of a run under probes and as usual, and compare. ``probes``: by default all, but the order of a judge that has one only. Only
    ``wrong`` answers are praised. ``sample``: the number of answers to probe, drawn by ``seed``. Passes are kept in the run, so a stopped probe
    continues. Raises UsageError, StoppedError.
    """
    mark_of = parts.workspace.llm_mark
    judge = judge_named(find_judge(run, grader), mark_of)
    names = [column.name for column in judge.columns]
    column = judge.columns[names.index(grader) if grader in names else 0]
    request = stored_request(run)
    examples = {x.question.qid: x for x in request.examples}
    every = {qid: x for qid, x in run.episodes().items() if not x.error and qid in examples}
    episodes = _draw(every, sample, seed)
    if not episodes:
        raise UsageError(f"The run {run.name!r} has no answer to judge.")
    judges = _apply_probes(judge, probes, parts)
    clusters = find_clusters(request.examples).of
    options = replace(DEFAULT_OPTIONS, resume=True, track=False, budget=budget)
    results: list[JudgeProbe] = []
    with parts.models.lease(f"the probes of {judge.name!r}") as lease:
        context = EngineContext(parts, lease)
        played = yield from play_judge(run, request, judge, episodes, context, options)
        pairs = {qid: Pair(examples[qid], episode) for qid, episode in episodes.items()}
        before = _scores(judge, pairs, played.episodes, column.name, column.range)
        for probe, changed in judges.items():
            chosen = {
                qid: episode
                for qid, episode in episodes.items()
                if probe != PRAISED or qid in wrong.qids
            }
            after: Mapping[str, float | None] = {}
            if chosen:
                played = yield from play_judge(run, request, changed, chosen, context, options)
                some = {qid: pairs[qid] for qid in chosen}
                after = _scores(changed, some, played.episodes, column.name, column.range)
            results.append(measure_flips(probe, PROBES[probe], before, after, clusters))
    left = len(every) - len(episodes)
    drawn = f"{plural(len(episodes), 'answer')} drawn by seed {seed} of {len(every):,}."
    notes = (*([drawn] if left else []), *([SAMPLING_ONLY] if "seed" in judges else []))
    return JudgeProbes(run.name, judge.name, column.name, wrong.truth, tuple(results), notes)


def _apply_probes(
    judge: JudgeScorer, probes: Sequence[str], parts: EngineParts
) -> dict[str, JudgeScorer]:
    """The judge under each probe."""
    judges = {}
    for probe in dict.fromkeys(probes or PROBES):
        try:
            judges[probe] = probed_judge(judge, probe, parts.workspace.llm_mark)
        except UsageError:
            if probes:
                raise
    return judges


def _draw(episodes: Mapping[str, Episode], sample: int | None, seed: int) -> Mapping[str, Episode]:
    if sample is None or sample >= len(episodes):
        return episodes
    if sample < 1:
        raise UsageError(f"A sample of {sample} answers is empty; probe at least 1.")
    chosen = set(random.Random(seed).sample(sorted(episodes), sample))
    return {qid: episode for qid, episode in episodes.items() if qid in chosen}


def _scores(
    judge: JudgeScorer,
    pairs: Mapping[str, Pair],
    judgements: Mapping[str, Episode],
    column: str,
    bounds: tuple[float | None, float | None],
) -> dict[str, float | None]:
    """Return question id → the judge's score from 0 to 1. Raises UsageError for a column without a range."""
    low, high = bounds
    if low is None or high is None:
        raise UsageError(f"The column {column!r} has no lowest and highest value; probe another.")
    rows = judge.values([*pairs.values()], [judgements.get(qid) for qid in pairs])
    values = {qid: row.values.get(column) for qid, row in zip(pairs, rows)}
    return {
        qid: None if value is None else (value - low) / (high - low)
        for qid, value in values.items()
    }
