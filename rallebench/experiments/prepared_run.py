"""A run of a chain or an agent over a dataset, checked before any model is loaded."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from rallebench.core.errors import Hint, UsageError
from rallebench.core.runs import (
    DEFAULT_OPTIONS,
    DatasetRef,
    FlowSpec,
    PreparedRun,
    RunOptions,
    RunRequest,
    records_sha256,
)
from rallebench.core.types import Example
from rallebench.datasets.reading import read_questions, select
from rallebench.engine.experiment_store import check_free
from rallebench.engine.metric_choice import choose_metrics
from rallebench.engine.store import RunFolder, checked_run_name
from rallebench.metrics.judge_scorers import check_sources, split_judges
from rallebench.workspace.checking import check_flow
from rallebench.workspace.coverage import MOST_PASSAGES, coverage
from rallebench.workspace.paths import WorkspaceFolder


def prepare_run(
    workspace: WorkspaceFolder,
    flow: FlowSpec,
    dataset: str,
    *,
    examples: Sequence[Example] = (),
    limit: int | None = None,
    sampled: bool = False,
    metrics: Sequence[str] | None = None,
    name: str = "",
    label: str = "",
    seed: int = 0,
    may_grow: bool = False,
    options: RunOptions = DEFAULT_OPTIONS,
) -> PreparedRun:
    """Check a run before any model is loaded. Raises UsageError; writes nothing.

    ``examples``: the questions; ``dataset`` is then only their name. ``sampled``: draw the questions by ``seed`` instead of
    taking the first. ``may_grow``: continue a run with more of its first or drawn questions, up to ``limit``, under the same
    fingerprint; a ``limit`` of None keeps its questions. ``options``: those of the run; its stopping rule is applied by
    ``until_decided``.
    """
    if limit == 0 or (limit is not None and limit < -1):
        raise UsageError(f"The number of questions is {limit}; give at least 1, or -1 for all.")
    run_limit, count = limit, limit
    if may_grow and options.resume:
        run_limit, count, drawn = _grow(RunFolder.open(workspace.runs, name), limit)
        if sampled and not drawn:
            raise UsageError(
                f"The run {name!r} was asked the first questions, not drawn ones; continue it with a limit instead of a sample, "
                "or choose another name."
            )
        sampled = drawn
    run_limit, count = (None if n == -1 else n for n in (run_limit, count))
    check_options(options.batch_size, options.max_errors)
    check_flow(workspace, flow)
    ref, examples = _choose_questions(
        workspace, dataset, examples, count, drawn_by=seed if sampled else None
    )
    own, judges = split_judges(metrics or (), workspace.llm_mark)
    chosen = choose_metrics(own or None, examples, ref.name, flow.chain)
    check_sources(judges, examples, ref.name)
    name = checked_run_name(name or fresh_name(workspace, flow.name, ref.name))
    request = RunRequest(
        flow,
        ref,
        examples,
        chosen,
        scorers=judges,
        limit=run_limit,
        seed=seed,
        sampled=sampled,
        label=label,
        name=name,
    )
    missing = coverage(workspace, flow.retrievers, examples, at_most=MOST_PASSAGES)
    warnings = tuple(filter(None, missing.values()))
    exists = (workspace.runs / name).exists()
    if exists and not options.resume:
        raise UsageError(
            f"The run {name!r} exists already in {workspace.runs}.", hint=Hint("resume", name)
        )
    check_free(workspace.path, "run", name)
    if options.resume:
        RunFolder.open(workspace.runs, name).description()
    return PreparedRun(request, options, warnings)


def _choose_questions(
    workspace: WorkspaceFolder,
    dataset: str,
    examples: Sequence[Example],
    count: int | None,
    *,
    drawn_by: int | None,
) -> tuple[DatasetRef, Sequence[Example]]:
    """Return the dataset and the first ``count`` of the given questions, or of its own; ``drawn_by``: the seed of a sample."""
    if examples:
        ref = DatasetRef(dataset, "", records_sha256(examples))
        return ref, select(examples, count, sample_seed=drawn_by)
    ref, path = workspace.dataset_ref(dataset), workspace.dataset(dataset)[1]
    return ref, read_questions(path, count, sample_seed=drawn_by)


def _grow(run: RunFolder, limit: int | None) -> tuple[int | None, int | None, bool]:
    """(the limit in the run's fingerprint, the total number of questions, True if they are drawn at random).

    Raises UsageError for fewer questions than the run already has.
    """
    stored = run.description()
    drawn, known = stored.is_sampled, stored.spec.limit
    if known is None:
        return limit, limit, drawn
    have = len(run.records())
    if limit is not None and -1 < limit < have:
        raise UsageError(
            f"The run {run.name!r} has {have} questions already, so it cannot continue with {limit}; ask for at least {have}, "
            "or choose another name."
        )
    return known, have if limit is None else limit, drawn


def check_options(batch_size: int, max_errors: int | None) -> None:
    """Raise UsageError for an invalid batch size or number of errors."""
    if batch_size < 1:
        raise UsageError(f"The batch size is {batch_size}; it must be at least 1.")
    if max_errors is not None and max_errors < 0:
        raise UsageError(f"The most failed questions are {max_errors}; it must be at least 0.")


def fresh_name(workspace: WorkspaceFolder, flow: str, dataset: str) -> str:
    """An unused run name made from the chain or agent, the dataset and the time."""
    plain = re.sub(r"[^\w.\-]+", "-", f"{flow}-{dataset}")
    start = plain.encode()[:80].decode("utf-8", "ignore").strip("-.")
    base = f"{start}-{time.strftime('%Y%m%d-%H%M%S')}"
    name, n = base, 2
    while (workspace.runs / name).exists():
        name, n = f"{base}-{n}", n + 1
    return name
