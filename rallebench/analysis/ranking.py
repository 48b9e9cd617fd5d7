"""Several runs of one dataset: every metric with its interval, and each run against the first.

Only questions that all runs share are counted. Runs after the first are compared with it, question by question,
with Holm's p, intervals that hold together (Bonferroni), and articles, not questions, as units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from typing import Any

from rallebench.analysis.corpus_level import CorpusScore, corpus_level
from rallebench.analysis.measures import (
    HEADLINES,
    Measure,
    headline,
    measure,
    own_of,
    shared_measures,
)
from rallebench.analysis.paired import PairedComparison, compare, with_holm
from rallebench.core.errors import UsageError
from rallebench.core.memory import uncollected
from rallebench.core.numbers import independence
from rallebench.core.types import Example
from rallebench.engine.clusters import Clusters, clusters_of
from rallebench.engine.score import examples_of
from rallebench.engine.statistics import NOISE, Mean, means
from rallebench.engine.store import RunFolder
from rallebench.metrics import metric
from rallebench.metrics.columns import columns

__all__ = [
    "HEADLINES",
    "MultiRunComparison",
    "PairedResult",
    "RunSummary",
    "compare_many",
    "scores_of",
    "shared_by",
    "with_mean",
]

MOST_RUNS = 64

Scores = Mapping[str, "float | None"]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run. ``questions``: how many it has; ``left_out``: questions that another run does not share;
    ``failed``, ``unfinished``: shared questions that failed or are not answered yet."""

    name: str
    dataset: str
    questions: int
    left_out: int
    failed: int
    unfinished: int

    @property
    def gaps(self) -> str:
        """The shared questions without an answer, in words; '' if there are none."""
        counts = {"failed": self.failed, "are not answered yet": self.unfinished}
        return " and ".join(f"{count} {words}" for words, count in counts.items() if count)


@dataclass(frozen=True, slots=True)
class PairedResult:
    """A run compared with the first."""

    name: str
    paired: PairedComparison

    @property
    def corrected(self) -> float | None:
        """Its p, corrected for all comparisons; None without a comparison."""
        return self.paired.corrected


@dataclass(frozen=True, slots=True)
class MultiRunComparison:
    """``cells``: metric → one mean per run, over the questions that *all* runs have scored. ``best``: metric →
    the indexes of the runs with the best mean. ``against``: the runs after the first, by ``metric``, over
    the same questions. ``corpus_level``: metric → one corpus-level score per run. ``measures``: metric →
    its card."""

    sides: tuple[RunSummary, ...]
    common: tuple[Example, ...]
    metric: str
    metrics: tuple[str, ...]
    cells: Mapping[str, tuple[Mean, ...]]
    best: Mapping[str, frozenset[int]]
    against: tuple[PairedResult, ...]
    corpus_level: Mapping[str, tuple[CorpusScore, ...]] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)
    clusters: Clusters = field(default_factory=lambda: Clusters("question", {}))

    @property
    def measure(self) -> Measure:
        """The measure of the differences."""
        return self.measures[self.metric]

    @property
    def warnings(self) -> list[str]:
        """The caveats of the table, one sentence each."""
        sentences = []
        left_out = [f"{side.name} {side.left_out}" for side in self.sides if side.left_out]
        if left_out:
            sentences.append(
                f"The runs asked different questions; only the {len(self.common)} that all share are compared "
                f"(left out: {', '.join(left_out)})."
            )
        for side in self.sides:
            if side.gaps:
                sentences.append(
                    f"{side.name}: {side.gaps}; these questions are left out for every run."
                )
        cluster_note = independence(self.clusters.as_json(), len(self.common))
        if "One article holds" in cluster_note:
            sentences.append(cluster_note)
        scored = self.cells[self.metric][0].n
        if scored < len(self.common) - sum(side.failed + side.unfinished for side in self.sides):
            sentences.append(
                f"Only {scored} of the {len(self.common)} shared questions are scored by {self.metric} in every run."
            )
        return sentences


