"""The finished variants of a sweep: the best one, and the significance of its lead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rallebench.analysis.measures import decided_by
from rallebench.analysis.ranking import compare_many
from rallebench.core.comparison import Comparison
from rallebench.core.costs import CostTotal
from rallebench.core.errors import UsageError
from rallebench.core.experiment_reports import RankingReport, VariantResult
from rallebench.core.numbers import no_interval
from rallebench.core.report import Estimate, RunReport
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.engine.headline import deciding_metric
from rallebench.engine.store import RunFolder
from rallebench.engine.stored_runs import is_ended
from rallebench.metrics import metric
from rallebench.workspace.paths import WorkspaceFolder


def open_sweep(workspace: WorkspaceFolder, name: str, metric: str = "") -> RankingReport:
    """A stored sweep: its finished variants ranked by ``metric``, and the reasons why the others are missing. Raises
    UsageError if the sweep does not exist."""
    stored = ExperimentStore(workspace.path).open(name, "sweep")
    if stored.kind != "sweep":
        raise UsageError(f"{name!r} is not a sweep but a {stored.kind}; choose another name.")
    ended: dict[str, str] = {}
    missing: dict[str, str] = {}
    for label, run in stored.runs.items():
        folder = RunFolder(workspace.runs / run)
        if not folder.path.exists():
            missing[label] = "It has no run; start the sweep again to make it."
        elif is_ended(RunFolder.open(workspace.runs, run)):
            ended[run] = label
        else:
            missing[label] = str(folder.state().message or "") or "Its run has not ended."
    return rank_runs(workspace, name, ended, missing, metric)


def rank_runs(
    workspace: WorkspaceFolder,
    name: str,
    labels: Mapping[str, str],
    failed: Mapping[str, str],
    by: str = "",
) -> RankingReport:
    """Rank the runs of a sweep (run → variant), best first, with all metrics and a verdict.

    ``by``: the ranking metric; by default, the one that suits the chains and their gold. Among equal runs, the cheapest comes
    first. ``failed``: variant → error sentence. Raises UsageError for a metric that cannot rank.
    """
    by = deciding(by) if by else ""
    folders = {run: RunFolder.open(workspace.runs, run) for run in labels}
    reports = {run: folder.report() or RunReport() for run, folder in folders.items()}
    if len(labels) < 2:
        metrics = {run: report.metrics for run, report in reports.items()}
        return list_unranked(name, labels, failed, _verdict_alone(labels, metrics), metrics)
    by = by or decided_by(list(reports.values()))
    costs = {run: _cost(folder, reports[run]) for run, folder in folders.items()}

    def best_first(name: str, values: Mapping[str, float | None]) -> list[str]:
        upward = not name or metric(name).traits.get("higher_is_better", True) is not False
        return sorted(values, key=lambda run: (_rank(values[run], upward), costs[run]))

    own = {run: _value(report.metrics.get(by)) for run, report in reports.items()}
    order = best_first(by, own)
    compared = compare_many([folders[run] for run in order], by)
    # The best run on the shared questions may differ from the best run on each run's own questions.
    means = zip(order, compared.cells[compared.metric])
    again = best_first(compared.metric, {run: mean.value for run, mean in means})
    if again != order:
        compared = compare_many([folders[run] for run in again], compared.metric)
    return RankingReport(
        name,
        compared.metric,
        tuple(_row(compared, i, labels) for i in range(len(labels))),
        failed,
        _verdict(compared, labels),
        tuple(compared.warnings),
    )


def list_unranked(
    name: str,
    labels: Mapping[str, str],
    failed: Mapping[str, str],
    verdict: str,
    metrics: Mapping[str, Mapping[str, Estimate]] | None = None,
) -> RankingReport:
    """The report of variants that cannot be ranked. ``metrics``: run → its metrics."""
    rows = (
        VariantResult(run, label, (metrics or {}).get(run, {})) for run, label in labels.items()
    )
    return RankingReport(name, None, tuple(rows), failed, verdict)


def _row(compared: Comparison, i: int, labels: Mapping[str, str]) -> VariantResult:
    """The run at position ``i``, with its difference from the first."""
    run = compared.sides[i].name
    means = {name: row[i] for name, row in compared.cells.items()}
    result, pair = VariantResult(run, labels[run], means), compared.against.get(run)
    if pair is None:
        return result
    return replace(
        result,
        difference=pair.difference,
        low=pair.low,
        high=pair.high,
        p=pair.p,
        p_corrected=pair.corrected,
    )


def _verdict_alone(labels: Mapping[str, str], metrics: Mapping[str, Mapping[str, Estimate]]) -> str:
    if not labels:
        return "Fewer than two variants ended, so there is nothing to compare."
    ((run, label),) = labels.items()
    name = headline(metrics[run])
    score = ""
    if name:
        mean = metrics[run][name]
        score = f": {metric(name).traits['label']} {mean.value:.4f}, n = {mean.n}"
    return f"Only {label} ended, so there is nothing to compare it with{score}."


def _verdict(compared: Comparison, labels: Mapping[str, str]) -> str:
    """One sentence on the winner that claims no more than the numbers show."""
    means = compared.cells[compared.metric]
    runs = [side.name for side in compared.sides]
    top = _rank(means[0].value, True)
    equal = [run for run, mean in zip(runs, means) if _rank(mean.value, True) == top]
    first, count = means[0], len(compared.against)
    ends = f"[{first.low:.4f}, {first.high:.4f}]" if first.low is not None else ""
    ends = ends or no_interval(first.n, compared.clusters.counts)
    score = f"{metric(compared.metric).traits['label']} {first.value:.4f} {ends}, n = {first.n}"
    best = f"Best: {labels[runs[0]]} ({score})"
    if len(equal) > 1:
        together = ", ".join(labels[run] for run in equal)
        best = f"No single best: {together} are equal, listed from the cheapest ({score})"
    others = {run: pair for run, pair in compared.against.items() if run not in equal}
    if not others:
        return f"{best}."
    alike = [labels[run] for run, pair in others.items() if not pair.significant]
    if not alike:
        return f"{best}; the difference to every other variant is more than chance (p < .05, corrected for {count} comparisons)."
    notes: Sequence[str] = [p.note for p in compared.against.values() if p.corrected is None]
    if notes and notes[0]:
        return f"{best}; {notes[0]} to show a difference."
    names = ", ".join(alike[:5]) + (" …" if len(alike) > 5 else "")
    return (
        f"{best}; no difference is shown to: {names} (p ≥ .05, corrected for {count} comparisons)."
    )


def _value(mean: Estimate | None) -> float | None:
    return mean.value if mean else None


def headline(metrics: Mapping[str, Estimate]) -> str:
    """The metric to show for a single variant; '' if it has none."""
    return deciding_metric(name for name, mean in metrics.items() if mean.value is not None)


def _rank(value: float | None, upward: bool) -> float:
    """A sort key for a value, better values first; values that differ only by rounding are equal."""
    return float("inf") if value is None else round(-value if upward else value, 9)


def _cost(run: RunFolder, report: RunReport) -> tuple[float, int, float]:
    """The cost used to rank variants with equal scores: tokens, requested passages, seconds. Uncounted tokens rank last."""
    spent = report.cost.total if report.cost else CostTotal()
    read, written = spent.prompt_tokens, spent.completion_tokens
    chain = run.description().chain
    retrieves = (a for a in chain.actions if a.kind == "retrieve") if chain else ()
    passages = sum(action.k for action in retrieves)
    most, seconds = float("inf"), spent.seconds
    return (
        most if read is None or written is None else read + written,
        passages,
        most if seconds is None else seconds,
    )


def deciding(by: str) -> str:
    """The full name of a metric. Raises UsageError for an unknown metric, or one without a better direction."""
    entry = metric(by)
    if entry.traits.get("higher_is_better", True) is None:
        raise UsageError(
            f"Neither more nor less of {entry.name} is better, so it cannot decide; choose another metric."
        )
    return entry.name
