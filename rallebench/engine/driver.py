"""Perform an experiment: each run a run folder, answered by the one loop, continued where it stands."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from rallebench.core.errors import (
    BadFileError,
    Hint,
    MismatchError,
    RalleError,
    StoppedError,
    UsageError,
)
from rallebench.core.events import Failed, Finished, Operation, Warned, under
from rallebench.core.experiments import (
    Experiment,
    ExperimentRequest,
    IndexCosts,
    IndexRequest,
    IndexResult,
    MeasureRequest,
    Notice,
    Release,
    Report,
    RowsRequest,
    WorkRequest,
)
from rallebench.core.files import json_lines, read_json, write_json, write_text
from rallebench.core.runs import RunOptions, RunRequest, RunResult
from rallebench.core.types import digest
from rallebench.engine.execute import RunContext, execute
from rallebench.engine.experiment_store import (
    LONGEST_RUN,
    ExperimentStore,
    check_free,
    folder_name,
    run_name,
)
from rallebench.engine.measure import measurements
from rallebench.engine.rows import FilledRows, RowsContext, RowsFiller
from rallebench.engine.stored_runs import ended_result
from rallebench.engine.written_files import WrittenFiles

MEASUREMENTS = "measurements"
"""The folder of an experiment's measurements, one file for each request."""


class ExperimentContext(RunContext, RowsContext, Protocol):
    """What the performer needs of the product around it."""

    def ensure_index(self, recipe: Any) -> Operation[IndexResult]:
        """Find or build an index."""

    def index_costs(self, recipes: tuple[Any, ...]) -> Operation[str]:
        """What the indexes of these recipes take, in one sentence."""

    def release(self, names: tuple[str, ...]) -> None:
        """Unload what was loaded for the experiment and is used by nothing else."""

    def track_experiment(self, document: Mapping[str, Any], kind: str) -> str:
        """Put the runs below one parent in MLflow; '' or one sentence on why that did not work."""


class Player(Protocol):
    """What performs the requests of an experiment: for real, as a dry run, or as a pilot."""

    def play(self, step: WorkRequest) -> Operation[Any]:
        """Perform one request; returns what the experiment is sent. Raises RalleError."""


def drive(experiment: Experiment, player: Player) -> Operation[Report]:
    """Play an experiment to its end. What fails is thrown into it; a stop and a run made with other settings end it."""
    with closing(experiment):
        reply: Any = None
        error: RalleError | None = None
        while True:
            try:
                step = experiment.throw(error) if error else experiment.send(reply)
            except StopIteration as end:
                report: Report = end.value
                return report
            reply, error = None, None
            try:
                reply = yield from player.play(step)
            except (StoppedError, MismatchError):
                raise
            except RalleError as failure:
                error = failure


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """An experiment that has ended. ``folder`` holds its report and the files that it made; ``document``: the report as one
    JSON document; ``warning``: why MLflow does not show it as one, '' if it does."""

    request: ExperimentRequest
    folder: Path
    runs: tuple[RunResult, ...]
    report: Report
    files: tuple[str, ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict)
    warning: str = ""
    rows: tuple[FilledRows, ...] = ()