@uncollected()
def compare_many(runs: Sequence[RunFolder], chosen: str = "") -> MultiRunComparison:
    """All metrics of 2 to MOST_RUNS runs; ``chosen``: the metric of the differences ('' = ``headline``).

    Raises UsageError for too few runs, one run twice, no common question, or no common metric.
    """
    if len(runs) < 2:
        raise UsageError("Choose at least two runs to compare.")
    if len(runs) > MOST_RUNS:
        raise UsageError(
            f"{len(runs)} runs are too many to compare at once; choose at most {MOST_RUNS}."
        )
    if len({run.name for run in runs}) < len(runs):
        raise UsageError("One run is chosen twice; compare different runs.")
    examples_of_runs = [examples_of(run) for run in runs]
    common = shared_by(examples_of_runs)
    if not common:
        run_names = ", ".join(run.name for run in runs)
        raise UsageError(f"The runs {run_names} share no question, so they cannot be compared.")
    measures = _measures(runs, chosen)
    names, chosen = tuple(measures), measure(chosen, runs).name if chosen else headline(measures)
    columns = [scores_of(run, names) for run in runs]
    qids = [e.question.qid for e in common]
    clusters = clusters_of(common)
    cells = _rows(
        {name: [column[name] for column in columns] for name in names}, qids, clusters, measures
    )
    sides = tuple(
        summary_of(run, examples, set(qids)) for run, examples in zip(runs, examples_of_runs)
    )
    best = {name: _best(measures[name], row) for name, row in cells.items()}
    against = _against(runs, columns, qids, measures[chosen], clusters)
    corpus_scores = _corpus_level(
        runs, columns, common, [name for name, candidate in measures.items() if not candidate.own]
    )
    return MultiRunComparison(
        sides, tuple(common), chosen, names, cells, best, against, corpus_scores, measures, clusters
    )


def shared_by(examples_of_runs: Sequence[Sequence[Example]]) -> list[Example]:
    """The questions of the first run that all runs have, with the same text."""
    texts = [{e.question.qid: e.question.text for e in examples} for examples in examples_of_runs]
    return [
        e
        for e in examples_of_runs[0]
        if all(t.get(e.question.qid) == e.question.text for t in texts)
    ]


def _corpus_level(
    runs: Sequence[RunFolder],
    columns: Sequence[Mapping[str, Scores]],
    common: Sequence[Example],
    names: Sequence[str],
) -> dict[str, tuple[CorpusScore, ...]]:
    """The corpus-level scores, over the questions of the means."""
    corpus_metrics = [name for name in names if "over_all" in metric(name).traits]
    if not corpus_metrics:
        return {}
    episodes = [run.episodes() for run in runs]
    scored = {
        name: [
            e
            for e in common
            if all(_is_number(column[name].get(e.question.qid)) for column in columns)
        ]
        for name in corpus_metrics
    }
    return {name: corpus_level(name, scored[name], episodes) for name in corpus_metrics}


def _measures(runs: Sequence[RunFolder], chosen: str) -> dict[str, Measure]:
    measures = shared_measures(runs)
    if chosen:
        chosen_measure = measure(chosen, runs)
        measures.setdefault(chosen_measure.name, chosen_measure)
    if not measures:
        raise UsageError("The runs share no metric; choose one to score them all by.")
    return measures


