"""Perform a suite: every part a run folder, answered by the one loop, resumed where it stands."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rallebench import __version__
from rallebench.bench.cost import prices_of
from rallebench.bench.perform import Backends
from rallebench.bench.ralle_files import write_ralle_files
from rallebench.bench.runner import work
from rallebench.bench.score import score_run
from rallebench.bench.statistics import means
from rallebench.bench.store import REPORT, SCORES, RunFolder, checked_run_name
from rallebench.benchmark import PACKAGES
from rallebench.errors import StoppedError, UsageError
from rallebench.files import write_json, write_text
from rallebench.indexing import versions
from rallebench.suites import SUITES, Answered, Asked, Made, Part, Values
from rallebench.suites._names import run_name
from rallebench.types import Action, Chain, Episode, RunSpec
from rallebench.workbench import Workbench

COSTS = ("seconds", "prompt_tokens", "completion_tokens")
"""Beside the suite's own metrics, every run is scored by these."""


@dataclass(frozen=True, slots=True)
class Working:
    """Part ``label`` is at ``done`` of ``total`` questions; ``said``: what it does else."""

    label: str
    done: int = 0
    total: int = 0
    said: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """A part's run ended; ``before``: it had been complete already and nothing was asked."""

    answered: Answered
    before: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """The whole suite. ``folder`` holds its report and the files it made."""

    suite: str
    name: str
    folder: Path
    parts: tuple[Answered, ...]
    made: Made
    files: tuple[str, ...]


def run_suite(
    workbench: Workbench,
    suite: str,
    asked: Asked,
    name: str,
    *,
    batch_size: int = 20,
    max_errors: int | None = None,
    track: bool = True,
) -> Iterator[Working | Ended | Finished]:
    """Perform all parts, one after another; Finished is last.

    Parts that a run of the same name and settings has completed are not asked again. Raises RalleError;
    UsageError comes before anything is written, unless a run of that name was made with other settings.
    """
    if SUITES.entry(suite).traits.get("needs_llm", True) and not asked.llm:
        raise UsageError(f"The suite {suite!r} needs a language model; name one with --llm.")
    if batch_size < 1:
        raise UsageError(f"--batch-size is {batch_size}; it must be at least 1.")
    name = checked_run_name(name)
    parts = SUITES[suite](asked)
    ended: list[Answered] = []
    try:
        part = next(parts)
        while True:
            answered = None
            for stage in _perform(workbench, part, asked, name, batch_size, max_errors, track):
                if isinstance(stage, Ended):
                    answered = stage.answered
                yield stage
            assert answered is not None
            ended.append(answered)
            part = parts.send(answered)
    except StopIteration as end:
        made: Made = end.value
    finally:
        parts.close()
    folder = workbench.workspace.path / "suites" / name
    for path, text in made.files.items():
        write_text(folder / path, text)
    finished = Finished(suite, name, folder, tuple(ended), made, tuple(str(folder / path) for path in made.files))
    write_json(folder / "report.json", as_json(finished))
    yield finished


def _perform(
    workbench: Workbench,
    part: Part,
    asked: Asked,
    name: str,
    batch_size: int,
    max_errors: int | None,
    track: bool,
) -> Iterator[Working | Ended]:
    backends = Backends()
    for piece in workbench.load_for(_names(part)):
        if isinstance(piece, Backends):
            backends = piece
        else:
            yield Working(part.label, said=piece)
    spec = _spec(part, asked, backends, batch_size)
    runs, run = workbench.workspace.runs, run_name(name, part.label)
    if (runs / run).exists():
        folder = RunFolder.open(runs, run)
        folder.check_same(spec)
    else:
        folder = RunFolder.create(runs, run, spec, (dict(e.record) for e in part.examples))
    lock = folder.lock()
    try:
        folder.forget_stop()
        before = _complete(folder, part)
        if not before:
            questions = [example.question for example in part.examples]
            for progress in work(
                folder, part.make_flow, questions, backends, workflow=part.workflow, memo=workbench.memo,
                batch_size=batch_size, max_errors=max_errors,
            ):  # fmt: skip
                yield Working(part.label, progress.done, progress.total)
        episodes = folder.episodes()
        if len(episodes) < len(part.examples):
            raise StoppedError(f"Stopped in {run!r}; start the suite again with the same --name to continue.")
        yield Ended(_scored(folder, part, episodes, workbench, track and not before), before)
    finally:
        lock.release()


