"""Send runs, groups of runs and traces to MLflow, and open MLflow's own page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Union

from rallebench.analysis.baselines import LABELS
from rallebench.core.errors import BadFileError, RalleError
from rallebench.core.experiment_reports import (
    BaselinesReport,
    ExperimentReport,
    RankingReport,
    SuiteReport,
    VariantResult,
)
from rallebench.core.improvements import IMPROVEMENT
from rallebench.core.report import Estimate, RunReport
from rallebench.core.run_titles import first_chains, is_generated, plain_label, run_title
from rallebench.core.types import Chain, Episode
from rallebench.engine.experiment_store import REPORT, ExperimentStore
from rallebench.engine.store import RunFolder, list_runs
from rallebench.experiments.baselines import baseline_name
from rallebench.services.models import ModelManager
from rallebench.tracking.groups import Group
from rallebench.tracking.view import OUR_PAGE
from rallebench.workspace.paths import WorkspaceFolder

TrackedRow = dict[str, Union[str, int, float, None]]
"""A row of a group's table: column → cell."""
MOST_NOTES = 3
"""Maximum sentences of the report in the parent's description; the report's file has all of them."""


class Tracking:
    """Logging to MLflow. If MLflow cannot be reached, one sentence explains it and the run stays complete."""

    def __init__(
        self,
        workspace: WorkspaceFolder,
        models: ModelManager,
        tracking_uri: str | None,
        allowed_hosts: Sequence[str],
    ) -> None:
        self._workspace, self._models = workspace, models
        self._allowed_hosts = allowed_hosts
        self.uri = tracking_uri
        self._store: dict[str, Any] = {"workspace": workspace.path, "tracking_uri": tracking_uri}
        self.page = OUR_PAGE
        """The address of our page, used in links from logged runs."""

    def track_run(self, folder: RunFolder) -> str:
        """Log a finished run to MLflow; return '' or one sentence explaining a failure."""
        return _try_logging(
            partial(self.log_run, folder), "The run is complete but was not logged to"
        )

    def log_run(self, folder: RunFolder) -> str:
        """Log a run to MLflow with its title and its failure waterfall; return its MLflow id. Raises RalleError."""
        from rallebench.analysis.waterfall import quick_waterfall
        from rallebench.tracking.runs import log_run

        title, waterfall = self._title(folder), quick_waterfall(folder, self._workspace)
        return log_run(folder.path, **self._store, title=title, waterfall=waterfall, page=self.page)

    def _title(self, folder: RunFolder) -> str:
        """Return the title of a run on our page."""
        run = folder.description()
        first: Mapping[str, Chain] = {}
        if run.chain is not None and is_generated(folder.name):
            first = first_chains(_chains(self._workspace))
        before = first.get(run.chain.name) if run.chain else None
        own = ""
        with suppress(BadFileError):
            own = folder.title()
        return run_title(folder.name, run.dataset, run.chain, before, own)

    def log_group(self, group: Group) -> str:
        """Log several runs below one parent run; return the parent's id. Raises RalleError."""
        from rallebench.tracking.groups import log_group

        return log_group(group, lambda path: self.log_run(RunFolder(path)), **self._store)

    def track_experiment(self, report: ExperimentReport, kind: str) -> str:
        """Log an experiment's runs below one parent; return '' or one sentence explaining a failure."""
        group = experiment_group(self._workspace, report, kind)
        if group is None:
            return ""
        complete = f"The {group.kind} {group.name!r} is complete but was not put together in"
        return _try_logging(partial(self.log_group, group), complete)

    def trace(self, episode: Episode, question: str, source: str = "") -> None:
        """Log one episode of ``develop`` or ``chat`` as an MLflow trace; returns at once and never fails."""
        from rallebench.tracking.live import trace_later

        prices = self._models.prices_of_use()
        trace_later(episode, question, **self._store, source=source, prices=prices)

    def start_mlflow(self, run: RunFolder | None = None) -> Iterator[str]:
        """Start MLflow's own page on loopback, yielding progress, then the address of ``run`` there, or of all runs.

        If the run is not logged yet, it is logged first. Raises BackendError.
        """
        from rallebench.tracking.links import read_link
        from rallebench.tracking.server import address_of_all, start_ui
        from rallebench.tracking.view import address_of_run

        if run is not None and read_link(run.path) is None:
            yield "Logging the run to MLflow …"
            self.log_run(run)

        server = start_ui(**self._store, allowed_hosts=self._allowed_hosts)
        while not server.ready():
            yield f"MLflow is starting ({server.seconds_since_start:.0f} s; the first time takes longest) …"
            time.sleep(1.0)
        if run is not None:
            yield server.url + address_of_run(read_link(run.path))
        else:
            yield server.url + address_of_all(**self._store)


