"""Exchange data with other programs: imports, exports, prediction files, MLflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rallebench.analysis import trec
from rallebench.analysis.agents import logs
from rallebench.analysis.exporting import FORMS
from rallebench.analysis.predictions import TREC, import_run
from rallebench.core.errors import Hint, UsageError
from rallebench.core.json_values import JsonObject, JsonValue
from rallebench.core.numbers import plural
from rallebench.core.readers import naming
from rallebench.core.report import RunReport
from rallebench.core.sources import Problem
from rallebench.core.types import Json
from rallebench.corpora.cards import Corpus
from rallebench.datasets.r_eval import ids_that_hold
from rallebench.datasets.reading import pick_up
from rallebench.datasets.tasks import SEED
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.engine.store import RunFolder
from rallebench.experiments.scorers import SCORERS
from rallebench.experiments.sweeps.results import open_sweep
from rallebench.services.data import Data
from rallebench.services.mlflow_model import log_chain
from rallebench.services.tracking import Tracking, experiment_group
from rallebench.workspace.environments import import_scholars
from rallebench.workspace.paths import WorkspaceFolder


def pick_questions(dataset: Path, pages: Set[str], number: int) -> tuple[list[Json], int]:
    """Return the first ``number`` records of a dataset whose gold pages are among ``pages``, and the number of
    records read.

    Raises BadFileError for a bad row, UsageError if the corpus has no page ids.
    """
    return pick_up(dataset, pages, number)


@dataclass(frozen=True, slots=True)
class ImportedCounts:
    """The counts of an import. ``problems``: the first bad rows; ``counts``: further counts, for tables of scholars.

    ``gold``: for datasets, the counts of gold answers and pages. ``warnings`` and ``notes``: sentences; None if this
    kind of import has none.
    """

    name: str
    rows: int
    skipped: int = 0
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] | None = None
    notes: tuple[str, ...] | None = None
    gold: GoldCounts | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> Json:
        value: dict[str, Any] = {
            "name": self.name,
            "rows": self.rows,
            "skipped": self.skipped,
            "problems": [asdict(problem) for problem in self.problems],
        }
        if self.gold is not None:
            value["gold"] = asdict(self.gold)
        for key in ("warnings", "notes"):
            if (sentences := getattr(self, key)) is not None:
                value[key] = list(sentences)
        return {**value, **self.counts}


@dataclass(frozen=True, slots=True)
class GoldCounts:
    """Numbers of questions with an accepted answer, with a gold page, and with neither."""

    answers: int
    pages: int
    neither: int


def import_corpus(
    data: Data,
    name: str,
    source: Path,
    *,
    form: str = "",
    page_map: Path | None = None,
    skip_bad: bool = False,
) -> Iterator[str | ImportedCounts]:
    """Import a corpus, yielding progress as sentences and then the counts. For the settings, see
    ``Data.import_corpus``.
    """
    work = data.import_corpus(name, source, form=form, page_map=page_map, skip_bad=skip_bad)
    for event in work:
        if not isinstance(event, Corpus):
            share = f", {event.done / event.total:.0%}" if event.total else ""
            left = "" if event.seconds_left is None else f", about {event.seconds_left:.0f} s left"
            yield f"{event.message}{share}{left}"
            continue
        if event.passages_without_page:
            yield f"Warning: {event.passages_without_page} of {event.passages} passages have no page."
        problems = tuple(event.problems)
        warnings = tuple(event.warnings)
        yield ImportedCounts(event.name, event.passages, event.skipped, problems, warnings)


def import_dataset(
    data: Data,
    name: str,
    source: Path,
    *,
    form: str = "",
    skip_bad: bool = False,
    sample: int = 0,
    seed: int = SEED,
) -> tuple[ImportedCounts, str]:
    """Import a dataset; return its counts, and a sentence about R-Eval's ids or ''. For the settings, see
    ``Data.import_dataset``.
    """
    dataset = data.import_dataset(
        name, source, form=form, skip_bad=skip_bad, sample=sample, seed=seed
    )
    note = ""
    if dataset.form.startswith("r-eval"):
        equal, rows = ids_that_hold(source)
        note = f"The _id of {equal} of {rows} records is the sha256 that R-Eval gives them."
    summary = ImportedCounts(
        dataset.name,
        dataset.questions,
        dataset.skipped,
        dataset.problems,
        dataset.warnings,
        dataset.notes,
        GoldCounts(dataset.answers, dataset.pages, dataset.neither),
    )
    return summary, note


def import_scholar_table(
    workspace: WorkspaceFolder, name: str, source: Path, *, skip_bad: bool = False
) -> ImportedCounts:
    """Import a scholar table. In the result, ``rows`` counts scholars, publications and coauthor relations."""
    table = import_scholars(workspace, name, source, skip_bad=skip_bad)
    counts = {kind: getattr(table, kind) for kind in ("scholars", "publications", "coauthors")}
    rows, problems = sum(counts.values()), tuple(table.problems)
    return ImportedCounts(table.name, rows, table.skipped, problems, counts=counts)


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
    run, silent = import_run(workspace, source, dataset, name, form=form, skip_bad=skip_bad)
    report = run.report() or RunReport()
    n, without = report.n, report.n_errors
    warning = f"{without} of {n} questions have no prediction; they count as failed."
    if silent:
        warning = (
            f"{silent} of {n} questions have no line in {source.name}: for a TREC run nothing was retrieved for them, so "
            "they score 0, as with trec_eval -c."
        )
    summary = ImportedCounts(run.name, n - without, without)
    return summary, warning if without or silent else ""


def export_lines(run: RunFolder, form: str) -> tuple[Iterator[str], str]:
    """Return the lines of a run in another tool's format, and a warning or ''."""
    lines, _ = FORMS[form]
    failed = sum(bool(head.error) for head in run.heads().values())
    warnings = [f"{failed} failed questions are left out."] if failed else []
    if form == TREC:
        silent = trec.without_line(run)
        if silent:
            warnings.append(
                f"{silent} of {len(run.records())} questions have no line, which scores 0 with trec_eval -c and when the "
                "file is imported; without -c trec_eval leaves them out."
            )
    if form == "qrels":
        number = trec.fractional_grades(run)
        counted = plural(number, "grade")
        warnings = [f"{counted} with a fraction, which trec_eval cannot read."] if number else []
    return lines(run), " ".join(warnings) if form in (TREC, "qrels", "kilt") else ""


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
