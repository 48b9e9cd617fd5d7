"""Audits of the graders of a run: calibration, risk against coverage, a proved threshold, and which of two agrees with people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rallebench.analysis.measures import decided_by
from rallebench.core.audits import (
    Calibration,
    GraderAudit,
    GraderComparison,
    JudgeProbes,
    PartAudit,
    ProvenThreshold,
    SelectiveRisk,
    WrongAnswers,
)
from rallebench.core.corrections import cell
from rallebench.core.declining import declines
from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural
from rallebench.core.report import RunReport
from rallebench.core.run_results import MetricEstimate
from rallebench.core.tables import ALL_EQUAL, FEWEST, TOO_FEW, Column, Figure, Table
from rallebench.engine.calibration import FEWEST_ANSWERS, calibrate, count_bins
from rallebench.engine.clusters import find_clusters
from rallebench.engine.grader_agreement import weighted_kappa
from rallebench.engine.judge_flips import MIDDLE
from rallebench.engine.label_corrected import CorrectedEstimate, corrected_difference
from rallebench.engine.score import stored_examples
from rallebench.engine.selective import measure_risk, prove_threshold
from rallebench.engine.statistics import SHARE, Difference, difference, means
from rallebench.engine.store import RunFolder
from rallebench.views.corrections import (
    GradedAnswers,
    LabelSplit,
    check_labelled,
    read_graded,
    split_labelled,
)
from rallebench.views.graders import find_grader, list_graders, read_grades
from rallebench.views.run_questions import LARGE, questions, read_stages, stages_known
from rallebench.workspace.paths import WorkspaceFolder

Floats = NDArray[np.float64]

LABELS = "labels"
"""The truth by people's labels."""
EVERY, ANSWERED, IN_PROMPT = (
    "all answers",
    "without declined answers",
    "with the gold in the prompt",
)
"""Parts of the answers."""
PAST_PROMPT = frozenset(
    {"right", "not_in_answer", "lost_by_format", "in_prompt", "without_answers"}
)
"""Stages of questions whose gold reached a prompt."""
UNEVEN = "The sample drew answers with different chances; calibration counts every labelled answer alike."
PRECISION = 0.9
"""The wished share of right answers, by default."""


def audit_grader(
    workspace: WorkspaceFolder,
    run: RunFolder,
    grader: str = "",
    truth: str = "",
    *,
    precision: float | None = PRECISION,
    seed: int = 0,
) -> GraderAudit:
    """Audit a grader of a run. ``grader``: "confidence", a metric, a judge or its column; by default the first of the run. ``truth``:
    "labels" or a metric; by default the metric that decides. ``precision``: wished of a threshold, None for none.

    Raises UsageError, NotFoundError.
    """
    grader = grader.strip() or next(iter(list_graders(run)), "")
    if not grader:
        raise UsageError(f"The run {run.name!r} has no grader to audit; score it by a judge first.")
    truth = truth.strip() or decided_by([run.report() or RunReport()])
    by = find_grader(grader, [run])
    if truth == by.name:
        raise UsageError(f"{grader!r} cannot be its own truth; name labels or another metric.")
    grader, grades = by.name, read_grades(run, by)
    right, notes = _read_truth(run, grader, truth)
    clusters = find_clusters(stored_examples(run)).of
    qids = [qid for qid in grades if qid in right]
    left = len(grades) - len(qids)
    if left and truth != LABELS:
        notes.append(f"{plural(left, 'answer')} without a score of {truth} left out.")
    sides = _Answers(grades, right, clusters)
    named = list(_parts(workspace, run, qids))
    bins = min((count_bins(len(own)) for _, own in named if len(own) >= FEWEST_ANSWERS), default=2)
    parts = tuple(PartAudit(name, *sides.measure(own, bins)) for name, own in named)
    proof = None if precision is None else sides.prove(qids, precision, seed)
    return GraderAudit(run.name, grader, truth, parts, proof, tuple(notes))


@dataclass(frozen=True, slots=True)
class _Answers:
    grades: Mapping[str, float]
    right: Mapping[str, float]
    clusters: Mapping[str, int]

    def measure(self, qids: list[str], bins: int) -> tuple[Calibration, SelectiveRisk]:
        """Return calibration over at most so many bins, and selective risk, of some answers."""
        sides = self._arrays(qids)
        return calibrate(*sides, bins), measure_risk(*sides)

    def prove(self, qids: list[str], precision: float, seed: int) -> ProvenThreshold:
        """Return the threshold for a wished precision."""
        confidences, truth, clusters = self._arrays(qids)
        return prove_threshold(confidences, truth, precision, clusters, seed)

    def _arrays(self, qids: list[str]) -> tuple[Floats, Floats, list[int]]:
        return (
            np.array([self.grades[qid] for qid in qids], np.float64),
            np.array([self.right[qid] for qid in qids], np.float64),
            [self.clusters[qid] for qid in qids],
        )