class Performer:
    """The player that does the work."""

    def __init__(
        self,
        request: ExperimentRequest,
        context: ExperimentContext,
        store: ExperimentStore,
        options: RunOptions,
        noun: str,
        fixed: bool,
    ) -> None:
        self._request, self._context, self._store = request, context, store
        self._options, self._noun, self._fixed = replace(options, resume=True), noun, fixed
        self._runs: dict[str, str] = {}
        self._transient = ""
        self._filler = RowsFiller(
            store.folder(request.name), context, self._options, self._save_once
        )
        self._saved = False
        self.results: list[RunResult] = []
        self.warnings: dict[str, None] = {}

    def play(self, step: WorkRequest) -> Operation[Any]:
        """Perform one request."""
        if isinstance(step, RunRequest):
            return (yield from self._run(step))
        if isinstance(step, IndexRequest):
            return (yield from self._index(step))
        if isinstance(step, MeasureRequest):
            return (yield from self._measure(step))
        if isinstance(step, RowsRequest):
            return (yield from self._filler.fill(step))
        if isinstance(step, IndexCosts):
            sentence = yield from self._context.index_costs(step.recipes)
            yield Warned("", sentence)
        elif isinstance(step, Notice):
            for sentence in step.sentences:
                self.warnings[sentence] = None
                yield Warned("", sentence)
        elif isinstance(step, Release):
            self._context.release(step.names)
        return None

    def _run(self, step: RunRequest) -> Operation[RunResult]:
        request = run_of(self._request, step)
        self._runs[request.label] = request.name
        if self._fixed and (result := ended_result(self._context.runs, request)) is not None:
            yield Finished(request.label, request.name, True, result)
            self.results.append(result)
            return result
        size = request.batch_size or self._options.batch_size
        options = replace(self._options, batch_size=size)
        running = execute(request, self._context, options, lambda run: self.save())
        try:
            result = yield from self._heard(running, request)
        except (StoppedError, MismatchError):
            raise
        except RalleError as error:
            yield Failed(request.label, str(error))
            raise
        if result.stopped:
            raise StoppedError(
                f"The {self._noun} was stopped in {request.name!r}.", hint=Hint("start-again")
            )
        self.results.append(result)
        if request.on_result is not None:
            request.on_result(result)
        return result

    def _heard(self, running: Operation[RunResult], request: RunRequest) -> Operation[RunResult]:
        """The events of a run, a warning only the first time, with the dataset that it is about."""
        with closing(running):
            while True:
                try:
                    event = next(running)
                except StopIteration as end:
                    result: RunResult = end.value
                    return result
                if isinstance(event, Warned):
                    cache = self._context.reply_cache()
                    general = cache is not None and event.message == cache.warning
                    sentence = (
                        event.message if general else f"{request.dataset.name}: {event.message}"
                    )
                    if sentence in self.warnings:
                        continue
                    self.warnings[sentence] = None
                    event = replace(event, message=sentence)
                yield event

    def _index(self, step: IndexRequest) -> Operation[IndexResult]:
        result = yield from under(step.label, self._context.ensure_index(step.recipe))
        if self._transient and self._transient != result.name:
            self._context.release((self._transient,))
        self._transient = result.name if step.transient else ""
        self.save()
        return result

    def _measure(self, step: MeasureRequest) -> Operation[tuple[Mapping[str, Any], ...]]:
        """The measurements of a job, those of an earlier session where it measured the same."""
        folder = self._store.folder(self._request.name) / MEASUREMENTS
        file = folder / f"{folder_name(step.label, LONGEST_RUN)}.json"
        job = digest([step.module, step.job])
        stored = None
        with suppress(BadFileError, KeyError, TypeError):  # none yet, or damaged: measured anew
            content = read_json(file)
            stored = tuple(content["measurements"]) if content["job"] == job else None
        if stored is not None:
            yield Finished(step.label, reused=True)
            return stored
        self.save()
        try:
            lines = yield from under(step.label, measurements(step))
        except RalleError as error:
            yield Failed(step.label, str(error))
            raise
        write_json(file, {"job": job, "measurements": lines})
        yield Finished(step.label)
        return lines

    def close(self) -> None:
        """Close the files of rows and unload the last transient index."""
        self._filler.close()
        if self._transient:
            self._context.release((self._transient,))
            self._transient = ""

    @property
    def rows(self) -> tuple[FilledRows, ...]:
        """The files of rows that are complete."""
        return tuple(self._filler.filled)

    def _save_once(self) -> None:
        if not self._saved:
            self.save()

    def save(self) -> None:
        """Write the request and the runs so far."""
        self._saved = True
        self._store.save_request(
            self._request.name, self._request.kind, self._request.as_json(), self._runs, self._noun
        )


