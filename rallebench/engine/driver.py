"""Perform an experiment: every run has a folder, uses the one loop, and continues after an interruption."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Union

from rallebench.chains.saved import chain_to_json
from rallebench.core.errors import (
    BadFileError,
    Hint,
    MismatchError,
    RalleError,
    StoppedError,
    UsageError,
)
from rallebench.core.events import (
    Event,
    Failed,
    Finished,
    IndexReady,
    Operation,
    Progress,
    Warned,
    map_events,
    under,
)
from rallebench.core.experiment_reports import ExperimentReport
from rallebench.core.experiments import (
    Experiment,
    ExperimentRequest,
    ExperimentResult,
    FilledRows,
    HasFolder,
    IndexCosts,
    IndexRequest,
    IndexResult,
    MeasureRequest,
    Notice,
    Release,
    Report,
    RequestContent,
    RowsRequest,
    W,
    WorkRequest,
)
from rallebench.core.files import json_lines, write_text
from rallebench.core.json_values import JsonObject
from rallebench.core.own_files import parse, read_sealed, write_sealed
from rallebench.core.runs import RunOptions, RunRequest, RunResult
from rallebench.core.types import digest
from rallebench.engine.execute import execute
from rallebench.engine.experiment_store import (
    LONGEST_RUN,
    ExperimentStore,
    WrittenFiles,
    check_free,
    folder_name,
    run_name,
)
from rallebench.engine.measure import MEND, StoredMeasurements, measurements
from rallebench.engine.ports import WorkContext
from rallebench.engine.rowfile import RowFile
from rallebench.engine.rows import RowsFiller
from rallebench.engine.stored_runs import ended_result

MEASUREMENTS = "measurements"
"""The folder of an experiment's measurements, one file for each request."""


WorkReply = Union[RunResult, IndexResult, RowFile, tuple[JsonObject, ...], None]
"""The reply to a request of an experiment."""


class Player(Protocol):
    """Performs the requests of an experiment: for real, as a dry run, or as a pilot."""

    def play(self, step: WorkRequest) -> Operation[WorkReply]:
        """Perform one request; return the reply. Raises RalleError."""


def drive(experiment: Experiment, player: Player) -> Operation[Report]:
    """Play an experiment to its end. The error of a request is thrown into the experiment. A stop, or a run with other
    settings, ends it instead."""
    with closing(experiment):
        reply: WorkReply = None
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
class ExperimentRules:
    """The rules by which the experiments of one place are run and stored.

    ``noun``: its name in sentences; ``report``: the content of its ``report.json``. ``fixed``: the name belongs to one
    request. Another request is refused, and ended runs are used as they are. ``same``: if not fixed, the settings that may
    not change. ``guarded``: a file that was changed after it was written is refused, not overwritten. ``saves_chain``: its report
    may have a chain.
    """

    noun: str
    report: Callable[[ExperimentResult], ExperimentReport]
    fixed: bool = True
    same: tuple[str, ...] = ()
    guarded: bool = False
    saves_chain: bool = False


class Performer:
    """The player that does the work."""

    def __init__(
        self,
        request: ExperimentRequest[HasFolder],
        context: WorkContext,
        store: ExperimentStore,
        options: RunOptions,
        rules: ExperimentRules,
    ) -> None:
        self._request, self._context, self._store = request, context, store
        self._options, self._rules = replace(options, resume=True), rules
        self._folder = store.folder(request.name)
        self._runs: dict[str, str] = {}
        self._transient = ""
        self._filler = RowsFiller(self._folder, context, self._options, self._save_once)
        self._saved = False
        self.results: list[RunResult] = []
        self.warnings: dict[str, None] = {}

    def play(self, step: WorkRequest) -> Operation[WorkReply]:
        """Perform one request; see Player. Returns None for a request without a result."""
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
        request = complete_run_request(self._request, step)
        self._runs[request.label] = request.name
        if self._rules.fixed and (ended := ended_result(self._context.runs, request)) is not None:
            yield Finished(request.label, request.name, True, ended)
            self.results.append(ended)
            return ended
        size = request.batch_size or self._options.batch_size
        options = replace(self._options, batch_size=size)
        running = execute(request, self._context, options, lambda run: self.save())
        try:
            events: Operation[RunResult] = map_events(
                running, lambda event: self._label_warning(request.dataset.name, event)
            )
            result = yield from events
        except (StoppedError, MismatchError):
            raise
        except RalleError as error:
            yield Failed(request.label, str(error))
            raise
        if result.stopped:
            raise StoppedError(
                f"The {self._rules.noun} was stopped in {request.name!r}.", hint=Hint("start-again")
            )
        self.results.append(result)
        self._repeat_alike(result)
        if request.on_result is not None:
            request.on_result(result)
        return result

    def _repeat_alike(self, result: RunResult) -> None:
        """Repeat the questions of later runs at least as often as those of this one, which may be of an earlier session."""
        repeats, spread = self._options.repeats, result.report and result.report.repeats
        if spread:
            number = max(repeats.number, spread.requested)
            self._options = replace(self._options, repeats=replace(repeats, number=number))

    def _label_warning(self, dataset: str, event: Event) -> Event | None:
        """An event of a run. A warning names its dataset; the second of two equal warnings is dropped (None)."""
        if not isinstance(event, Warned):
            return event
        cache, sentence = self._context.reply_cache(), event.message
        if cache is None or sentence != cache.warning:
            sentence = f"{dataset}: {sentence}"
        if sentence in self.warnings:
            return None
        self.warnings[sentence] = None
        return replace(event, message=sentence)

    def _index(self, step: IndexRequest) -> Operation[IndexResult]:
        result = yield from under(step.label, self._context.ensure_index(step.recipe))
        yield IndexReady(step.label, result.name, result.built)
        if self._transient and self._transient != result.name:
            self._context.release((self._transient,))
        self._transient = result.name if step.transient else ""
        self.save()
        return result

    def _measure(self, step: MeasureRequest) -> Operation[tuple[JsonObject, ...]]:
        """The measurements of a job. Results of an earlier session for the same job are reused."""
        file = self._folder / MEASUREMENTS / f"{folder_name(step.label, LONGEST_RUN)}.json"
        job = digest([step.module, step.job])
        stored = None
        try:
            content = parse(read_sealed(file, MEND), StoredMeasurements, file, MEND)
            stored = content.measurements if content.job == job else None
        except BadFileError as error:
            if file.exists():
                yield Progress(step.label, message=str(error))
        if stored is not None:
            yield Finished(step.label, reused=True)
            return stored
        self.save()
        try:
            lines = yield from under(step.label, measurements(step))
        except RalleError as error:
            yield Failed(step.label, str(error))
            raise
        write_sealed(file, {"job": job, "measurements": lines})
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
        """The complete files of rows."""
        return tuple(self._filler.filled)

    def _save_once(self) -> None:
        if not self._saved:
            self.save()

    def save(self) -> None:
        """Write the request and the runs so far."""
        self._saved = True
        request = self._request
        self._store.save_request(
            request.name, request.kind, request.content, self._runs, self._rules.noun
        )


