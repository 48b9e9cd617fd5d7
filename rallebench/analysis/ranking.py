"""Several runs of one question set beside each other: every metric with its interval, and who beats the first.

Only questions that all runs share are counted. Runs after the first are compared with it, question by question,
with Holm's p, intervals that hold together (Bonferroni), and articles, not questions, as units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rallebench.analysis.corpus_level import Together, together
from rallebench.analysis.measures import (
    HEADLINES,
    Measure,
    headline,
    measure,
    own_of,
    shared_measures,
)
from rallebench.analysis.paired import Paired, compare, with_holm
from rallebench.core.errors import UsageError
from rallebench.core.memory import uncollected
from rallebench.core.types import Example
from rallebench.engine.answers import heads
from rallebench.engine.clusters import Clusters, clusters_of, sentence
from rallebench.engine.score import examples_of
from rallebench.engine.statistics import NOISE, Mean, means
from rallebench.engine.store import RunFolder
from rallebench.metrics import metric
from rallebench.metrics.columns import columns

__all__ = [
    "HEADLINES",
    "Against",
    "Many",
    "Side",
    "compare_many",
    "scores_of",
    "shared_by",
    "with_mean",
]

MOST_RUNS = 64

Scores = Mapping[str, "float | None"]


@dataclass(frozen=True, slots=True)
class Side:
    """One run. ``asked``: its questions; ``left_out``: those that another run does not share; ``failed`` and
    ``unfinished``: of the shared ones, how many failed, and how many it has not answered yet."""

    name: str
    dataset: str
    asked: int
    left_out: int
    failed: int
    unfinished: int


@dataclass(frozen=True, slots=True)
class Against:
    """A run against the first."""

    name: str
    paired: Paired

    @property
    def corrected(self) -> float | None:
        """Its p for as many comparisons as there are runs after the first; None where nothing is comparable."""
        return self.paired.corrected


@dataclass(frozen=True, slots=True)
class Many:
    """``cells``: metric → one mean per run, over the questions that *all* runs have scored; ``best``: metric → the
    numbers of the runs with the best mean. ``against``: the runs after the first, by ``metric``, over the same
    questions as its means. ``over_all``: metric → one figure per run over all answers at once, where it has one.
    ``measures``: metric → its card, for the workbench's own metrics and for those that only a suite knows."""

    sides: tuple[Side, ...]
    common: tuple[Example, ...]
    metric: str
    metrics: tuple[str, ...]
    cells: Mapping[str, tuple[Mean, ...]]
    best: Mapping[str, frozenset[int]]
    against: tuple[Against, ...]
    over_all: Mapping[str, tuple[Together, ...]] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)
    clusters: Clusters = field(default_factory=lambda: Clusters("question", {}))

    @property
    def measure(self) -> Measure:
        """What the differences are of."""
        return self.measures[self.metric]

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before believing the table, one sentence each."""
        found = []
        left = [f"{side.name} {side.left_out}" for side in self.sides if side.left_out]
        if left:
            found.append(
                f"The runs asked different questions; only the {len(self.common)} that all share are compared "
                f"(left out: {', '.join(left)})."
            )
        for side in self.sides:
            parts = [f"{side.failed} failed"] * bool(side.failed) + [
                f"{side.unfinished} are not answered yet"
            ] * bool(side.unfinished)
            if parts:
                found.append(
                    f"{side.name}: {' and '.join(parts)}; these questions are left out for every run."
                )
        found += (
            [text]
            if "One article holds" in (text := sentence(self.clusters.as_json(), len(self.common)))
            else []
        )
        scored = self.cells[self.metric][0].n
        if scored < len(self.common) - sum(side.failed + side.unfinished for side in self.sides):
            found.append(
                f"Only {scored} of the {len(self.common)} shared questions are scored by {self.metric} in every run."
            )
        return found


@uncollected()
def compare_many(runs: Sequence[RunFolder], chosen: str = "") -> Many:
    """All metrics of 2 to MOST_RUNS runs; ``chosen``: the metric of the differences ('' = see ``headline``).

    Raises UsageError where there is nothing to compare: too few runs, one run twice, no common question, no
    common metric.
    """
    if len(runs) < 2:
        raise UsageError("Choose at least two runs to compare.")
    if len(runs) > MOST_RUNS:
        raise UsageError(
            f"{len(runs)} runs are too many to compare at once; choose at most {MOST_RUNS}."
        )
    if len({run.name for run in runs}) < len(runs):
        raise UsageError("One run is chosen twice; compare different runs.")
    asked = [examples_of(run) for run in runs]
    common = shared_by(asked)
    if not common:
        these = ", ".join(run.name for run in runs)
        raise UsageError(f"The runs {these} share no question, so they cannot be compared.")
    measures = _measures(runs, chosen)
    names, chosen = tuple(measures), measure(chosen, runs).name if chosen else headline(measures)
    columns = [scores_of(run, names) for run in runs]
    qids = [e.question.qid for e in common]
    clusters = clusters_of(common)
    cells = _rows(
        {name: [column[name] for column in columns] for name in names}, qids, clusters, measures
    )
    sides = tuple(_side(run, examples, set(qids)) for run, examples in zip(runs, asked))
    best = {name: _best(measures[name], row) for name, row in cells.items()}
    against = _against(runs, columns, qids, measures[chosen], clusters)
    over_all = _over_all(
        runs, columns, common, [name for name, one in measures.items() if not one.own]
    )
    return Many(
        sides, tuple(common), chosen, names, cells, best, against, over_all, measures, clusters
    )


def shared_by(asked: Sequence[Sequence[Example]]) -> list[Example]:
    """The questions of the first that all have asked, with the same text."""
    texts = [{e.question.qid: e.question.text for e in examples} for examples in asked]
    return [e for e in asked[0] if all(t.get(e.question.qid) == e.question.text for t in texts)]


def _over_all(
    runs: Sequence[RunFolder],
    columns: Sequence[Mapping[str, Scores]],
    common: Sequence[Example],
    names: Sequence[str],
) -> dict[str, tuple[Together, ...]]:
    """The figures that are no means, over the questions of the means beside them."""
    asked = [name for name in names if "over_all" in metric(name).traits]
    if not asked:
        return {}
    episodes = [run.episodes() for run in runs]
    scored = {
        name: [
            e
            for e in common
            if all(_is_number(column[name].get(e.question.qid)) for column in columns)
        ]
        for name in asked
    }
    return {name: together(name, scored[name], episodes) for name in asked}


def _measures(runs: Sequence[RunFolder], chosen: str) -> dict[str, Measure]:
    found = shared_measures(runs)
    if chosen:
        one = measure(chosen, runs)
        found.setdefault(one.name, one)
    if not found:
        raise UsageError("The runs share no metric; choose one to score them all by.")
    return found


def scores_of(run: RunFolder, names: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Metric → question id → score; None where it failed or is not scored. Metrics that the run did not keep are
    scored anew from its episodes, but for those that only its suite knows."""
    found: dict[str, dict[str, float | None]] = {name: {} for name in names}
    for line in run.scores(only=names[0] if len(names) == 1 else ""):
        if line["metric"] in found:
            found[line["metric"]][line["qid"]] = line.get("value")
    absent = [name for name in names if not found[name]]
    if absent and (absent := [name for name in absent if name not in own_of(run)]):
        episodes = run.episodes()
        asked = [e for e in examples_of(run) if e.question.qid in episodes]
        anew = columns(absent, [(episodes[e.question.qid], e.gold) for e in asked])
        for name, column in anew.items():
            found[name] = {e.question.qid: value for e, value in zip(asked, column.values)}
    return found