def scores_of(run: RunFolder, names: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Metric → question id → score; None for a failed question or one without a score.

    Metrics that the run did not store are computed from its episodes, except for a suite's own.
    """
    scores: dict[str, dict[str, float | None]] = {name: {} for name in names}
    for line in run.scores(only=names[0] if len(names) == 1 else ""):
        if line["metric"] in scores:
            scores[line["metric"]][line["qid"]] = line.get("value")
    absent = [name for name in names if not scores[name]]
    if absent and (absent := [name for name in absent if name not in own_of(run)]):
        episodes = run.episodes()
        answered = [e for e in examples_of(run) if e.question.qid in episodes]
        computed = columns(absent, [(episodes[e.question.qid], e.gold) for e in answered])
        for name, column in computed.items():
            scores[name] = {e.question.qid: value for e, value in zip(answered, column.values)}
    return scores


def with_mean(run: RunFolder, name: str) -> dict[str, Any]:
    """A run's report with ``name`` in its ``metrics``: computed later, or a suite's own."""
    report = dict(run.report() or {})
    report_means = {**report.get("suite", {}), **report.get("metrics", {})}
    mean = report_means.get(name) or asdict(mean_of(run, measure(name, [run])))
    return {**report, "metrics": {**report.get("metrics", {}), name: mean}}


def mean_of(run: RunFolder, measured: Measure) -> Mean:
    """A run's mean over all its questions."""
    scores, examples = scores_of(run, (measured.name,))[measured.name], examples_of(run)
    qids = [e.question.qid for e in examples]
    column = [scores.get(qid) for qid in qids]
    return means(
        {measured.name: column},
        clusters_of(examples).labels(qids),
        {measured.name: measured.about["range"]},
    )[measured.name]


def _rows(
    table: Mapping[str, Sequence[Scores]],
    qids: Sequence[str],
    clusters: Clusters,
    measures: Mapping[str, Measure],
) -> dict[str, tuple[Mean, ...]]:
    """Metric → a mean per run, over the questions that all runs have scored."""
    rows = {}
    for name, scored in table.items():
        shared = [qid for qid in qids if all(_is_number(column.get(qid)) for column in scored)]
        columns, bounds = (
            {str(i): [column[qid] for qid in shared] for i, column in enumerate(scored)},
            measures[name].about["range"],
        )
        rows[name] = tuple(
            means(columns, clusters.labels(shared), dict.fromkeys(columns, bounds)).values()
        )
    return rows


def _is_number(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def _best(measured: Measure, row: Sequence[Mean]) -> frozenset[int]:
    values = [mean.value for mean in row]
    numbers = [value for value in values if value is not None]
    if not numbers or _same(min(numbers), max(numbers)) or measured.higher_is_better is None:
        return frozenset()
    top = max(numbers) if measured.higher_is_better else min(numbers)
    return frozenset(i for i, value in enumerate(values) if value is not None and _same(value, top))


def _same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=NOISE, abs_tol=NOISE)


def summary_of(run: RunFolder, examples: Sequence[Example], common: Set[str]) -> RunSummary:
    """The run with its ``examples``; ``common``: the ids of the shared questions."""
    lines = {qid: line for qid, line in run.heads().items() if qid in common}
    failed = sum(bool(line.get("error")) for line in lines.values())
    return RunSummary(
        run.name,
        str(run.spec()["spec"]["dataset"]),
        len(examples),
        len(examples) - len(common),
        failed,
        len(common) - len(lines),
    )


def _against(
    runs: Sequence[RunFolder],
    columns: Sequence[Mapping[str, Scores]],
    qids: Sequence[str],
    measured: Measure,
    clusters: Clusters,
) -> tuple[PairedResult, ...]:
    name, higher = measured.name, measured.higher_is_better is not False
    # The same questions as for the means, so that no difference contradicts them.
    scored = [qid for qid in qids if all(_is_number(column[name].get(qid)) for column in columns)]
    scores = [{qid: column[name].get(qid) for qid in scored} for column in columns]
    others = scores[1:]
    pairs = [
        compare(
            name,
            scores[0],
            other,
            higher_is_better=higher,
            clusters=clusters.of,
            comparisons=len(others),
        )
        for other in others
    ]
    return tuple(PairedResult(run.name, pair) for run, pair in zip(runs[1:], with_holm(pairs)))
