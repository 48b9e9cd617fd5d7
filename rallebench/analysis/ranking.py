"""Compare two or more runs of one dataset: every metric with its interval, and each run against the first.

Only questions that all runs share count. Each later run is compared with the first, question by question. Comparisons
use Holm's p, simultaneous (Bonferroni) intervals, and articles rather than questions as units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from rallebench.analysis.corpus_level import corpus_level
from rallebench.analysis.measures import headline, measure, own_metrics, shared_measures
from rallebench.analysis.paired import Scores, compare, is_scored, with_holm
from rallebench.analysis.timing import timing_notes
from rallebench.core.comparison import (
    ComparedRun,
    Comparison,
    CorpusScore,
    Measure,
    PairedComparison,
)
from rallebench.core.dataset_edits import question_key
from rallebench.core.errors import UsageError
from rallebench.core.memory import pause_collector
from rallebench.core.numbers import LEVEL
from rallebench.core.report import Bounds, Clusters, Estimate, RunReport
from rallebench.core.scoring import Pair
from rallebench.core.types import Example
from rallebench.engine.clusters import find_clusters, timed_clusters
from rallebench.engine.headline import beyond_depth
from rallebench.engine.repeats import average
from rallebench.engine.score import (
    examples_of_runs,
    is_timed,
    score_metrics,
    stored_examples,
    stored_timings,
)
from rallebench.engine.statistics import means
from rallebench.engine.store import RunFolder
from rallebench.metrics import metric

MOST_RUNS = 64


@pause_collector()
def compare_many(
    runs: Sequence[RunFolder],
    chosen: str = "",
    *,
    every: bool = True,
    level: float = LEVEL,
    only: Set[str] | None = None,
) -> Comparison:
    """Compare 2 to MOST_RUNS runs by all metrics. ``chosen``: the metric of the pairwise differences ('' = the
    headline). ``only``: the ids of the questions to compare; by default all.

    ``every``: include the means of all shared metrics, not only of the chosen one. ``level``: 1 − the confidence of the
    differences' intervals. Raises UsageError for too few runs, a repeated run, no common question, or no common metric.
    """
    if len(runs) < 2:
        raise UsageError("Choose at least two runs to compare.")
    if len(runs) > MOST_RUNS:
        raise UsageError(
            f"{len(runs)} runs are too many to compare at once; choose at most {MOST_RUNS}."
        )
    if len({run.name for run in runs}) < len(runs):
        raise UsageError("One run is chosen twice; compare different runs.")
    examples = examples_of_runs(runs)
    if only is not None:
        parts = {id(own): [e for e in own if e.question.qid in only] for own in examples}
        examples = [parts[id(own)] for own in examples]
    common = _shared_by(examples)
    if not common:
        run_names = ", ".join(run.name for run in runs)
        raise UsageError(f"The runs {run_names} share no question, so they cannot be compared.")
    measures = shared_measures(runs)
    by = measure(chosen, runs) if chosen else headline(measures, runs)
    measures[by.name] = by
    names = tuple(measures) if every else (by.name,)
    qids, clusters = [e.question.qid for e in common], find_clusters(common)
    of_runs = {run.name: read_scores(run, names) for run in runs}
    largest = largest_watched(runs)
    cells, scored_by, pairs = {}, {}, {}
    articles = clusters
    batches: Clusters | None = None
    for name in names:
        scores = {run: of_run[name] for run, of_run in of_runs.items()}
        if is_timed(name) and batches is None:
            batches = timed_clusters(articles, map(stored_timings, runs))
        clusters = batches if batches is not None and is_timed(name) else articles
        # Means and differences use the same questions, so they never contradict each other.
        scored_by[name] = scored_by_all(scores.values(), qids)
        cells[name] = tuple(
            means_over(scored_by[name], scores, clusters, measures[name].bounds, largest).values()
        )
        if name == by.name or len(runs) == 2:
            pairs[name] = _against(
                scores, scored_by[name], measures[name], clusters, level, largest
            )
    timed = frozenset(filter(is_timed, names))
    summaries = (_summary(run, own, set(qids)) for run, own in zip(runs, examples))
    return Comparison(
        tuple(summaries),
        tuple(common),
        by.name,
        cells,
        pairs,
        _corpus_level(runs, common, {n: q for n, q in scored_by.items() if not measures[n].own}),
        measures,
        batches if batches is not None and is_timed(by.name) else articles,
        frozenset[str]().union(*(beyond_depth(measures, run.description().chain) for run in runs)),
        tuple(timing_notes(runs)) if timed else (),
        timed,
        _count_changed(examples, common),
        len({example.question.qid for own in examples for example in own}),
    )


def compare_two(
    a: RunFolder,
    b: RunFolder,
    chosen: str = "",
    *,
    every: bool = True,
    level: float = LEVEL,
    only: Set[str] | None = None,
) -> tuple[Comparison, PairedComparison]:
    """Compare run ``b`` with run ``a``; see ``compare_many``. Raises UsageError if they share no scored question."""
    compared = compare_many([a, b], chosen, every=every, level=level, only=only)
    pair = compared.against[b.name]
    if not pair.n:
        raise UsageError(
            f"No question that {a.name!r} and {b.name!r} share is scored by {pair.metric} in both; choose another metric."
        )
    return compared, pair


def _shared_by(examples: Sequence[Sequence[Example]]) -> list[Example]:
    """Return the questions of the first run that all runs have, with the same text, answers and gold."""
    first, *others = examples
    # Runs of one version of a dataset share a list.
    versions = {id(own): own for own in others if own is not first}.values()
    if not versions:
        return [*first]
    keys = [{e.question.qid: question_key(e) for e in own} for own in versions]
    return [e for e in first if all(k.get(e.question.qid) == question_key(e) for k in keys)]


def _count_changed(examples: Sequence[Sequence[Example]], common: Sequence[Example]) -> int:
    """Return the number of questions that all runs have, but not with the same text, answers and gold."""
    ids = [{example.question.qid for example in own} for own in examples]
    return len(set.intersection(*ids)) - len(common)


def _corpus_level(
    runs: Sequence[RunFolder], common: Sequence[Example], scored_by: Mapping[str, Sequence[str]]
) -> dict[str, tuple[CorpusScore, ...]]:
    """Return the corpus-level scores, for metrics that have one. ``scored_by``: metric → the questions of its means."""
    names = [name for name in scored_by if "over_all" in metric(name).traits]
    if not names:
        return {}
    episodes = [run.episodes() for run in runs]
    examples = {e.question.qid: e for e in common}
    return {
        name: corpus_level(name, [examples[qid] for qid in scored_by[name]], episodes)
        for name in names
    }


def read_scores(run: RunFolder, names: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Metric → question id → score; None if a question failed or has no score.

    Metrics that the run did not store are computed from its episodes; a suite's own metrics cannot be.
    """
    scores: dict[str, dict[str, float | None]] = {name: {} for name in names}
    for line in run.scores(only=names[0] if len(names) == 1 else ""):
        if line.metric in scores:
            scores[line.metric][line.qid] = line.value
    absent = [name for name in names if not scores[name]]
    if absent and (absent := [name for name in absent if name not in own_metrics(run)]):
        first, *later = (_computed_scores(part, absent) for part in (run, *run.repeats()))
        for name, column in first.items():
            values = average(name, [*column], [*column.values()], later)
            scores[name] = dict(zip(column, values))
    return scores


