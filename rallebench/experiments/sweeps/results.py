"""The variants of a sweep that have ended beside each other: who is the best, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rallebench.analysis.ranking import HEADLINES, MultiRunComparison, compare_many
from rallebench.core.errors import UsageError
from rallebench.core.numbers import no_interval
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.engine.store import RunFolder
from rallebench.engine.stored_runs import is_ended
from rallebench.metrics import metric
from rallebench.workspace.paths import Workspace


@dataclass(frozen=True, slots=True)
class SweepReport:
    """``runs``: run name → variant, best first by ``compared.metric``; ``compared`` is None with fewer than two
    runs. ``failed``: variant → sentence. ``alone``: the metrics of the only variant that ended, as in its report."""

    name: str
    runs: Mapping[str, str]
    compared: MultiRunComparison | None
    failed: Mapping[str, str]
    alone: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def equal(self) -> list[str]:
        """The runs that are the best together, as in ``runs`` the cheapest first; one if one alone is the best."""
        if self.compared is None:
            return []
        means = self.compared.cells[self.compared.metric]
        return [
            run
            for run, mean in zip(self.runs, means)
            if _rank(mean.value, True) == _rank(means[0].value, True)
        ]

    @property
    def verdict(self) -> str:
        """Who wins, in one sentence that claims no more than the numbers show."""
        compared, equal = self.compared, self.equal
        if compared is None:
            if not self.runs:
                return "Fewer than two variants ended, so there is nothing to compare."
            only = next(iter(self.runs.values()))
            score = _scored(self.alone)
            return f"Only {only} ended, so there is nothing to compare it with{score}."
        first, count = compared.cells[compared.metric][0], len(compared.against)
        ends = f"[{first.low:.4f}, {first.high:.4f}]" if first.low is not None else ""
        ends = ends or no_interval(first.n, compared.clusters.as_json())
        score = f"{metric(compared.metric).traits['label']} {first.value:.4f} {ends}, n = {first.n}"
        best = f"Best: {self.runs[equal[0]]} ({score})"
        if len(equal) > 1:
            together = ", ".join(self.runs[run] for run in equal)
            best = f"No single best: {together} are equal, listed from the cheapest ({score})"
        if len(equal) == len(self.runs):
            return f"{best}."
        others = [other for other in compared.against if other.name not in equal]
        alike = [self.runs[other.name] for other in others if not other.paired.significant]
        if not alike:
            return f"{best}; the difference to every other variant is more than chance (p < .05, corrected for {count} comparisons)."
        few = next((other.paired.note for other in compared.against if other.corrected is None), "")
        if few:
            return f"{best}; {few} to show a difference."
        names = ", ".join(alike[:5]) + (" …" if len(alike) > 5 else "")
        return f"{best}; no difference is shown to: {names} (p ≥ .05, corrected for {count} comparisons)."


def ranked(
    workspace: Workspace,
    name: str,
    labels: Mapping[str, str],
    failed: Mapping[str, str],
    by: str = "",
) -> SweepReport:
    """The runs of a sweep beside each other, the best first. Raises UsageError for a metric that decides nothing."""
    by = deciding(by) if by else ""
    folders = {run: RunFolder.open(workspace.runs, run) for run in labels}
    reports = {run: folder.report() or {"metrics": {}} for run, folder in folders.items()}
    shared = [m for m in HEADLINES if all(m in report["metrics"] for report in reports.values())]
    decides = by or next(iter(shared), "")
    costs = {run: _cost(folder, reports[run]) for run, folder in folders.items()}

    def best_first(name: str, values: Mapping[str, float | None]) -> list[str]:
        upward = not name or metric(name).traits.get("higher_is_better", True) is not False
        return sorted(values, key=lambda run: (_rank(values[run], upward), costs[run]))

    order = best_first(
        decides,
        {run: report["metrics"].get(decides, {}).get("value") for run, report in reports.items()},
    )
    compared = compare_many([folders[run] for run in order], decides) if len(order) > 1 else None
    if compared is not None:
        # Over the questions that every variant has scored, another one may be the best than over each one's own.
        means = dict(zip(order, compared.cells[compared.metric]))
        again = best_first(compared.metric, {run: means[run].value for run in order})
        if again != order:
            order = again
            compared = compare_many([folders[run] for run in order], compared.metric)
    alone: Mapping[str, Any] = (
        {} if compared else next((report["metrics"] for report in reports.values()), {})
    )
    runs = {run: labels[run] for run in order}
    return SweepReport(name, runs, compared, dict(failed), alone=alone)


def headline(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    """The metric by which a variant is told that is compared with no other; '' if it has none."""
    return next((name for name in HEADLINES if metrics.get(name, {}).get("value") is not None), "")


def _scored(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    name = headline(metrics)
    cell = metrics.get(name, {})
    return f": {metric(name).traits['label']} {cell['value']:.4f}, n = {cell['n']}" if name else ""


def _rank(value: float | None, upward: bool) -> float:
    """Less is better; what only rounding parts has one rank."""
    return float("inf") if value is None else round(-value if upward else value, 9)


def _cost(run: RunFolder, report: Mapping[str, Any]) -> tuple[float, int, float]:
    """What ranks variants of one score: tokens read and written, passages asked for, seconds; not counted is the most."""
    spent = (report.get("cost") or {}).get("total") or {}
    read, written = spent.get("prompt_tokens"), spent.get("completion_tokens")
    chain = run.spec()["spec"]["settings"].get("chain") or {}
    passages = sum(int(action.get("k") or 0) for action in chain.get("actions", ()))
    most, seconds = float("inf"), spent.get("seconds")
    return (
        most if read is None or written is None else read + written,
        passages,
        most if seconds is None else seconds,
    )


def deciding(by: str) -> str:
    """The metric's whole name. Raises UsageError for one that is unknown, or of which neither more nor less is better."""
    entry = metric(by)
    if entry.traits.get("higher_is_better", True) is None:
        raise UsageError(
            f"Neither more nor less of {entry.name} is better, so it cannot decide; choose another metric."
        )
    return entry.name


