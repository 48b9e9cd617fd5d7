"""Perform a maker: its stages one after another, each continued where its file stands, then its files."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.events import Event, Finished, Progress, under
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import disk_error, write_json
from rallebench.core.folders import check_name
from rallebench.core.runs import Backends, RunOptions, RunResult
from rallebench.core.types import Episode, Flow, Question
from rallebench.engine import loop
from rallebench.engine.answer import FIRST_FAILURES
from rallebench.engine.driver import ExperimentResult
from rallebench.experiments.builders import MAKERS, Made, Order, Stage, Suite
from rallebench.experiments.builders._counts import counts_of, with_costs
from rallebench.experiments.builders._files import (
    CARD,
    REPORT,
    card_of,
    question_file,
    refuse_changed,
    refuse_foreign,
    write,
    written,
)
from rallebench.experiments.builders.rows import Row, Rows, short
from rallebench.services.workbench import Workbench

TOLD_EVERY = 0.3
"""Seconds between two words of progress."""


@dataclass(frozen=True, slots=True)
class Filed:
    """A stage ended. ``counts``: ``inputs``, ``rows``, ``kept``, ``left_out`` (why → how many), ``unknown`` (verdicts that could
    not be read), ``failed``, ``edited`` (rows of a person), ``made`` (rows of now) and what asking took."""

    label: str
    about: str
    path: Path
    counts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """The whole. ``files``: all that was made, the question set first; ``report``: one JSON document, see ``report.json``."""

    name: str
    folder: Path
    files: tuple[str, ...]
    counts: Mapping[str, Any]
    notes: tuple[str, ...]
    report: Mapping[str, Any] = field(default_factory=dict)


News = Event | Filed | Done


def make(
    workbench: Workbench,
    maker: str,
    order: Order,
    *,
    batch_size: int = 20,
    max_errors: int | None = None,
) -> Generator[News, None, None]:
    """Perform all stages, yielding progress; ``Done`` is last. Close the generator to stop; what was made is kept.

    Raises RalleError; a UsageError comes before anything is written, but for a file that was changed meanwhile.
    """
    if batch_size < 1:
        raise UsageError(f"--batch-size is {batch_size}; it must be at least 1.")
    if max_errors is not None and max_errors < 0:
        raise UsageError(f"--max-errors is {max_errors}; it must be at least 0.")
    if order.limit is not None and order.limit < 1:
        raise UsageError(f"--limit is {order.limit}; give at least 1, or leave it out for all.")
    check_name("question set", order.name)
    card = card_of(order, maker)
    refuse_foreign(order)
    steps = MAKERS[maker](order)
    work = _Work(workbench, order, card, batch_size, max_errors)
    try:
        step = next(steps)
        while True:
            if isinstance(step, Suite):
                sent: Any = yield from work.suite(step)
            else:
                sent = yield from work.stage(step)
            step = steps.send(sent)
    except StopIteration as end:
        made: Made = end.value
        notes = (*made.notes, *filter(None, [workbench.memo_warning]))
        yield work.finished(maker, replace(made, notes=notes))
    finally:
        steps.close()
        work.close()


class _Work:
    def __init__(
        self,
        workbench: Workbench,
        order: Order,
        card: dict[str, Any],
        batch_size: int,
        max_errors: int | None,
    ) -> None:
        self._workbench, self._order, self._card = workbench, order, card
        self._batch_size, self._max_errors = batch_size, max_errors
        self._lock: Any = None
        self._lease = workbench.lease(f"the builder of the question set {order.name!r}")
        self._rows: list[Rows] = []
        self._filed: list[Filed] = []
        self._errors = 0
        self._told = 0.0

    def close(self) -> None:
        for rows in self._rows:
            rows.close()
        self._lease.close()
        if self._lock is not None:
            self._lock.release()

    # ── stages ───────────────────────────────────────────────────────────────

    def stage(self, stage: Stage) -> Generator[News, None, Rows]:
        rows = Rows(self._order.folder / f"{stage.label}.jsonl")
        self._rows.append(rows)
        before = self._card["read"].get(stage.label) or {}
        made = 0
        if stage.once and before.get("of") == short(stage.once) and rows.path.exists():
            rows.settle_all()
            rows.told = before.get("told") or {}
        else:
            made = yield from (self._asked if stage.make is None else self._made)(stage, rows)
            rows.told = stage.told()
        rows.close()
        if stage.once:
            self._card["read"][stage.label] = {"of": short(stage.once), "told": rows.told}
            write_json(self._order.folder / CARD, self._card)
        filed = Filed(stage.label, stage.about, rows.path, counts_of(rows, made))
        self._filed.append(filed)
        yield filed
        return rows

    def _made(self, stage: Stage, rows: Rows) -> Generator[News, None, int]:
        """The rows of a stage that asks nobody."""
        assert stage.make is not None
        settled, made = [], 0
        for row in stage.inputs():
            of = short(stage.of(row))
            self._open()
            if not rows.has(row["id"], of):
                found = stage.make(row)
                rows.add(row["id"], of, found)
                made += len(found)
            settled.append((row["id"], of))
            if self._time_to_tell():
                yield Progress(stage.label, len(settled))
        self._open()
        rows.settle(settled)
        return made

    def _asked(self, stage: Stage, rows: Rows) -> Generator[News, None, int]:
        """The rows of a stage that asks models, through the one loop; each is written as it comes."""
        assert stage.flow is not None and stage.read is not None
        inputs = {row["id"]: (row, short(stage.of(row))) for row in stage.inputs()}
        todo = [name for name, (_, of) in inputs.items() if not rows.has(name, of)]
        self._open()
        made, before = 0, len(inputs) - len(todo)
        yield Progress(stage.label, before, len(inputs))
        if todo:
            backends = yield from self._backends(stage)
            failures = 0
            flow = _flows(stage, inputs)
            episodes = loop.run(
                flow,
                (Question(name, "") for name in todo),
                backends,
                workflow=f"make {stage.label}",
                memo=self._workbench.memo,
                batch_size=self._batch_size,
            )
            for number, episode in enumerate(episodes, 1):
                row, of = inputs[episode.qid]
                found = stage.read(row, episode)
                rows.add(episode.qid, of, with_costs(found, episode))
                made += len(found)
                failures += bool(episode.error)
                self._check(episode, failures == number and not before, number, len(todo))
                yield Progress(stage.label, before + number, len(inputs))
        rows.settle((name, of) for name, (_, of) in inputs.items())
        return made

    def _backends(self, stage: Stage) -> Generator[News, None, Backends]:
        loading = under(stage.label, self._lease.load_for(stage.llms, ()))
        return (yield from loading)

    def _check(self, episode: Episode, nothing_else: bool, number: int, total: int) -> None:
        if not episode.error:
            return
        self._errors += 1
        if nothing_else and number >= min(FIRST_FAILURES, total):
            raise BackendError(
                f"The first {number} requests all failed, so it was stopped: {episode.error}"
            )
        if self._max_errors is not None and self._errors > self._max_errors:
            raise BackendError(
                f"{self._errors} requests failed, more than --max-errors {self._max_errors}, so it was stopped: {episode.error}"
            )

    def _time_to_tell(self) -> bool:
        now = time.monotonic()
        if now - self._told < TOLD_EVERY:
            return False
        self._told = now
        return True

    def _open(self) -> None:
        """Make the folder and take its lock, at the first row: until then nothing is written."""
        from filelock import FileLock, Timeout

        if self._lock is not None:
            return
        folder = self._order.folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(str(folder / "making.lock"))
            lock.acquire(timeout=0)
        except Timeout:
            raise UsageError(
                f"{self._order.name!r} is being made by another process; wait for it or stop it."
            ) from None
        except OSError as error:
            raise disk_error(folder, error) from error
        self._lock = lock
        write_json(folder / CARD, self._card)

    # ── a suite ──────────────────────────────────────────────────────────────

    def suite(self, step: Suite) -> Generator[News, None, ExperimentResult]:
        order = self._order
        request = ExperimentRequest(
            order.workspace,
            order.llm,
            step.settings,
            order.limit,
            kind=step.suite,
            name=order.name,
        )
        options = RunOptions(self._batch_size, self._max_errors, track=False)
        running = self._workbench.experiments.run(request, options, lease=self._lease)
        with closing(running):
            while True:
                try:
                    event = next(running)
                except StopIteration as end:
                    self._open()
                    result: ExperimentResult = end.value
                    return result
                if isinstance(event, Progress):
                    if self._time_to_tell():
                        yield event
                elif isinstance(event, Finished):
                    filed = _filed(order, event.result)
                    self._filed.append(filed)
                    yield filed

    # ── what comes out ───────────────────────────────────────────────────────

    def finished(self, maker: str, made: Made) -> Done:
        """Write the files; those that are there must be as the last making left them."""
        order = self._order
        self._open()
        targets: dict[Path, Iterable[str]] = {}
        if made.questions:
            targets[question_file(order)] = (
                json.dumps(row, ensure_ascii=False) + "\n" for row in made.questions
            )
        targets |= {order.folder / name: pieces for name, pieces in made.files.items()}
        refuse_changed(targets, written(order))
        self._say_written(map(str, targets))
        wrote = {str(path): write(path, pieces) for path, pieces in targets.items()}
        stages = {filed.label: dict(filed.counts) for filed in self._filed}
        counts = {"questions": len(made.questions), **made.counts, "stages": stages}
        report = {
            "maker": maker,
            "name": order.name,
            "articles": order.articles,
            "llm": order.llm,
            "settings": dict(order.settings),
            "counts": counts,
            "notes": list(made.notes),
            "files": list(wrote),
            "sha256": wrote,
        }
        write_json(order.folder / REPORT, report)
        self._say_written(())
        return Done(order.name, order.folder, tuple(wrote), counts, made.notes, report)

    def _say_written(self, files: Iterable[str]) -> None:
        """Note the files that are about to be written: whatever ends it then, the next making knows them as its own."""
        self._card["writing"] = list(files)
        write_json(self._order.folder / CARD, self._card)


def _filed(order: Order, run: RunResult) -> Filed:
    """A suite's run as a stage."""
    counts = {"inputs": run.n, "rows": run.n, "kept": run.n - run.n_errors, "failed": run.n_errors}
    path = order.workspace.runs / run.run / "episodes.jsonl"
    return Filed(run.request.label, run.request.flow.workflow, path, counts)


def _flows(stage: Stage, inputs: Mapping[str, tuple[Row, str]]) -> Any:
    ask = stage.flow
    assert ask is not None

    def flow(question: Question) -> Flow:
        return ask(inputs[question.qid][0])

    return flow