def _computed_scores(run: RunFolder, names: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Metric → question id → score, computed from the episodes of one repeat."""
    pairs = list(ended_pairs(run))
    return {
        name: {e.qid: value for (_, e), value in zip(pairs, column.values)}
        for name, column in score_metrics(names, pairs).items()
    }


def ended_pairs(run: RunFolder) -> Iterator[Pair]:
    """Yield every answered or failed question, in the run's order; failed ones have an ``error``."""
    episodes = run.episodes()
    for example in stored_examples(run):
        if example.question.qid in episodes:
            yield Pair(example, episodes[example.question.qid])


def with_mean(run: RunFolder, name: str) -> RunReport:
    """Return a run's report with ``name`` in its ``metrics``, even if it was computed later or is a suite's own
    metric.
    """
    report = run.report() or RunReport()
    mean = report.metrics.get(name) or report.estimates.get(name)
    return report.with_means({**report.metrics, name: mean or run_mean(run, measure(name, [run]))})


def run_mean(run: RunFolder, by: Measure) -> Estimate:
    """Mean of a run over all its questions."""
    examples = stored_examples(run)
    qids, scores = [e.question.qid for e in examples], read_scores(run, (by.name,))
    clusters = find_clusters(examples)
    if is_timed(by.name):
        clusters = timed_clusters(clusters, [stored_timings(run)])
    return means_over(qids, scores, clusters, by.bounds, largest_watched([run]))[by.name]


def scored_by_all(columns: Iterable[Scores], qids: Sequence[str]) -> list[str]:
    """Return the questions that every column has scored."""
    every = list(columns)
    return [qid for qid in qids if all(is_scored(column.get(qid)) for column in every)]


def means_over(
    qids: Sequence[str],
    columns: Mapping[str, Scores],
    clusters: Clusters,
    bounds: Bounds,
    largest: int | None = None,
) -> dict[str, Estimate]:
    """Column → its mean over these questions. ``bounds``: the (lowest, highest) value of every column; ``largest``: see
    ``largest_watched``."""
    values = {name: [column.get(qid) for qid in qids] for name, column in columns.items()}
    return means(values, clusters.labels(qids), dict.fromkeys(columns, bounds), largest)


def largest_watched(runs: Sequence[RunFolder]) -> int | None:
    """Return the questions of the largest article, if a run ended when it was decided; None otherwise."""
    rules = [rule for run in runs if (rule := run.description().stopping) is not None]
    return max((rule.largest for rule in rules), default=None)


def _summary(run: RunFolder, examples: Sequence[Example], common: Set[str]) -> ComparedRun:
    """Summarise a run with its ``examples``; ``common``: the ids of the shared questions."""
    heads = {qid: head for qid, head in run.heads().items() if qid in common}
    failed = sum(bool(head.error) for head in heads.values())
    repeats = 1 + len(run.repeats())
    unfinished = len(common) - len(heads)
    return ComparedRun(run.name, len(examples) - len(common), failed, unfinished, repeats)


def _against(
    columns: Mapping[str, Scores],
    scored: Sequence[str],
    by: Measure,
    clusters: Clusters,
    level: float,
    largest: int | None,
) -> dict[str, PairedComparison]:
    """Compare each later run with the first. ``columns``: run → its scores; ``scored``: the questions to use; ``largest``:
    see ``largest_watched``."""
    (_, first), *others = [
        (run, {qid: column.get(qid) for qid in scored}) for run, column in columns.items()
    ]
    pairs = [
        compare(
            by.name,
            first,
            scores,
            higher_is_better=by.higher_is_better is not False,
            clusters=clusters.of,
            comparisons=len(others),
            level=level,
            bounds={by.name: by.bounds},
            largest=largest,
        )
        for _, scores in others
    ]
    return dict(zip((run for run, _ in others), with_holm(pairs)))