def perform(
    request: ExperimentRequest,
    experiment: Callable[[ExperimentRequest], Experiment],
    context: ExperimentContext,
    store: ExperimentStore,
    options: RunOptions,
    *,
    document: Callable[[ExperimentResult], Mapping[str, Any]],
    noun: str,
    fixed: bool = False,
    same: tuple[str, ...] = (),
    guarded: bool = False,
) -> Operation[ExperimentResult]:
    """Perform all requests of an experiment, one after another, and store its report.

    Runs that are complete under the experiment's name are not asked again. Raises RalleError; UsageError comes before
    anything is written, unless a run of that name was made with other settings. ``document``: the report as JSON. ``fixed``:
    the name stands for one request, so that another one is refused, and a run that has ended needs no second look; ``same``: else the settings that must be the same.
    ``guarded``: a file that was changed since it was written is refused, not written over.
    """
    check_free(store.root, request.kind, request.name, noun)
    with store.locked(request.name, noun):
        if fixed and store.exists(request.name):
            _check_same(store.open(request.name).request, request, noun)
        if same and store.exists(request.name):
            _check_settings(store.open(request.name).request["settings"], request, same)
        folder = store.folder(request.name)
        written = WrittenFiles(folder) if guarded else None
        if written:
            written.refuse_changed([dataset_file(store.root, request.name)])
        performer = Performer(request, context, store, options, noun, fixed)
        try:
            report = yield from drive(experiment(request), performer)
        finally:
            performer.close()
        report = replace(report, notes=(*report.notes, *performer.warnings))
        targets: dict[Path, str | Iterable[str]] = {
            folder / path: text for path, text in report.files.items()
        }
        if report.questions:
            questions = json_lines(report.questions)
            targets = {dataset_file(store.root, request.name): questions, **targets}
        performer.save()
        if written:
            written.write(targets)
        else:
            for path, pieces in targets.items():
                write_text(path, pieces)
        for path, text in report.files_to_edit.items():
            if not (folder / path).exists():
                write_text(folder / path, text)
        edited = (folder / path for path in report.files_to_edit)
        files = tuple(str(path) for path in (*targets, *edited))
        result = ExperimentResult(
            request, folder, tuple(performer.results), report, files, rows=performer.rows
        )
        value = document(result)
        store.save_report(
            request.name,
            {**value, "request": request.as_json(), "made": time.strftime("%Y-%m-%dT%H:%M:%S%z")},
        )
        warning = context.track_experiment(value, request.kind) if options.track else ""
    return replace(result, document=value, warning=warning)


def dataset_file(root: Path, name: str) -> Path:
    """Where a dataset of the workspace ``root`` lies."""
    return root / "datasets" / f"{name}.jsonl"


def run_of(request: ExperimentRequest, step: RunRequest) -> RunRequest:
    """A run that the experiment ``request`` asks for, with its name, limit and seed."""
    return replace(
        step,
        name=step.name or run_name(request.name, step.label),
        limit=request.limit if step.limit is None else step.limit,
        seed=request.seed,
    )


def _check_settings(
    stored: Mapping[str, Any], request: ExperimentRequest, names: tuple[str, ...]
) -> None:
    """MismatchError if the experiment of that name was made with another value of one of these settings."""
    for name in names:
        if stored.get(name) != request.settings.get(name):
            raise MismatchError(
                f"{request.name!r} is being made with the {name} {stored.get(name)!r}, not {request.settings.get(name)!r}; "
                "choose another name."
            )


def _check_same(stored: Mapping[str, Any], request: ExperimentRequest, noun: str) -> None:
    """UsageError if an experiment of that name asks for something else. What ranks its results may differ."""

    def content(value: Mapping[str, Any]) -> Any:
        settings = {k: v for k, v in value["settings"].items() if k != "metric"}
        return json.loads(json.dumps({**value, "settings": settings}))

    if content(stored) != content(request.as_json()):
        raise UsageError(
            f"The {noun} {request.name!r} exists already with another content; choose another name."
        )