def _chains(workspace: WorkspaceFolder) -> Iterator[tuple[str, str, Chain | None]]:
    """Yield (time of creation, name, chain) of all runs, including those in the bin."""
    for run in (*list_runs(workspace.runs), *list_runs(workspace.run_bin)):
        with suppress(RalleError):
            described = run.description()
            yield described.created, run.name, described.chain


def _try_logging(log: Callable[[], str], complete: str) -> str:
    """Call ``log``; return '' on success, otherwise one sentence that begins with ``complete``."""
    try:
        log()
    except RalleError as error:
        return f"{complete} MLflow: {error} It can be logged later."
    return ""


# an experiment as one parent run with its runs below it


def experiment_group(
    workspace: WorkspaceFolder, report: ExperimentReport, kind: str
) -> Group | None:
    """Return the parent run of an experiment, with a row per run, the verdict and the files; None without runs."""
    if isinstance(report, RankingReport):
        return _group_variants(workspace, report, kind)
    if isinstance(report, BaselinesReport):
        return _group_baselines(workspace, report)
    if isinstance(report, SuiteReport) and report.parts:
        return _group_parts(workspace, report)
    return None


def _group_baselines(workspace: WorkspaceFolder, report: BaselinesReport) -> Group | None:
    """Return the baselines below a parent. The run itself is not moved, because it may already be below a sweep's
    parent.
    """
    if not report.lines:
        return None
    names = {"run": report.run, **report.lines}
    rows = []
    for column in ("run", *report.columns):
        means = {name: row[column] for name, row in report.metrics.items() if column in row}
        rows.append({"baseline": column, "run": names.get(column, ""), **_cells(means)})
    return Group(
        baseline_name(report.run, "baselines"),
        "baselines",
        [workspace.runs / name for name in report.lines.values()],
        verdict=f"Baselines of the run {report.run}.",
        rows=_even(rows),
        labels={name: LABELS.get(column, column) for column, name in report.lines.items()},
    )


def _group_parts(workspace: WorkspaceFolder, report: SuiteReport) -> Group:
    rows = [
        {
            "part": part.label,
            "run": part.run,
            **_cells(part.metrics),
            "questions": part.n,
            "failed questions": part.n_errors,
            "seconds": part.seconds,
        }
        for part in report.parts
    ]
    kind, verdict, best = "suite", f"Suite {report.suite}.", ""
    if IMPROVEMENT in report.data:
        kind, verdict, best = IMPROVEMENT, "", "".join(report.data[IMPROVEMENT]["runs"][-1:])
    return Group(
        report.name,
        kind,
        [workspace.runs / part.run for part in report.parts],
        best=best,
        verdict=" ".join(filter(None, [verdict, *report.notes[:MOST_NOTES]])),
        rows=_even(rows),
        labels={part.run: plain_label(part.label) for part in report.parts},
        files=[ExperimentStore(workspace.path).folder(report.name) / REPORT],
    )


def _group_variants(workspace: WorkspaceFolder, report: RankingReport, kind: str) -> Group | None:
    if not report.variants:
        return None
    rows = _even([_variant(workspace, row, report.metric) for row in report.variants])
    columns = list(rows[0])
    for variant, sentence in report.failed.items():
        rows.append({**dict.fromkeys(columns), "variant": variant, "error": sentence})
    names = [row.run for row in report.variants]
    return Group(
        report.sweep,
        kind,
        [workspace.runs / name for name in names],
        best=names[0] if report.metric or len(names) == 1 else "",
        verdict=report.verdict,
        rows=_even(rows),
        labels={row.run: plain_label(row.variant) for row in report.variants},
    )


def _variant(workspace: WorkspaceFolder, row: VariantResult, metric: str | None) -> TrackedRow:
    """Return the row of a variant. If there are several variants, its metrics cover the questions that all of them
    share.
    """
    report = RunFolder(workspace.runs / row.run).report() or RunReport()
    means = row.metrics or report.metrics
    ordered = {name: means[name] for name in sorted(means, key=lambda name: name != metric)}
    cells: TrackedRow = {"variant": row.variant, "run": row.run, **_cells(ordered)}
    if row.difference is not None:
        cells |= {
            "difference to the best": row.difference,
            "difference low": row.low,
            "difference high": row.high,
            "p (corrected)": row.p_corrected,
        }
    return {**cells, "failed questions": report.n_errors, "seconds": report.seconds}


def _cells(means: Mapping[str, Estimate]) -> TrackedRow:
    """Return four columns per mean."""
    cells: TrackedRow = {}
    for name, mean in means.items():
        cells |= {
            name: mean.value,
            f"{name} low": mean.low,
            f"{name} high": mean.high,
            f"{name} n": mean.n,
        }
    return cells


def _even(rows: Sequence[TrackedRow]) -> list[TrackedRow]:
    """Pad the rows so that all have the same columns."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name) for name in columns} for row in rows]
