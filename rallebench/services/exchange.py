"""Exchange runs with other programs: prediction files, exports, MLflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rallebench.analysis import trec
from rallebench.analysis.agents import logs
from rallebench.analysis.exporting import FORMS
from rallebench.analysis.prediction_files import RUNS
from rallebench.analysis.predictions import import_run
from rallebench.core.errors import Hint, UsageError
from rallebench.core.json_values import JsonObject, JsonValue
from rallebench.core.numbers import plural
from rallebench.core.readers import naming
from rallebench.core.report import RunReport
from rallebench.core.types import Json
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.engine.store import RunFolder
from rallebench.experiments.scorers import SCORERS
from rallebench.experiments.sweeps.results import open_sweep
from rallebench.services.counted_imports import ImportedCounts
from rallebench.services.mlflow_model import log_chain
from rallebench.services.tracking import Tracking, experiment_group
from rallebench.workspace.paths import WorkspaceFolder


def import_predictions(
    workspace: WorkspaceFolder,
    name: str,
    source: Path,
    dataset: str,
    *,
    form: str = "",
    system: str = "",
    skip_bad: bool = False,
) -> tuple[ImportedCounts, str]:
    """Import predictions or an R-Eval log as a scored run; return the counts, and a warning or ''. Raises
    UsageError.
    """
    if form == logs.FORM or (not form and logs.recognises(source)):
        workflow, _, llm = system.partition(":")
        run = logs.import_log(workspace, source, name, workflow=workflow, llm=llm, dataset=dataset)
        return ImportedCounts(run.name, len(run.records())), ""
    if system:
        raise UsageError(
            f"A system belongs to R-Eval's logs (format {logs.FORM}).",
            hint=Hint("leave-out", "system"),
        )
    if not dataset:
        raise UsageError("Predictions answer a dataset.", hint=Hint("choose", "dataset"))
    imported = import_run(workspace, source, dataset, name, form=form, skip_bad=skip_bad)
    run, silent, problems = imported.run, imported.silent, imported.source.problems
    report = run.report() or RunReport()
    n, without = report.n, report.n_errors
    warning = f"{without} of {plural(n, 'question')} have no prediction; they count as failed."
    if silent:
        warning = (
            f"{silent} of {plural(n, 'question')} have no line in {source.name}: in a run of pages nothing was retrieved for them, so "
            "they score 0, as with trec_eval -c."
        )
    notes = list(problems.warnings)
    if problems.count:
        notes.append(f"{plural(problems.count, 'bad row')} of {source.name} left out.")
    rows = tuple(problems.first)
    summary = ImportedCounts(run.name, n - without, without, rows, notes=tuple(notes))
    return summary, warning if without or silent else ""


def export_lines(run: RunFolder, form: str) -> tuple[Iterator[str], str]:
    """Return the lines of a run in another tool's format, and a warning or ''."""
    lines, _ = FORMS[form]
    failed = sum(bool(head.error) for head in run.heads().values())
    warnings = [f"{failed} failed questions are left out."] if failed else []
    if form in RUNS:
        silent = trec.without_line(run)
        if silent:
            warnings.append(
                f"{silent} of {plural(len(run.records()), 'question')} have no line, which scores 0 with trec_eval -c and when the "
                "file is imported; without -c trec_eval leaves them out."
            )
    if form == "qrels":
        number = trec.fractional_grades(run)
        counted = plural(number, "grade")
        warnings = [f"{counted} with a fraction, which trec_eval cannot read."] if number else []
    return lines(run), " ".join(warnings) if form in (*RUNS, "qrels", "kilt", "squad") else ""


def score_predictions(
    suite: str, guess: Path, gold: Path | None, settings: Json | None = None
) -> Json:
    """Score a file of predictions in a suite's format; ``settings``: those of its scorer. Raises RalleError."""
    with naming(f"{guess} or {gold}" if gold else guess, suite):
        return SCORERS[suite](guess, gold, **(settings or {}))


@dataclass(frozen=True, slots=True)
class TrackedWork:
    """A run or an experiment in MLflow. ``runs``: of an experiment, name → MLflow id; ``mlflow_model``: the address of its logged
    chain, or ''."""

    kind: str
    name: str
    mlflow_run_id: str
    runs: Mapping[str, str] = field(default_factory=dict)
    mlflow_model: str = ""

    def to_json(self) -> JsonObject:
        value: dict[str, JsonValue] = {
            self.kind: self.name,
            "mlflow_run_id": self.mlflow_run_id,
        }
        if self.mlflow_model:
            value["mlflow_model"] = self.mlflow_model
        return {**value, "runs": self.runs} if self.runs else value


def track(
    workspace: WorkspaceFolder, tracking: Tracking, name: str, kind: str, *, model: bool = False
) -> TrackedWork:
    """Log a run to MLflow, or the runs of an experiment below one parent. ``model``: also log the run's chain.

    Raises UsageError if the experiment has no finished run, RalleError if MLflow fails.
    """
    if kind == "run":
        run = RunFolder.open(workspace.runs, name)
        run_id = tracking.log_run(run)
        address = log_chain(workspace, tracking.uri, run, run_id) if model else ""
        return TrackedWork(kind, name, run_id, mlflow_model=address)
    if model:
        raise UsageError(
            f"{name!r} is a {kind}; a model is logged with one of its runs.",
            hint=Hint("leave-out", "model"),
        )
    report = (
        open_sweep(workspace, name)  # works even before the sweep has finished
        if kind == "sweep"
        else ExperimentStore(workspace.path).open(name, kind).report
    )
    group = experiment_group(workspace, report, kind) if report else None
    if group is None:
        raise UsageError(
            f"No run of the {kind} {name!r} has ended yet, so there is nothing to send; run it again under its name."
        )
    runs = {
        path.name: tracking.log_run(RunFolder.open(workspace.runs, path.name))
        for path in group.runs
    }
    return TrackedWork(kind, name, tracking.log_group(group), runs)
