"""The report of a curve of quality against tokens: its points, tables, figure, tests and savings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rallebench.core.experiments import Report
from rallebench.core.json_values import as_json
from rallebench.core.numbers import plural
from rallebench.core.tables import Figure, Table
from rallebench.core.types import Json
from rallebench.engine.clusters import find_clusters
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.published.official import why_unverified
from rallebench.experiments.published.rows import unlike
from rallebench.experiments.significance import test_table
from rallebench.papers.barag import points
from rallebench.papers.barag.modes import OFFICIAL_SETS, SETS
from rallebench.papers.barag.points import BranchedCase, CurvePoint
from rallebench.papers.barag.study import Study
from rallebench.papers.barag.workflow_uncertain import SIGNALS

JUDGED = {
    "both": ("truthfulness", "relevance"),
    "truthfulness": ("truthfulness",),
    "relevance": ("relevance",),
}
"""Quality → the judge's scores averaged into it."""
MEASURES = {
    "both": "mean of the judge's truthfulness and relevance, 1 to 5",
    "truthfulness": "the judge's truthfulness, 1 to 5",
    "relevance": "the judge's relevance, 1 to 5",
    "f1": "word F1 with the best gold answer, 0 for one that declines",
    "em": "exact match with a gold answer",
    "grounded": "share of the answer's words that stand in the question's own article, 0 for one that declines",
}
JUDGED_MODEL = "GPT-4-0613"
"""The paper's model, in the legend of its points."""
READ_ALL = "Read all passages"
"""Heading for the share of questions that read all passages, if drafts read some."""
COLUMNS = ("Input tokens", "Output tokens", "Tokens a question", "Quality", "Coin")


@dataclass(frozen=True, slots=True)
class Curves:
    """The points of all ways to answer. ``seen``: passages that every draft has read; ``by_model``: the model's own decision, if
    it was asked; ``curves``: signal → a point for each threshold; ``trials``: signal → the threshold chosen on half of the
    questions, and reading always, on the other half.
    """

    study: Study
    quality: str
    cases: Sequence[BranchedCase]
    seen: int
    draft: CurvePoint
    full: CurvePoint
    by_model: tuple[CurvePoint, ...]
    curves: Mapping[str, Sequence[CurvePoint]]
    trials: Mapping[str, tuple[CurvePoint, CurvePoint]]

    @property
    def single(self) -> tuple[CurvePoint, ...]:
        """The points without a threshold."""
        return (self.draft, self.full, points.oracle(self.cases), *self.by_model)

    @property
    def about(self) -> str:
        return f"{self.study.name}, {self.study.request.llm}"


def measure_curves(
    study: Study,
    quality: str,
    cases: Sequence[BranchedCase],
    thresholds: Sequence[float],
    *,
    seen: int,
    ask: bool,
) -> Curves:
    """Return the curve of every signal that the drafts have. ``ask``: the model was asked for its decision."""
    curves = {
        signal: points.curve(cases, signal, thresholds)
        for signal in SIGNALS
        if any(case.value(signal) not in (None, 0.0) for case in cases)
    }
    trials = {
        signal: trial for signal in curves if (trial := points.held_out(cases, signal)) is not None
    }
    by_model = (points.model_asked(cases),) if ask else ()
    ends = points.never(cases, seen), points.always(cases)
    return Curves(study, quality, cases, seen, *ends, by_model, curves, trials)


def curve_report(value: Curves, head: Json, notes: Sequence[str]) -> Report:
    """Return the report. ``head``: its first keys; ``notes``: notes on the questions."""
    signals: dict[str, object] = {}
    for signal in value.curves:
        signals[f"{signal}_auroc"] = points.signal_auroc(value.cases, signal)
        if signal in value.trials:
            point, always = value.trials[signal]
            signals[f"{signal}_held_out"] = {**point.to_json(), "always": always.to_json()}
    return Report(
        {
            **head,
            **signals,
            "questions": len(value.cases),
            "points": {point.name: point.to_json() for point in value.single},
            "curves": as_json(value.curves),
        },
        (*notes, *_notes(value)),
        tables=(*_tables(value), *_tests(value)),
        figures=(_figure(value),),
    )


def _notes(value: Curves) -> list[str]:
    notes, seen = list[str](), value.seen
    if seen:
        notes.append(
            f"Every draft has read {plural(seen, 'passage')}, so no point is without retrieval; {READ_ALL} counts the second answers."
        )
    if "confidence" not in value.curves:
        notes.append(
            "No draft has a confidence above 0, so there is no curve of it; all drafts declined, or the model gives none."
        )
    for signal, curve in value.curves.items():
        notes.append(_savings(signal, points.as_good(curve, value.full), value.full))
        if signal in value.trials:
            notes.append(_trial_note(signal, *value.trials[signal]))
    notes.append(
        "The points of a curve are thresholds looked at on the questions that they would be chosen on."
    )
    return notes