def _names(part: Part) -> Chain:
    """What is to be loaded, in the form in which a workbench is asked to load."""
    llms = (Action("generate", "-", target=llm) for llm in dict.fromkeys(part.llms))
    retrievers = (Action("retrieve", "-", target=name) for name in dict.fromkeys(part.retrievers))
    return Chain(part.workflow, (*llms, *retrievers))


def _complete(folder: RunFolder, part: Part) -> bool:
    lines = folder.lines()
    qids = (example.question.qid for example in part.examples)
    return folder.state()["state"] == "done" and all(q in lines and not lines[q].get("error") for q in qids)


def _spec(part: Part, asked: Asked, backends: Backends, batch_size: int) -> dict[str, Any]:
    """``run.json``'s content. Its fingerprint changes whenever an episode may."""
    llms = {name: backends.llms[name] for name in part.llms}
    fingerprints = {f"llm {name}": llm.fingerprint for name, llm in llms.items()}
    fingerprints |= {f"retriever {name}": backends.retrievers[name].fingerprint for name in part.retrievers}
    records = hashlib.sha256()
    for example in part.examples:
        records.update(json.dumps(example.record, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    settings = {**part.settings, "backends": fingerprints, "records_sha256": records.hexdigest()}
    spec = RunSpec(part.dataset, part.workflow, settings, COSTS, asked.limit, asked.seed)
    return {
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "fingerprint": spec.fingerprint(),
        "dataset_file": "",
        "spec": {
            "dataset": spec.dataset,
            "workflow": spec.workflow,
            "settings": settings,
            "limit": spec.limit,
            "seed": spec.seed,
        },
        "metrics": list(COSTS),
        "batch_size": batch_size,
        "prices": prices_of(llms),
        "asks_models": [],
        "versions": {"rallebench": __version__, "python": platform.python_version(), **versions(*PACKAGES)},
        "platform": platform.platform(),
    }


def _scored(
    folder: RunFolder, part: Part, episodes: Mapping[str, Episode], workbench: Workbench, track: bool
) -> Answered:
    """Score what was answered; the suite's own means stand in the report under ``suite``."""
    report = score_run(folder, COSTS)
    good = {e.question.qid: episodes[e.question.qid] for e in part.examples if not episodes[e.question.qid].error}
    rows = {e.question.qid: part.score(e, good[e.question.qid]) for e in part.examples if e.question.qid in good}
    values: dict[str, Values] = {metric: {q: row.get(metric) for q, row in rows.items()} for metric in part.metrics}
    found = means({metric: list(column.values()) for metric, column in values.items()})
    write_text(folder.path / SCORES, (folder.path / SCORES).read_text(encoding="utf-8") + _score_lines(values))
    write_json(folder.path / REPORT, {**report, "suite": {name: asdict(mean) for name, mean in found.items()}})
    write_ralle_files(folder.path, folder.records(), episodes, report, None, None)
    warning = workbench.track_run(folder) if track else ""
    folder.set_state(
        "done", done=report["n_done"], total=report["n"], errors=report["n_errors"], seconds=report["seconds"], message=warning
    )  # fmt: skip
    return Answered(part, folder.name, good, values, found, report["n"], report["n_errors"], report["seconds"], warning)


def _score_lines(values: Mapping[str, Values]) -> str:
    rows = ({"qid": qid, "metric": m, "value": value} for m, column in values.items() for qid, value in column.items())
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


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
        "definitions": {metric: said for one in found.parts for metric, said in one.part.metrics.items()},
        **found.made.report,
        "notes": list(found.made.notes),
        "tables": [asdict(table) for table in found.made.tables],
        "plots": [asdict(plot) for plot in found.made.plots],
        "files": list(found.files),
        "folder": str(found.folder),
    }