def run_experiment(
    request: ExperimentRequest[W],
    experiment: Callable[[ExperimentRequest[W]], Experiment],
    context: WorkContext,
    store: ExperimentStore,
    options: RunOptions,
    rules: ExperimentRules,
) -> Operation[ExperimentResult]:
    """Perform all requests of an experiment in turn, and store its report.

    Runs that are complete under the experiment's name are reused. Raises RalleError; UsageError comes before anything is
    written, unless a run of that name was made with other settings.
    """
    check_free(store.root, request.kind, request.name, rules.noun)
    with store.lock(request.name, rules.noun):
        if (rules.fixed or rules.same) and store.exists(request.name):
            _check_same(store.open(request.name).request, request, rules)
        dataset, chain = (
            dataset_file(store.root, request.name),
            chain_file(store.root, request.name),
        )
        folder = store.folder(request.name)
        written = WrittenFiles(folder, guarded=rules.guarded)
        written.refuse_changed([dataset, chain] if rules.saves_chain else [dataset])
        performer = Performer(request, context, store, options, rules)
        try:
            report = yield from drive(experiment(request), performer)
        except (StoppedError, GeneratorExit):
            if not store.exists(request.name):  # stopped before its first run: it is listed, too
                performer.save()
            raise
        finally:
            performer.close()
        report = replace(report, notes=(*report.notes, *performer.warnings))
        performer.save()
        files: dict[Path, str | Iterable[str]] = {}
        if report.questions:
            files[dataset] = json_lines(report.questions)
        if report.chain:
            text = json.dumps(chain_to_json(report.chain), indent=2, ensure_ascii=False)
            files[chain] = f"{text}\n"
        files |= {folder / path: text for path, text in report.files.items()}
        written.write(files)
        to_edit = {folder / path: text for path, text in report.files_to_edit.items()}
        for path, text in to_edit.items():
            if not path.exists():
                write_text(path, text)
        result = ExperimentResult(
            request,
            folder,
            tuple(performer.results),
            report,
            tuple(map(str, (*files, *to_edit))),
            rows=performer.rows,
        )
        stored = rules.report(result)
        store.save_report(request.name, request.content, stored)
        warning = context.track_experiment(stored, request.kind) if options.track else ""
    return replace(result, stored=stored, warning=warning)


def dataset_file(root: Path, name: str) -> Path:
    """The file of a dataset in the workspace ``root``."""
    return root / "datasets" / f"{name}.jsonl"


def chain_file(root: Path, name: str) -> Path:
    """The file of a saved chain in the workspace ``root``."""
    return root / "chains" / f"{name}.json"


def complete_run_request(request: ExperimentRequest[HasFolder], step: RunRequest) -> RunRequest:
    """Return the request of an experiment's run with its name, limit and seed."""
    return replace(
        step,
        name=step.name or run_name(request.name, step.label),
        limit=request.limit if step.limit is None else step.limit,
        seed=request.seed,
    )


def _check_same(
    stored: RequestContent, request: ExperimentRequest[HasFolder], rules: ExperimentRules
) -> None:
    """Raise UsageError for a ``fixed`` experiment if its stored request differs in more than the ranking metric. Raise
    MismatchError if a setting of ``same`` has another value."""

    def comparable(content: RequestContent) -> Any:
        settings = {k: v for k, v in content.settings.items() if k != "metric"}
        return json.loads(json.dumps(replace(content, settings=settings).to_json()))

    if rules.fixed and comparable(stored) != comparable(request.content):
        raise UsageError(
            f"The {rules.noun} {request.name!r} exists already with another content; choose another name."
        )
    for name in rules.same:
        before, now = stored.settings.get(name), request.settings.get(name)
        if before != now:
            raise MismatchError(
                f"{request.name!r} is being made with the {name} {before!r}, not {now!r}; choose another name."
            )
