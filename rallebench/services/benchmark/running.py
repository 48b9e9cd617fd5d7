"""A plan → a scored run folder: load, ask, score, write RaLLe's files, track."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

from rallebench.chains.chain import as_flow
from rallebench.chains.ralle import experiment_to_json
from rallebench.core.errors import RalleError
from rallebench.core.types import Chain, Episode
from rallebench.engine.answer import Progress, work
from rallebench.engine.perform import Backends
from rallebench.engine.ralle_files import write_ralle_files
from rallebench.engine.reply_cache import Memo
from rallebench.engine.score import score_episode, score_run
from rallebench.engine.store import RunFolder
from rallebench.services.benchmark.planning import Plan, missing_gold, run_spec
from rallebench.services.benchmark.warnings import judgements, unknown_before, unread
from rallebench.workspace.entries import chain_from_json
from rallebench.workspace.paths import Workspace

HEADLINE = ("accuracy", "em", "f1", "has_answer", "Rprec", "recall@5")
"""The metrics that are shown while a run goes on."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A benchmark entered a phase: loading, running, scoring, tracking; or has a warning to give before it loads anything."""

    name: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """A benchmark ended; ``warnings`` are sentences for the user."""

    folder: RunFolder
    report: Mapping[str, Any]
    state: str
    warnings: tuple[str, ...] = ()


Stage = Union[Phase, Progress, Finished]


def execute(
    workspace: Workspace,
    plan: Plan,
    load: Callable[[Chain], Iterator[str | Backends]],
    memo: Callable[[], Memo | None],
    track: Callable[[RunFolder], str],
    opened: Callable[[RunFolder], None] = lambda folder: None,
    took: Callable[[Iterable[str]], Mapping[str, Any]] = lambda names: {},
) -> Generator[Stage, None, None]:
    """Run a plan, yielding phases and progress; Finished is last. Raises RalleError; what was answered is kept.

    ``memo`` is opened only when all is loaded: a request that is refused before writes nothing. ``took``: what the models
    and indexes of these names took in memory.
    """
    warnings = missing_gold(workspace, plan.chain, plan.examples)
    if warnings:
        yield Phase("warning", " ".join(warnings))
    backends = Backends()
    for piece in load(plan.chain):
        if isinstance(piece, Backends):
            backends = piece
        else:
            yield Phase("loading", piece)
    if plan.agent:
        backends = plan.agent.with_tools(backends)
    spec = run_spec(plan, backends)
    if plan.resume:
        folder = RunFolder.open(workspace.runs, plan.name)
        folder.check_same(spec)
    remembered = memo()
    if not plan.resume:
        named = [a.target for a in plan.chain.actions if a.template and a.kind != "identity"]
        made = {**spec, "memory": took(named)}
        folder = RunFolder.create(
            workspace.runs, plan.name, made, (dict(e.record) for e in plan.examples)
        )
    lock = folder.lock()
    try:
        folder.forget_stop()
        opened(folder)
        late = unknown_before(workspace, plan, backends)
        if remembered is not None and remembered.warning:
            late += (remembered.warning,)
        if late:
            yield Phase("warning", " ".join(late))
        warnings += late
        judged = judgements(plan, backends)
        yield Phase("running")
        yield from work(
            folder,
            plan.agent.flows(backends)
            if plan.agent
            else lambda question: as_flow(plan.chain, question),
            [example.question for example in plan.examples],
            backends,
            workflow=spec["spec"]["workflow"],
            memo=remembered,
            batch_size=plan.batch_size,
            max_errors=plan.max_errors,
            observe=_observer(plan),
        )
        warnings += unread(judged, judgements(plan, backends))
        yield Phase("scoring")
        report = finish(folder, plan.metrics)
        stopped = not report["complete"]
        if plan.track:
            yield Phase("tracking")
            warnings += tuple(filter(None, [track(folder)]))
        state = "stopped" if stopped else "done"
        _end(folder, report, state, warnings)
        yield Finished(folder, report, state, warnings)
    except (KeyboardInterrupt, GeneratorExit):
        _ended_early(folder, plan, "stopped", "Stopped by you.")
        raise
    except BaseException as error:
        _ended_early(folder, plan, "failed", str(error) or type(error).__name__)
        raise
    finally:
        lock.release()


def _observer(plan: Plan) -> Callable[[Episode], dict[str, float | None]]:
    """A few metrics of each episode as it ends, for whoever watches."""
    names = [name for name in HEADLINE if name in plan.metrics]
    gold = {example.question.qid: example for example in plan.examples}
    return lambda episode: {
        s.metric: s.value for s in score_episode(episode, gold[episode.qid], names)
    }


def finish(folder: RunFolder, metrics: tuple[str, ...]) -> dict[str, Any]:
    """Score what is there and write RaLLe's files."""
    report = score_run(folder, metrics)
    spec = folder.spec()
    made = spec["spec"]["settings"].get("chain")
    chain = chain_from_json(made) if made else None
    config = None
    if chain is not None:
        config = experiment_to_json(
            chain, spec["spec"]["dataset"], spec["spec"]["limit"] or -1, spec["batch_size"]
        )
    write_ralle_files(folder.path, folder.records(), folder.episodes(), report, chain, config)
    return report


def _end(
    folder: RunFolder, report: Mapping[str, Any], state: str, warnings: tuple[str, ...]
) -> None:
    folder.set_state(
        state,
        done=report["n_done"],
        total=report["n"],
        errors=report["n_errors"],
        seconds=report["seconds"],
        message=" ".join(warnings),
    )


def _ended_early(folder: RunFolder, plan: Plan, state: str, message: str) -> None:
    """Whatever was answered is scored, so that a stopped night still has its numbers."""
    report: Mapping[str, Any] = {
        "n_done": 0,
        "n": len(plan.examples),
        "n_errors": 0,
        "seconds": 0.0,
    }
    with contextlib.suppress(RalleError):
        report = finish(folder, plan.metrics)
    _end(folder, report, state, (message,))
