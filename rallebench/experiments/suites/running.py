"""Perform a suite: every part a run folder, answered by the one loop, resumed where it stands."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rallebench.core.errors import MismatchError, RalleError, StoppedError, UsageError
from rallebench.core.files import write_json, write_text
from rallebench.engine.answer import work
from rallebench.engine.perform import Backends
from rallebench.engine.store import RunFolder
from rallebench.experiments.suites import (
    SUITES,
    Answered,
    Asked,
    Index,
    Indexed,
    Made,
    Part,
    Release,
    kept,
    tracked,
)
from rallebench.experiments.suites._names import named_backends, run_name
from rallebench.experiments.suites._recording import complete, missing_gold, scored, spec_of
from rallebench.experiments.suites.planning import checked
from rallebench.services.leases import Lease
from rallebench.services.workbench import Workbench
from rallebench.workspace.indexes.ensure import Prepared, prepare


@dataclass(frozen=True, slots=True)
class Working:
    """Part ``label`` is at ``done`` of ``total`` questions (0: not known); ``said``: what it does else."""

    label: str
    done: int = 0
    total: int = 0
    said: str = ""


@dataclass(frozen=True, slots=True)
class Warned:
    """What the user should know before a part runs, one sentence."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A part's run ended; ``before``: it had been complete already and nothing was asked."""

    answered: Answered
    before: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """The whole suite. ``folder`` holds its report and the files it made. ``warning``: why MLflow does not show it as one,
    '' if it does."""

    suite: str
    name: str
    folder: Path
    parts: tuple[Answered, ...]
    made: Made
    files: tuple[str, ...]
    warning: str = ""