def _read_truth(run: RunFolder, grader: str, truth: str) -> tuple[Mapping[str, float], list[str]]:
    """Return question id → truth from 0 to 1, and notes. Raises UsageError for fewer than two labels."""
    if truth != LABELS:
        return read_grades(run, find_grader(truth, [run])), []
    answers = read_graded(run, find_grader(grader, [run]))
    check_labelled(answers)
    notes = []
    if answers.without:
        notes.append(f"{plural(len(answers.without), 'answer')} with wrong gold left out.")
    sample = answers.sample
    if sample and len({x.probability for x in sample.answers}) > 1:
        notes.append(UNEVEN)
    return answers.labels, notes


def _parts(
    workspace: WorkspaceFolder, run: RunFolder, qids: list[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield all answers, and parts of them that differ: those that do not decline, and those with the gold in a prompt."""
    yield EVERY, qids
    if not stages_known(workspace, run) and len(run.heads()) <= LARGE:
        read_stages(workspace, run)
    rows = {row.qid: row for row in questions(workspace, run)}
    answered = [qid for qid in qids if not declines(rows[qid].answer)]
    if 0 < len(answered) < len(qids):
        yield ANSWERED, answered
    within = [qid for qid in qids if rows[qid].stage in PAST_PROMPT]
    if 0 < len(within) < len(qids):
        yield IN_PROMPT, within


def wrong_answers(run: RunFolder, grader: str, truth: str = "") -> WrongAnswers:
    """Return the answers of a run that are wrong by labels or a metric, by default the one that decides; partly right ones are not.
    ``grader``: a column of the judge, for labels. Raises UsageError, NotFoundError."""
    truth = truth.strip() or decided_by([run.report() or RunReport()])
    if not truth:
        raise UsageError(f"The run {run.name!r} has no score that tells wrong answers; score it.")
    right, _ = _read_truth(run, grader, truth)
    return WrongAnswers(truth, frozenset(qid for qid, value in right.items() if value < MIDDLE))


# two graders


def compare_graders(run: RunFolder, first: str, second: str) -> GraderComparison:
    """Compare two graders of a run by their squared distances from the same labels, paired by article.

    Raises UsageError for one grader named twice, a grader without a range, and fewer than two labels.
    """
    if first.strip() == second.strip():
        raise UsageError(f"{first!r} is named twice; name two graders.")
    graded = [read_graded(run, find_grader(name, [run])) for name in (first, second)]
    for answers in graded:
        check_labelled(answers)
    both = graded[0].labels.keys() & graded[1].labels.keys()
    if len(both) < 2:
        raise UsageError(
            f"{plural(len(both), 'labelled answer')} of {run.name!r} {'is' if len(both) == 1 else 'are'} scored by both {first} and {second}; label more."
        )
    return _compare(run, graded, split_labelled(graded, both))


def _compare(run: RunFolder, graded: list[GradedAnswers], split: LabelSplit) -> GraderComparison:
    sides = [split.scores(answers) for answers in graded]
    clusters = list(sides[0].clusters or ())
    distances = [(side.judged - side.labels) ** 2 for side in sides]
    units, n = len(set(clusters)), len(distances[0])
    if sides[0].chances is None:
        paired: Difference | CorrectedEstimate = difference(distances[1] - distances[0], clusters)
    else:
        former, latter = (
            replace(side, labels=own, judged=own, unlabelled=0 * side.unlabelled)
            for side, own in zip(sides, distances)
        )
        paired = corrected_difference(former, latter, weight=0.0)
    names = (graded[0].by.name, graded[1].by.name)
    weights, _ = sides[0].weights
    return GraderComparison(
        run.name,
        names,
        (_distance(names[0], distances[0], clusters), _distance(names[1], distances[1], clusters)),
        MetricEstimate(
            "difference", paired.value, paired.low, paired.high, n, units=units, note=paired.note
        ),
        (
            weighted_kappa(sides[0].labels, sides[0].judged, weights, clusters),
            weighted_kappa(sides[1].labels, sides[1].judged, weights, clusters),
        ),
        n,
        units,
        paired.p,
        split.notes,
    )


def _distance(name: str, values: Floats, clusters: list[int | str]) -> MetricEstimate:
    _, numbers = np.unique(np.asarray(clusters), return_inverse=True)
    mean = means({name: values.tolist()}, numbers.tolist(), {name: SHARE})[name]
    units = len(set(clusters))
    note = "" if mean.low is not None else TOO_FEW if units < FEWEST else ALL_EQUAL
    return MetricEstimate(name, mean.value, mean.low, mean.high, mean.n, units=units, note=note)


# tables and figures


def audit_table(audit: GraderAudit) -> Table:
    """Return one row per part of the answers."""
    heads = (
        Column("answers", "text"),
        Column("n", "count"),
        Column("confidence", "score", "Mean confidence."),
        Column("right", "text", "Share of right answers."),
        Column("gap", "text", "Mean confidence less the share of right answers."),
        Column(
            "error",
            "text",
            "Expected calibration error over bins of equal size, the same number in each row; from 100 answers on.",
        ),
        Column("by chance", "score", "The error that a calibrated grader would have."),
        Column("Brier", "text", "Mean squared distance of confidence and truth; 0 is best."),
        Column("AURC", "text", "Mean share of wrong answers over all coverages; 0 is best."),
    )
    rows = tuple(
        (
            part.part,
            own.right.n,
            own.confidence,
            cell(own.right),
            cell(own.gap, signed=True),
            "–" if own.error.value is None else cell(own.error),
            own.by_chance,
            cell(own.brier),
            cell(part.selective.area),
        )
        for part in audit.parts
        for own in [part.calibration]
    )
    return Table(f"{audit.run}: {audit.grader} against {audit.truth}", heads, rows)


def bin_table(audit: GraderAudit) -> Table:
    """Return the reliability of all answers, one row per bin."""
    heads = (
        Column("confidence", "text"),
        Column("mean", "score"),
        Column("right", "score"),
        Column("answers", "count"),
    )
    rows = tuple(
        (f"{x.low:.3f} to {x.high:.3f}", x.confidence, x.right, x.right.n)
        for x in audit.parts[0].calibration.bins
    )
    return Table("Reliability", heads, rows)


def comparison_table(compared: GraderComparison) -> Table:
    """Return one row per grader."""
    heads = (
        Column("grader", "text"),
        Column("squared distance", "text", "Mean over the labelled answers; 0 is best."),
        Column("weighted kappa", "text", "Agreement with the labels beyond chance."),
    )
    rows = tuple(
        (name, cell(distance), cell(kappa))
        for name, distance, kappa in zip(compared.graders, compared.distances, compared.kappas)
    )
    return Table(f"{compared.run}: two graders against the labels, 0 to 1", heads, rows)


def probe_table(probes: JudgeProbes) -> Table:
    """Return one row per probe of a judge."""
    heads = (
        Column("probe", "text"),
        Column("change", "text"),
        Column("verdicts", "count"),
        Column("flipped", "text", "Share of verdicts that change sides, by article."),
        Column("to right", "count"),
        Column("to wrong", "count"),
        Column("moved", "delta", "Mean change of the score, on 0 to 1."),
        Column("unread", "count"),
    )
    rows = tuple(
        (x.probe, x.about, x.flips.n, cell(x.flips), x.to_right, x.to_wrong, x.moved, x.missing)
        for x in probes.probes
    )
    return Table(f"{probes.run}: probes of {probes.column}", heads, rows)


def reliability_figure(audit: GraderAudit, part: int = 0) -> Figure:
    """Draw the share of right answers over the mean confidence of each bin, beside the line of a calibrated grader."""
    bins = audit.parts[part].calibration.bins
    return Figure(
        "Reliability",
        audit.grader,
        "right",
        {
            audit.grader: tuple((x.confidence, x.right) for x in bins),
            "calibrated": ((0.0, 0.0), (1.0, 1.0)),
        },
        "line",
        units=("share", "share"),
        empty=audit.parts[part].calibration.note,
    )


def coverage_figure(audit: GraderAudit, part: int = 0) -> Figure:
    """Draw the risk over the coverage."""
    selective = audit.parts[part].selective
    points = tuple((x.coverage, x.risk, f"from {x.threshold:.3f} on") for x in selective.points)
    level = selective.area_random
    return Figure(
        "Risk against coverage",
        "coverage",
        "wrong among the given",
        {audit.grader: points, "random": ((0.0, level), (1.0, level))},
        "line",
        units=("share", "share"),
        empty=selective.note,
    )