def with_mean(run: RunFolder, name: str) -> dict[str, Any]:
    """A run's report with a metric in its ``metrics`` that was chosen later, or that is a suite's own."""
    report = dict(run.report() or {})
    kept = {**report.get("suite", {}), **report.get("metrics", {})}
    found = kept.get(name) or asdict(mean_of(run, measure(name, [run])))
    return {**report, "metrics": {**report.get("metrics", {}), name: found}}


def mean_of(run: RunFolder, of: Measure) -> Mean:
    """A run's mean by a metric over all its questions."""
    scores, examples = scores_of(run, (of.name,))[of.name], examples_of(run)
    qids = [e.question.qid for e in examples]
    column = [scores.get(qid) for qid in qids]
    return means(
        {of.name: column}, clusters_of(examples).labels(qids), {of.name: of.about["range"]}
    )[of.name]


def _rows(
    table: Mapping[str, Sequence[Scores]],
    qids: Sequence[str],
    clusters: Clusters,
    measures: Mapping[str, Measure],
) -> dict[str, tuple[Mean, ...]]:
    """Metric → a mean per run, over the questions that all runs have scored."""
    rows = {}
    for name, scored in table.items():
        both = [qid for qid in qids if all(_is_number(column.get(qid)) for column in scored)]
        columns, bounds = (
            {str(i): [column[qid] for qid in both] for i, column in enumerate(scored)},
            measures[name].about["range"],
        )
        rows[name] = tuple(
            means(columns, clusters.labels(both), dict.fromkeys(columns, bounds)).values()
        )
    return rows


def _is_number(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def _best(of: Measure, row: Sequence[Mean]) -> frozenset[int]:
    values = [mean.value for mean in row]
    known = [value for value in values if value is not None]
    if not known or _same(min(known), max(known)) or of.upward is None:
        return frozenset()
    top = max(known) if of.upward else min(known)
    return frozenset(i for i, value in enumerate(values) if value is not None and _same(value, top))


def _same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=NOISE, abs_tol=NOISE)


def _side(run: RunFolder, examples: Sequence[Example], common: set[str]) -> Side:
    lines = {qid: line for qid, line in heads(run).items() if qid in common}
    failed = sum(bool(line.get("error")) for line in lines.values())
    return Side(
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
    of: Measure,
    clusters: Clusters,
) -> tuple[Against, ...]:
    name, higher = of.name, of.upward is not False
    # The questions of the means, so that no difference contradicts the two means above it.
    scored = [qid for qid in qids if all(_is_number(column[name].get(qid)) for column in columns)]
    kept = [{qid: column[name].get(qid) for qid in scored} for column in columns]
    others = kept[1:]
    pairs = [
        compare(
            name,
            kept[0],
            other,
            higher_is_better=higher,
            clusters=clusters.of,
            comparisons=len(others),
        )
        for other in others
    ]
    return tuple(Against(run.name, pair) for run, pair in zip(runs[1:], with_holm(pairs)))