def run_suite(
    workbench: Workbench,
    suite: str,
    asked: Asked,
    name: str,
    *,
    batch_size: int = 20,
    max_errors: int | None = None,
    track: bool = True,
    lease: Lease | None = None,
) -> Iterator[Working | Warned | Ended | Finished]:
    """Perform all parts, one after another; Finished is last.

    Parts that a run of the same name and settings has completed are not asked again. Raises RalleError;
    UsageError comes before anything is written, unless a run of that name was made with other settings.
    ``lease``: that of the work which the suite is part of; else it has its own.
    """
    if batch_size < 1:
        raise UsageError(f"--batch-size is {batch_size}; it must be at least 1.")
    if max_errors is not None and max_errors < 0:
        raise UsageError(f"--max-errors is {max_errors}; it must be at least 0.")
    name = checked(suite, asked, name)
    kept.refuse_another(workbench.workspace, suite, name)
    parts = SUITES[suite](asked)
    ended: list[Answered] = []
    warnings: dict[str, None] = {}
    begun = False
    before = {line.name for line in workbench.status()}
    own = workbench.lease(f"the suite {name!r}")
    held = lease or own
    try:
        part = next(parts)
        while True:
            reply: Answered | Indexed | None = None
            try:
                if isinstance(part, Release):
                    _release(workbench, held, [one for one in part.names if one not in before])
                elif isinstance(part, Index):
                    reply = yield from _indexed(workbench, part)
                    if not begun:
                        begun = True
                        kept.note(workbench.workspace, suite, name, asked)
                else:
                    for sentence in missing_gold(workbench.workspace, part):
                        if sentence not in warnings:
                            warnings[sentence] = None
                            yield Warned(sentence)
                    for stage in _perform(
                        workbench, held, part, asked, name, batch_size, max_errors, track
                    ):
                        if not begun and (isinstance(stage, Ended) or stage.total):
                            begun = True
                            kept.note(workbench.workspace, suite, name, asked)
                        if isinstance(stage, Ended):
                            reply = stage.answered
                        yield stage
                    sentence = workbench.memo_warning
                    if sentence and sentence not in warnings:
                        warnings[sentence] = None
                        yield Warned(sentence)
                    assert isinstance(reply, Answered)
                    ended.append(reply)
                    if part.keep is not None:
                        part.keep(reply)
            except (StoppedError, MismatchError):
                raise
            except RalleError as error:
                part = parts.throw(error)
                continue
            part = parts.send(reply)
    except StopIteration as end:
        made: Made = end.value
        made = replace(made, notes=(*made.notes, *warnings))
    finally:
        parts.close()
        own.close()
    folder = workbench.workspace.path / "suites" / name
    for path, text in made.files.items():
        write_text(folder / path, text)
    for path, text in made.to_fill_in.items():
        if not (folder / path).exists():
            write_text(folder / path, text)
    written = tuple(str(folder / path) for path in (*made.files, *made.to_fill_in))
    finished = Finished(suite, name, folder, tuple(ended), made, written)
    report = {
        **as_json(finished),
        "asked": kept.asked_json(asked),
        "made": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    write_json(folder / kept.REPORT, report)
    yield replace(finished, warning=tracked.track(workbench, report)) if track else finished


def _indexed(workbench: Workbench, index: Index) -> Generator[Working, None, Indexed]:
    """Find or build an index."""
    with closing(prepare(workbench.workspace, index.wanted, workbench.loads.encoders)) as preparing:
        for piece in preparing:
            if isinstance(piece, Prepared):
                return Indexed(piece.name, piece.built, piece.encoded)
            far = f" {piece.done:,} of {piece.total:,}" if piece.total else ""
            yield Working(index.label, said=f"{piece.stage}{far}")
    raise AssertionError("prepare ends with the index")


def _release(workbench: Workbench, lease: Lease, names: list[str]) -> None:
    """Let go of what nobody else uses; what cannot be let go now stays."""
    lease.release(names)
    for one in names:
        if workbench.is_loaded(one):
            with suppress(RalleError):
                workbench.unload(one, told=False)


def _perform(
    workbench: Workbench,
    lease: Lease,
    part: Part,
    asked: Asked,
    name: str,
    batch_size: int,
    max_errors: int | None,
    track: bool,
) -> Iterator[Working | Ended]:
    backends = Backends()
    for piece in lease.load_for(named_backends(part)):
        if isinstance(piece, Backends):
            backends = piece
        else:
            yield Working(part.label, said=piece)
    backends, make_flow = part.ready(backends)
    spec = spec_of(part, asked, backends, workbench, batch_size)
    runs, run = workbench.workspace.runs, run_name(name, part.label)
    if (runs / run).exists():
        folder = RunFolder.open(runs, run)
        folder.check_same(spec)
    else:
        folder = RunFolder.create(runs, run, spec, (dict(e.record) for e in part.examples))
    lock = folder.lock()
    try:
        folder.forget_stop()
        yield Working(part.label, total=len(part.examples))
        before = complete(folder, part)
        if not before:
            questions = [example.question for example in part.examples]
            for progress in work(
                folder,
                make_flow,
                questions,
                backends,
                workflow=part.workflow,
                memo=workbench.memo,
                batch_size=batch_size,
                max_errors=max_errors,
            ):
                yield Working(part.label, progress.done, progress.total)
        episodes = folder.episodes()
        if len(episodes) < len(part.examples):
            raise StoppedError(
                f"Stopped in {run!r}; start the suite again with the same --name to continue."
            )
        yield Ended(scored(folder, part, episodes, workbench, track and not before), before)
    finally:
        lock.release()


def as_json(found: Finished) -> dict[str, Any]:
    """One JSON document: every part with its means, then what the suite itself says."""
    return {
        "suite": found.suite,
        "name": found.name,
        "parts": [
            {
                "label": one.part.label,
                "run": one.run,
                "n": one.n,
                "n_errors": one.n_errors,
                "seconds": one.seconds,
                "metrics": {metric: asdict(mean) for metric, mean in one.means.items()},
            }
            for one in found.parts
        ],
        "definitions": {
            metric: said for one in found.parts for metric, said in one.part.metrics.items()
        },
        **found.made.report,
        "notes": list(found.made.notes),
        "tables": [asdict(table) for table in found.made.tables],
        "plots": [asdict(plot) for plot in found.made.plots],
        "files": list(found.files),
        "folder": str(found.folder),
    }