def _tables(value: Curves) -> tuple[Table, ...]:
    columns = ("Agent", "Threshold", READ_ALL if value.seen else "Retrieved", *COLUMNS)
    note = f"Quality: {MEASURES[value.quality]}. Coin: reading as many questions, chosen at random."
    lines = {"Without a threshold": value.single, **value.curves}
    return tuple(
        Table(
            f"{title}: {value.about}",
            columns,
            tuple(_row(point, len(value.cases)) for point in own),
            note=note,
        )
        for title, own in lines.items()
    )


def _figure(value: Curves) -> Figure:
    """The curves with the points without a threshold and those that the paper printed."""
    n, study, quality = len(value.cases), value.study, value.quality
    printed = _printed_points(study, quality, n)
    paper = {f"paper: {system}, {JUDGED_MODEL}": point for system, point in printed.items()}
    series: dict[str, tuple[tuple[float, Any], ...]] = {
        f"coin ({value.draft.name} … always)": _line([value.draft, value.full], n),
        **{
            signal: _line(sorted(curve, key=lambda point: point.tokens), n)
            for signal, curve in value.curves.items()
        },
        **{point.name: _line([point], n) for point in value.single[2:]},
        **{name: (point,) for name, point in paper.items()},
    }
    source = published_table(SETS.get(study.name, "barag_table2")).source
    title = f"Quality against tokens: {value.about}"
    return Figure(
        *(title, "tokens a question", MEASURES[quality], series),
        units=("", "share" if quality not in JUDGED else ""),
        printed=dict.fromkeys(paper, source),
    )


def _printed_points(study: Study, quality: str, n: int) -> dict[str, tuple[float, float]]:
    """The paper's ways to answer → their (tokens a question, quality), if ours are of its questions and judged as there."""
    table = published_table(SETS.get(study.name, "barag_table2"))
    name = study.name.removesuffix("_first300")
    if quality not in JUDGED or unlike(name, table.split, n, table.n):
        return {}
    if why_unverified("barag", OFFICIAL_SETS.get(name, name), study.set.examples):
        return {}
    return {
        row.system: (
            sum(row.values[name] for name in ("n_in", "n_out")) / table.n,
            fmean(row.values[score] for score in JUDGED[quality]),
        )
        for row in table.rows
    }


def _trial_note(signal: str, point: CurvePoint, full: CurvePoint) -> str:
    return (
        f"{signal}: chosen so on every second question, the threshold {point.threshold:.4g} gives on the others {point.quality.value:.4f} "
        f"against {full.quality.value:.4f} at {point.tokens / full.tokens - 1:+.1%} tokens."
    )


def _tests(value: Curves) -> tuple[Table, ...]:
    """Comparisons with always reading: drafts alone, the model's own decision, and each threshold on the held-out
    questions."""
    full, quality = value.full, value.quality
    tested = {
        f"{point.name} less {full.name}": (full, point) for point in (value.draft, *value.by_model)
    }
    tested |= {
        f"{signal}, held out, less {always.name}": (always, point)
        for signal, (point, always) in value.trials.items()
    }
    clusters = find_clusters(value.study.set.examples).of
    bounds = dict.fromkeys(JUDGED, (1.0, 5.0))
    return test_table(
        {
            (label, quality): (quality, first.worth, other.worth, clusters)
            for label, (first, other) in tested.items()
        },
        bounds if quality in bounds else None,
    )


def _savings(signal: str, best: CurvePoint | None, full: CurvePoint) -> str:
    """A sentence on the cheapest threshold that is as good as always reading."""
    if best is None:
        return f"{signal}: no threshold keeps {points.ENOUGH:.0%} of the quality of reading always with fewer tokens."
    return (
        f"{signal}: at threshold {best.threshold:.4g}, {best.share:.0%} of the questions read; that is {best.tokens / full.tokens - 1:+.1%} tokens "
        f"compared with reading always, at a quality of {best.quality.value:.4f} against {full.quality.value:.4f}."
    )


def _row(point: CurvePoint, n: int) -> tuple[Any, ...]:
    threshold = None if point.threshold is None else f"{point.threshold:.4g}"
    counts = point.n_in, point.n_out, round(point.tokens / n, 1)
    return (point.name, threshold, f"{point.share:.0%}", *counts, point.quality, point.coin)


def _line(curve: Iterable[CurvePoint], n: int) -> tuple[tuple[float, Any], ...]:
    return tuple((point.tokens / n, point.quality) for point in curve)
