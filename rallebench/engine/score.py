"""Stored episodes × gold → scores → report. A second pass, so a new metric never needs new answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from rallebench import __version__
from rallebench.core.costs import Cost, QuestionCost
from rallebench.core.deciding import StoppingRule
from rallebench.core.errors import BadFileError
from rallebench.core.files import json_lines, write_text
from rallebench.core.own_files import parse, reading
from rallebench.core.repeats import ONCE, RepeatOptions
from rallebench.core.report import (
    MEND,
    NO_BOUNDS,
    Bounds,
    Clusters,
    ColumnResult,
    Estimate,
    JudgeReport,
    RunReport,
)
from rallebench.core.scoring import Judgements, Pair, ScoreColumn, Scorer, ScoreRow
from rallebench.core.support import AnswerSupport
from rallebench.core.types import Episode, Example, Json, Question, Score
from rallebench.datasets.kilt import read_gold, record_id
from rallebench.engine.clusters import (
    TIMED_UNITS,
    Timing,
    find_clusters,
    shared_timings,
    timed_clusters,
)
from rallebench.engine.cost import not_recorded, question_cost, run_cost
from rallebench.engine.headline import deciding_metric, is_graded
from rallebench.engine.repeats import (
    Repeats,
    average,
    count_failures,
    read_repeats,
    repeat_report,
)
from rallebench.engine.run_files import RunDescription
from rallebench.engine.statistics import means
from rallebench.engine.store import COSTS, Answers, RunFolder
from rallebench.engine.support_file import write_support
from rallebench.metrics import METRICS, metric
from rallebench.metrics.recorded import IMPORTED
from rallebench.metrics.scorers import metric_scorers


@dataclass(frozen=True, slots=True)
class ScoreSeries:
    """A column of scores over questions, in their order.

    ``values``: None is *not scored*; ``notes``: the reason or another remark, '' without one. ``corpus_level``: the score
    over all scored answers at once, such as corpus BLEU (not a mean); None for a metric without such a score. ``support``:
    of each checked answer, in the first column of a scorer that checks them.
    """

    column: ScoreColumn
    values: tuple[float | None, ...]
    notes: tuple[str, ...]
    corpus_level: float | None = None
    support: tuple[AnswerSupport, ...] = ()


UNSCORED = ScoreRow({})


def score_pairs(
    scorers: Iterable[Scorer], pairs: Sequence[Pair], judgements: Judgements | None = None
) -> dict[str, ScoreSeries]:
    """Return column → scores of ``pairs``. All scores of answers are computed here.

    A failed question is not scored. A judge without ``judgements`` has no columns. If two columns share a name, the later
    one counts.
    """
    errors = [pair.episode.error for pair in pairs]
    answered = [pair for pair, error in zip(pairs, errors) if not error]
    series: dict[str, ScoreSeries] = {}
    for scorer in scorers:
        by_qid = (judgements or {}).get(scorer.name)
        if scorer.llms and by_qid is None:
            continue
        of_each = [(by_qid or {}).get(pair.episode.qid) for pair in answered]
        rows = scorer.values(answered, of_each)
        scored = [pair for pair, row in zip(answered, rows) if _has_value(row)]
        figures = scorer.corpus_level(scored) if scored else {}
        rest = iter(rows)
        every = [UNSCORED if error else next(rest) for error in errors]
        support = tuple(row.support for row in rows if row.support)
        for column in scorer.columns:
            name = column.name
            values = tuple([row.values.get(name) for row in every])
            notes = tuple([error or row.notes.get(name, "") for error, row in zip(errors, every)])
            series[name] = ScoreSeries(column, values, notes, figures.get(name), support)
            support = ()
    return series


def _has_value(row: ScoreRow) -> bool:
    return any(value is not None for value in row.values.values())


def score_metrics(names: Sequence[str], pairs: Sequence[Pair]) -> dict[str, ScoreSeries]:
    """Return canonical name → scores by registered metrics, in the order of ``names``. Raises as ``metric`` does."""
    scorers = metric_scorers(names)
    series = score_pairs(scorers, pairs)
    if len(scorers) == 1:
        return series
    return {name: series[name] for name in (metric(name).name for name in names)}


def score_episode(episode: Episode, example: Example, names: Sequence[str]) -> list[Score]:
    """One Score per metric. The score of a failed question is None, with a note."""
    pairs = [Pair(example, episode)]
    return _flatten_scores(pairs, score_metrics(names, pairs))


def _flatten_scores(pairs: Sequence[Pair], scored: Mapping[str, ScoreSeries]) -> list[Score]:
    return [
        Score(pair.episode.qid, name, series.values[row], series.notes[row])
        for row, pair in enumerate(pairs)
        for name, series in scored.items()
    ]


def stored_examples(folder: RunFolder) -> list[Example]:
    """The questions of a run with their gold, in order."""
    return [read_example(record, folder.questions_file) for record in folder.records()]


def read_example(record: Json, where: object) -> Example:
    """The question of a run's record with its gold; ``where``: the file for errors."""
    question = Question(record_id(record, str(where)), record["input"])
    return Example(question, read_gold(record, str(where)), record)