def as_json(report: SweepReport) -> dict[str, Any]:
    """One JSON document: the variants, best first, with every metric, and the verdict."""
    compared = report.compared
    rows = []
    for i, (run, label) in enumerate(report.runs.items()):
        metrics = dict(report.alone)
        if compared:
            metrics = {name: asdict(row[i]) for name, row in compared.cells.items()}
        against = compared.against[i - 1] if compared and i else None
        paired = against.paired if against else None
        rows.append(
            {
                "run": run,
                "variant": label,
                "metrics": metrics,
                **{key: getattr(paired, key, None) for key in ("difference", "low", "high", "p")},
                "p_corrected": against.corrected if against else None,
            }
        )
    return {
        "sweep": report.name,
        "metric": compared.metric if compared else None,
        "variants": rows,
        "failed": dict(report.failed),
        "verdict": report.verdict,
        "warnings": list(compared.warnings) if compared else [],
    }


def opened(workspace: Workspace, name: str, metric: str = "") -> SweepReport:
    """A stored sweep: its variants that have ended, ranked by ``metric``, and why the others have not. Raises UsageError if
    there is none."""
    stored = ExperimentStore(workspace.path).open(name, "sweep")
    if stored.kind != "sweep":
        raise UsageError(f"{name!r} is no sweep but a {stored.kind}; choose another name.")
    ended: dict[str, str] = {}
    missing: dict[str, str] = {}
    for label, run in stored.runs.items():
        folder = RunFolder(workspace.runs / run)
        if not folder.path.exists():
            missing[label] = "It has no run; start the sweep again to make it."
        elif is_ended(RunFolder.open(workspace.runs, run)):
            ended[run] = label
        else:
            missing[label] = str(folder.state().get("message") or "") or "Its run has not ended."
    return ranked(workspace, name, ended, missing, metric)
