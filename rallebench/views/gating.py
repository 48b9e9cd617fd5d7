"""Gate a run against a base: decide from their paired interval whether it is worse by more than a margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rallebench.analysis.measures import own_metrics
from rallebench.analysis.power import articles_needed
from rallebench.analysis.question_clusters import slice_ids
from rallebench.analysis.ranking import compare_two
from rallebench.core.comparison import Comparison, PairedComparison
from rallebench.core.deciding import CONFIDENCE, MARGIN
from rallebench.core.errors import Hint, MismatchError, UsageError
from rallebench.core.gating import Gate, check_limits, check_margin
from rallebench.core.json_values import JsonValue
from rallebench.core.numbers import NOISE, plural
from rallebench.core.report import RunReport
from rallebench.core.tables import ALL_EQUAL, ONE_SIDED
from rallebench.engine.statistics import FEWEST_PAIRED
from rallebench.engine.store import RunFolder
from rallebench.views.run_views import RunPair
from rallebench.workspace.paths import WorkspaceFolder

SLICED = "If the group was chosen because the base fails there, the difference flatters the new run; choose it by an earlier run."
"""The warning of a gate on a group of questions."""
UNITS = {"question": "questions", "batch": "batches"}
"""Basis of the clusters → noun of the units; articles for any other."""


def gate_runs(
    new: RunFolder,
    base: RunFolder,
    metric: str = "",
    *,
    margin: float = MARGIN,
    confidence: float = CONFIDENCE,
    common: bool = False,
    part: str = "",
    workspace: WorkspaceFolder | None = None,
) -> Gate:
    """Gate the run ``new`` against ``base`` by a metric ('' for the headline). ``common``: compare only the questions
    that are the same in both. ``part``: only the questions in a group of ``base``, as in "meaning-2"; needs the
    ``workspace``.

    Raises UsageError if they cannot be compared: an unfinished run, other questions or gold, another version of the
    scorer, a metric without a better direction, a margin that is no smaller than the metric's range.
    """
    check_limits(margin, confidence)
    for run in (new, base):
        _check_finished(run)
    only = slice_ids(workspace, base, part) if part and workspace else None
    compared, pair = compare_two(
        base, new, metric, every=False, level=_level(confidence), only=only
    )
    check_margin(margin, pair.metric, compared.measure.bounds)
    reason = not_comparable(compared, new, base)
    if reason:
        raise MismatchError(reason)
    if not common and not pair.watched:
        _check_questions(compared)
    gate = make_gate(compared, pair, margin, confidence)
    return replace(gate, part=part, warnings=(*gate.warnings, SLICED)) if part else gate


def make_gate(
    compared: Comparison,
    pair: PairedComparison,
    margin: float = MARGIN,
    confidence: float = CONFIDENCE,
) -> Gate:
    """Return the gate of the second of two compared runs against the first. ``confidence``: of the pair's interval.

    Raises UsageError if the metric has no better direction.
    """
    upward, base_mean, new_mean = compared.measure.higher_is_better, pair.a, pair.b
    if upward is None or base_mean is None or new_mean is None or pair.difference is None:
        raise UsageError(
            f"Neither a higher nor a lower {pair.metric} is better, so it cannot decide; choose another metric."
        )
    base, new = (side.name for side in compared.sides)
    least, most = compared.measure.bounds
    gate = Gate(
        new,
        base,
        pair.metric,
        new_mean,
        base_mean,
        pair.difference,
        pair.low,
        pair.high,
        upward,
        margin,
        confidence,
        pair.n,
        pair.clusters,
        UNITS.get(compared.clusters.by, "articles"),
        note=pair.note,
        watched=pair.watched,
        exhausted=pair.watched and not any(side.left_out for side in compared.sides),
        gained=pair.gained,
        lost=pair.lost,
        warnings=tuple(compared.warnings),
        span=None if least is None or most is None else most - least,
    )
    return replace(gate, needed=units_needed(gate, pair.standard_error))


def gate_sentence(workspace: WorkspaceFolder, compared: RunPair, titles: Sequence[str]) -> str:
    """Return the verdict on two compared runs at the usual margin, by their titles; '' if the gate would refuse them, or
    if the metric is not a share, for which that margin means nothing.
    """
    runs = compared.runs
    if compared.unit != "fraction":
        return ""
    base, new = (RunFolder.open(workspace.runs, side.name) for side in runs.sides)
    try:
        for run in (base, new):
            _check_finished(run)
        if not compared.pair.watched:
            _check_questions(runs)
        if not_comparable(runs, new, base):
            return ""
        gate = make_gate(runs, compared.pair)
    except UsageError:
        return ""
    first, second = titles
    return f"Gate: {replace(gate, base=first, new=second).word(f'{100 * gate.margin:g} points')}"


def units_needed(gate: Gate, error: float) -> int | None:
    """Return the number of further units that would decide; None if it is decided or no number would. ``error``: the
    standard error of the difference.
    """
    if gate.outcome != "undecided" or gate.note == ONE_SIDED:
        return None
    if gate.note == ALL_EQUAL:
        return gate.equal_units_needed
    total = articles_needed(abs(gate.distance), error, gate.units, _level(gate.confidence))
    if total is None and gate.units < FEWEST_PAIRED:
        further = replace(gate, note=ALL_EQUAL).equal_units_needed if error <= NOISE else None
        total = max(FEWEST_PAIRED, gate.units + (further or 0))
    return None if total is None else max(1, total - gate.units)


def _level(confidence: float) -> float:
    """Return 1 − ``confidence``, without the rounding error of the subtraction."""
    return round(1 - confidence, 12)


def _check_finished(run: RunFolder) -> None:
    report = run.report() or RunReport()
    if run.state().is_active or not report.complete:
        answered = (
            f"{report.n_done:,} of {plural(report.n, 'question')}" if report.n else "no question"
        )
        raise UsageError(
            f"The run {run.name!r} is not finished: {answered} answered and scored.",
            hint=Hint("start-again"),
        )


def _check_questions(compared: Comparison) -> None:
    """Raise MismatchError unless both runs asked the same questions with the same gold."""
    if compared.changed or any(side.left_out for side in compared.sides):
        first, second = (side.name for side in compared.sides)
        raise MismatchError(
            f"Only {len(compared.common):,} of {plural(compared.total, 'question')} are the same in {first!r} and {second!r}.",
            hint=Hint("common"),
        )


def not_comparable(compared: Comparison, new: RunFolder, base: RunFolder) -> str:
    """Return the reason why the scores of two runs are not of one kind, '' if they are."""
    name = compared.metric
    if name in compared.timed and compared.timing:
        return compared.timing[0]
    reports = [run.report() or RunReport() for run in (base, new)]
    first, second = (report.scored_with for report in reports)
    both = f"{base.name!r} and {new.name!r}"
    again = "score both again."
    if first and second and first != second:
        return f"{both} were scored by rallebench {first} and {second}; {again}"
    if compared.measure.own and own_metrics(base).get(name) != own_metrics(new).get(name):
        return f"{both} define {name} differently; choose another metric."
    judges = [_judge(run, report, name) for run, report in zip((base, new), reports)]
    if judges[0] != judges[1]:
        return f"{both} were judged by another model or prompt for {name}; {again}"
    return ""


def _judge(run: RunFolder, report: RunReport, column: str) -> dict[str, JsonValue]:
    """Return the settings of the judge that scored a column, with the fingerprint of its model; {} without a judge."""
    for judge in report.judges:
        if column in judge.columns and judge.run:
            settings = RunFolder(run.path / judge.run).description().spec.settings
            return {key: settings.get(key) for key in ("judge", "backends")}
    return {}