def examples_of_runs(runs: Sequence[RunFolder]) -> list[list[Example]]:
    """``stored_examples`` of each run. Runs with equal files of questions share one list."""
    digests = [run.questions_sha256() for run in runs]
    lists = {digest: stored_examples(run) for digest, run in dict(zip(digests, runs)).items()}
    return [lists[digest] for digest in digests]


def make_report(
    folder: RunFolder,
    examples: Sequence[Example],
    answers: Answers,
    names: Sequence[str],
    repeats: Repeats = (),
) -> tuple[RunReport, list[Score], list[AnswerSupport]]:
    """The report of all answers so far, with the scores of the first repeat and the support of its answers. ``repeats``:
    the scores of the others."""
    episodes = answers.episodes
    answered = [example for example in examples if example.question.qid in episodes]
    pairs = [Pair(example, episodes[example.question.qid]) for example in answered]
    scored = score_metrics(names, pairs)
    failed = Counter(e.error for e in episodes.values() if e.error)
    spent = [answers, *(run.answers() for run in folder.repeats())]
    steps = [step for part in spent for e in part.episodes.values() for step in e.steps]
    n_done = len(answered)
    stored = folder.description()
    intervals = _intervals(scored, find_clusters(examples), pairs, repeats, stored.stopping)
    cost = _cost(stored, spent)
    reasons = _not_scored(scored)
    columns = tuple(
        ColumnResult(
            ScoreColumn(name, "", NO_BOUNDS),
            mean,
            corpus_level=scored[name].corpus_level,
            not_scored=reasons.get(name, ""),
        )
        for name, mean in intervals.items()
    )
    report = RunReport(
        run=folder.name,
        dataset=stored.dataset,
        workflow=stored.spec.workflow,
        fingerprint=stored.fingerprint,
        n=len(examples),
        n_done=n_done,
        n_errors=sum(failed.values()),
        complete=n_done == len(examples),
        seconds=round(sum(part.seconds for part in spent), 3),
        seconds_per_question=cost.per_question["seconds"].mean,
        steps=len(steps),
        steps_from_memory=sum(step.cached for step in steps),
        prompt_tokens=None
        if stored.is_imported
        else sum(step.reply.prompt_tokens for step in steps),
        completion_tokens=None
        if stored.is_imported
        else sum(step.reply.completion_tokens for step in steps),
        columns=columns,
        clusters=replace(find_clusters(answered).counts, watched=stored.stopping is not None),
        cost=cost,
        memory=stored.memory_use,
        errors=dict(failed.most_common(20)),
        headline=_headline([name for name, mean in intervals.items() if mean.n], examples),
        unanswerable=sum(example.gold.unanswerable for example in answered),
        scored_with=__version__,
    )
    support = [of_answer for series in scored.values() for of_answer in series.support]
    return report, _flatten_scores(pairs, scored), support


def _headline(scored: Sequence[str], examples: Sequence[Example]) -> str:
    """Return the deciding metric, '' for the usual one."""
    decided = deciding_metric(scored, graded=is_graded(examples))
    return decided if decided != deciding_metric(scored) else ""


def _intervals(
    scored: Mapping[str, ScoreSeries],
    clusters: Clusters,
    pairs: Sequence[Pair],
    repeats: Repeats,
    rule: StoppingRule | None,
) -> dict[str, Estimate]:
    """Metric → mean. The units are batches for times, articles for other metrics."""
    largest = rule.largest if rule else None
    qids = [pair.episode.qid for pair in pairs]
    ranges = {name: series.column.range for name, series in scored.items()}
    intervals: dict[str, Estimate] = {}
    timings = {pair.episode.qid: shared_timings(pair.episode) for pair in pairs}
    batches = timed_clusters(clusters, [timings])
    for units, timed in ((clusters, False), (batches, True)):
        values = {
            name: average(name, qids, series.values, repeats)
            for name, series in scored.items()
            if is_timed(name) == timed
        }
        intervals |= means(values, units.labels(qids), ranges, largest)
    return {name: intervals[name] for name in scored}


def is_timed(name: str) -> bool:
    """Return whether a registered metric is measured batch by batch."""
    base = name.partition(":")[0].partition("@")[0]
    return base in METRICS and METRICS.entry(base).traits.get("unit") in TIMED_UNITS


def _not_scored(scored: Mapping[str, ScoreSeries]) -> dict[str, str]:
    """Metric → the most frequent reason, for metrics without any score."""
    reasons: dict[str, str] = {}
    for name, series in scored.items():
        if series.notes and all(value is None for value in series.values):
            ((reason, _),) = Counter(series.notes).most_common(1)
            reasons[name] = reason.removeprefix("not scored: ").rstrip(".")
    return reasons


@dataclass(frozen=True, slots=True)
class OwnScores:
    """The scores by a run's own scorers. ``values``: column → question id → value, for questions that did not fail, in the
    order asked; ``means``: of all columns over the same questions, clustered by the articles of the examples;
    ``support``: of the answers that a scorer checked."""

    columns: tuple[ScoreColumn, ...]
    values: Mapping[str, Mapping[str, float | None]]
    means: Mapping[str, Estimate]
    support: tuple[AnswerSupport, ...] = ()


