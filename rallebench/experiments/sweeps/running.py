"""Run a sweep: every variant a run folder, what variants share is asked once, the winner named at the end."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

from rallebench.core.errors import RalleError, StoppedError
from rallebench.core.types import Chain
from rallebench.engine.answer import Progress
from rallebench.experiments.sweeps import Cell, indexing, run_name, tracked
from rallebench.experiments.sweeps.kept import is_done, keep, note, working_on
from rallebench.experiments.sweeps.results import Swept, as_json, deciding, swept
from rallebench.services import benchmark
from rallebench.services.leases import Lease
from rallebench.services.workbench import Workbench
from rallebench.workspace.entries import chain_to_json
from rallebench.workspace.indexes.ensure import Costs, Described, Prepared, prepare
from rallebench.workspace.indexes.vectors import Building


@dataclass(frozen=True, slots=True)
class Counted:
    """What the indexes of a sweep will take, before the first is built."""

    costs: Costs


@dataclass(frozen=True, slots=True)
class Warned:
    """What the user should know before the first variant runs, one sentence each."""

    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Working:
    """Variant ``number`` of ``total`` (from 1) is at ``done`` of ``questions``; ``said``: what it does else."""

    number: int
    total: int
    cell: Cell
    done: int = 0
    questions: int = 0
    said: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """A variant's run ended. ``error``: why it failed, '' if it did not; ``before``: it had ended already."""

    cell: Cell
    run: str
    error: str = ""
    before: bool = False


def sweep(
    workbench: Workbench,
    name: str,
    chain: Chain,
    variants: Sequence[Cell],
    dataset: str,
    *,
    limit: int | None = None,
    metrics: tuple[str, ...] | None = None,
    by: str = "",
    batch_size: int = 20,
    seed: int = 0,
    max_errors: int | None = None,
    track: bool = True,
) -> Iterator[Counted | Warned | Working | Ended | Swept]:
    """Run all variants, one after another; Swept is last. A sweep of that name with the same content goes on
    where it stopped. A variant that fails is told and the others go on. Raises RalleError for what is wrong
    before the first runs, and if a sweep of that name is being run; StoppedError when a run was stopped, and then the
    sweep can be continued.

    ``by``: the metric that decides, '' = the first of em, accuracy, f1 … that all have. Where the index is varied,
    Counted says first what that takes; an index is prepared right before its variant runs.
    """
    if by:
        deciding(by)
    with working_on(workbench.workspace, name), workbench.lease(f"the sweep {name!r}") as lease:
        yield from _sweep(
            workbench,
            lease,
            name,
            chain,
            variants,
            dataset,
            limit,
            metrics,
            by,
            batch_size,
            seed,
            max_errors,
            track,
        )


def _sweep(
    workbench: Workbench,
    lease: Lease,
    name: str,
    chain: Chain,
    variants: Sequence[Cell],
    dataset: str,
    limit: int | None,
    metrics: tuple[str, ...] | None,
    by: str,
    batch_size: int,
    seed: int,
    max_errors: int | None,
    track: bool,
) -> Iterator[Counted | Warned | Working | Ended | Swept]:
    content: dict[str, Any] = {
        "chain": chain_to_json(chain),
        "variants": [dict(cell.changes) for cell in variants],
        "dataset": dataset,
        "limit": limit,
        "metrics": list(metrics or ()),
        "seed": seed,
    }
    workspace = workbench.workspace
    made = keep(workspace, name, content, [run_name(name, cell) for cell in variants])

    def planned(cell: Cell, run: str) -> benchmark.Plan:
        return benchmark.prepare(
            workspace,
            cell.chain,
            dataset,
            limit=limit,
            metrics=metrics,
            name=run,
            batch_size=batch_size,
            seed=seed,
            max_errors=max_errors,
            resume=(workspace.runs / run).exists(),
            track=track,
        )

    plans = [planned(cell, run) for cell, run in zip(variants, made)]
    if warnings := tuple(dict.fromkeys(sentence for plan in plans for sentence in plan.warnings)):
        yield Warned(warnings)
    wanted = indexing.indexes(workspace, variants)
    for piece in indexing.counting(workspace, variants):
        yield (
            Counted(piece)
            if isinstance(piece, Costs)
            else Working(1, len(variants), variants[0], said=_far(piece))
        )
    note(workspace, name, content, made)
    before = {line.name for line in workbench.status()}
    ended: dict[str, Cell] = {}
    failed: dict[str, str] = {}
    for number, (cell, plan, index) in enumerate(zip(variants, plans, wanted), 1):
        if plan.resume and is_done(workbench.open_run(plan.name)):
            ended[plan.name] = cell
            yield Ended(cell, plan.name, before=True)
            continue
        try:
            cell = yield from _performed(
                workbench, lease, name, cell, plan, index, number, len(plans)
            )
            ended[plan.name] = cell
            yield Ended(cell, plan.name)
            if index is not None and index not in wanted[number:]:
                _let_go(workbench, lease, indexing.retriever_of(cell.chain), before)
        except StoppedError:
            raise
        except RalleError as error:
            failed[cell.label] = str(error)
            yield Ended(cell, plan.name, str(error))
    found = swept(workbench, name, {run: cell.label for run, cell in ended.items()}, failed, by)
    yield replace(found, warning=tracked.track(workbench, as_json(found))) if track else found


def _performed(
    workbench: Workbench,
    lease: Lease,
    name: str,
    cell: Cell,
    plan: benchmark.Plan,
    index: Described | None,
    number: int,
    total: int,
) -> Generator[Working, None, Cell]:
    """Run a variant, over an index that is prepared before if it wants one; the cell as it ran."""
    if index is not None:
        cell, plan = yield from _indexed(workbench, cell, plan, index, number, total)
    for stage in _stages(workbench, plan, lease):
        if isinstance(stage, benchmark.Finished) and stage.state == "stopped":
            raise StoppedError(
                f"The sweep {name!r} was stopped at {cell.label}; start it again to continue."
            )
        done = stage if isinstance(stage, Progress) else None
        said = stage.message or stage.name if isinstance(stage, benchmark.Phase) else ""
        yield Working(number, total, cell, done.done if done else 0, len(plan.examples), said)
    return cell


def _stages(workbench: Workbench, plan: benchmark.Plan, lease: Lease) -> Iterator[Any]:
    with closing(workbench.run(plan, lease=lease)) as stages:
        yield from stages


def _indexed(
    workbench: Workbench,
    cell: Cell,
    plan: benchmark.Plan,
    wanted: Described,
    number: int,
    total: int,
) -> Generator[Working, None, tuple[Cell, benchmark.Plan]]:
    """Prepare the index of a variant; its cell and plan with that as retriever."""
    name = ""
    with closing(prepare(workbench.workspace, wanted, workbench.loads.encoders)) as preparing:
        for piece in preparing:
            if isinstance(piece, Prepared):
                name = piece.name
            else:
                yield Working(number, total, cell, said=_far(piece))
    chain = indexing.with_index(cell.chain, name)
    return replace(cell, chain=chain), replace(plan, chain=chain)


def _let_go(workbench: Workbench, lease: Lease, index: str, before: set[str]) -> None:
    """Unload an index that only its variant needed: a sweep over sizes shall not hold them all."""
    lease.release([index])
    if index not in before:
        with suppress(RalleError):
            workbench.unload(index, told=False)


def _far(piece: Building) -> str:
    return f"{piece.stage} {piece.done:,} of {piece.total:,}" if piece.total else piece.stage