def own_scores(
    scorers: Sequence[Scorer],
    examples: Sequence[Example],
    episodes: Mapping[str, Episode],
    judgements: Judgements | None = None,
    repeats: Repeats = (),
    rule: StoppingRule | None = None,
) -> OwnScores:
    """Score answers by the scorers of a run request; judges without ``judgements`` give no columns. ``repeats``: the
    scores of the repeats after the first, which count in the means."""
    pairs = [
        Pair(example, episode)
        for example in examples
        if (episode := episodes.get(example.question.qid)) is not None and not episode.error
    ]
    scored = score_pairs(scorers, pairs, judgements)
    qids = [pair.episode.qid for pair in pairs]
    intervals = means(
        {name: average(name, qids, series.values, repeats) for name, series in scored.items()},
        find_clusters(examples).labels(qids),
        {name: series.column.range for name, series in scored.items()},
        rule.largest if rule else None,
    )
    return OwnScores(
        tuple(series.column for series in scored.values()),
        {name: dict(zip(qids, series.values)) for name, series in scored.items()},
        intervals,
        tuple(of_answer for series in scored.values() for of_answer in series.support),
    )


def metric_ranges(names: Iterable[str]) -> dict[str, Bounds]:
    """Metric → (lowest, highest) value for the intervals of means; None = no bound."""
    return {name: metric(name).traits.get("range", (None, None)) for name in names}


def _cost(stored: RunDescription, repeats: Sequence[Answers]) -> Cost:
    if stored.is_imported:
        return not_recorded(sum(len(answers.episodes) for answers in repeats))
    episodes = [episode for answers in repeats for episode in answers.episodes.values()]
    earlier = [episode for answers in repeats for episode in answers.earlier]
    return run_cost(episodes, earlier, stored.prices, stored.asks_models)


def score_run(
    folder: RunFolder,
    names: Sequence[str],
    scorers: Sequence[Scorer] = (),
    own_examples: Sequence[Example] = (),
    judgements: Judgements | None = None,
    judges: Sequence[JudgeReport] = (),
    answers: Answers | None = None,
    options: RepeatOptions = ONCE,
) -> RunReport:
    """Score all stored answers, write ``scores.jsonl``, ``support.jsonl``, ``costs.jsonl`` and ``report.json``, return the report.

    ``scorers`` score ``own_examples``, with gold that may hold more than the records. ``judges``: their passes, for the
    report. ``answers``: the folder's, if already read. ``options``: the requested repeats.
    """
    answers = answers or folder.answers()
    episodes, repeats = answers.episodes, read_repeats(folder)
    report, scores, support = make_report(folder, stored_examples(folder), answers, names, repeats)
    rule = folder.description().stopping
    own = own_scores(scorers, own_examples, episodes, judgements, repeats, rule)
    results = (ColumnResult(column, own.means[column.name], True) for column in own.columns)
    report = replace(report, columns=(*report.columns, *results), judges=tuple(judges))
    if own.columns:
        scores += [
            Score(qid, name, value)
            for name, column in own.values.items()
            if name not in names
            for qid, value in column.items()
        ]
    prices = folder.description().prices
    columns: dict[str, dict[str, float | None]] = {}
    for score in scores:
        columns.setdefault(score.metric, {})[score.qid] = score.value
    earlier, failed = _earlier_report(folder), count_failures(folder)
    spread = repeat_report(columns, repeats, options, earlier.repeats, failed)
    present = {judge.name for judge in judges}
    lost = {name: why for name, why in earlier.failed_judges.items() if name not in present}
    report = replace(report, repeats=spread, decided=earlier.decided, failed_judges=lost)
    folder.write_scores(scores)
    write_support(folder, [*support, *own.support])
    known = (e for e in episodes.values() if e.workflow != IMPORTED)
    write_text(folder.path / COSTS, json_lines(question_cost(e, prices).to_json() for e in known))
    folder.write_report(report)
    return report


def _earlier_report(folder: RunFolder) -> RunReport:
    """The report of the last scoring; an empty one if there is none that can be read."""
    with suppress(BadFileError):
        return folder.report() or RunReport()
    return RunReport()


def stored_timings(folder: RunFolder) -> dict[str, list[Timing]]:
    """Question id → the measured times that it shares with its batch, from ``costs.jsonl``; {} before the first scoring
    and for imported predictions. Raises BadFileError."""
    path = folder.path / COSTS
    try:
        raw = path.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    timings: dict[str, list[Timing]] = {}
    for line in raw:
        with reading(path, MEND):
            value = json.loads(line)
        cost = parse(value, QuestionCost, path, MEND)
        timings[cost.qid] = [
            (step.kind, float(step.seconds), step.batch) for step in cost.steps if step.batch > 1
        ]
    return timings


def stored_cost(folder: RunFolder) -> Cost:
    """Return the cost of a run so far, from its report or computed now. Raises BadFileError for a damaged run."""
    report = folder.report()
    if report and report.cost:
        return report.cost
    return _cost(folder.description(), [folder.answers(), *(r.answers() for r in folder.repeats())])
