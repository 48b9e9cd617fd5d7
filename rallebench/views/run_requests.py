"""Prepare runs of a chain or an agent from names and overrides."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rallebench.chains.overrides import overridden
from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import DEFAULT_OPTIONS, FlowSpec, PreparedRun, RunOptions
from rallebench.core.starter import DEFAULT_DATASET
from rallebench.core.types import Chain, Example
from rallebench.engine.experiment_store import LONGEST_RUN, folder_name
from rallebench.engine.store import RunFolder
from rallebench.experiments.prepared_run import fresh_name, prepare_run
from rallebench.experiments.sweeps.running import chain_entry
from rallebench.workspace.flows import chain_flow
from rallebench.workspace.paths import WorkspaceFolder

BATCH = 20
"""Default number of questions asked at once."""


@dataclass(frozen=True, slots=True)
class BenchmarkOptions:
    """Options of a benchmark. None means the value in RaLLe's experiment file, or the default. ``sampled``: draw the
    questions at random by ``seed``. ``settings``: ``key=value``. ``examples``: the questions themselves; ``dataset``
    is then only their name. ``run``: the other options of its run; ``batch_size`` replaces its own.
    """

    dataset: str | None = None
    limit: int | None = None
    batch_size: int | None = None
    metrics: tuple[str, ...] | None = None
    sampled: bool = False
    seed: int = 0
    llm: str | None = None
    retriever: str | None = None
    settings: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    run: RunOptions = DEFAULT_OPTIONS


def changed_chain(
    workspace: WorkspaceFolder,
    reference: str | Chain,
    llm: str | None,
    retriever: str | None,
    settings: Sequence[str],
) -> Chain:
    """Return a chain, given directly or by name or file, with another model, retriever and ``key=value`` settings.
    Raises UsageError.
    """
    chain = workspace.chain(reference) if isinstance(reference, str) else reference
    return overridden(chain, llm, retriever, settings)


def of_chain(
    workspace: WorkspaceFolder,
    reference: str | Chain,
    options: BenchmarkOptions,
    *,
    run: str = "",
    resume: bool = False,
) -> PreparedRun:
    """Return the checked benchmark of a chain, given directly or by name or file. Raises UsageError."""
    chain = changed_chain(workspace, reference, options.llm, options.retriever, options.settings)
    if isinstance(reference, str):
        options = _as_in_file(workspace, reference, options)
    return of_flow(workspace, chain_flow(chain), options, run=run, resume=resume)


def batch_request(
    workspace: WorkspaceFolder,
    files: Sequence[tuple[str, Path]],
    options: BenchmarkOptions,
    *,
    title: str,
    run: str = "",
    resume: bool = False,
) -> ExperimentRequest[WorkspaceFolder]:
    """Return the request to run every chain of a folder; ``run``: prefix of the runs' names. A setting need not
    apply to every chain.

    Raises UsageError that names the file.
    """
    chains: dict[str, Any] = {}
    for label, path in files:
        try:
            chains[label] = _entry(workspace, label, str(path), options, run)
        except UsageError as error:
            raise error.saying(f"{path}: {error}") from None
    name = run or folder_name(f"{title} {time.strftime('%Y%m%d-%H%M%S')}", LONGEST_RUN)
    settings = {"title": title, "chains": chains, "metrics": options.metrics, "resume": resume}
    return ExperimentRequest(workspace, "", settings, seed=options.seed, kind="batch", name=name)


def _entry(
    workspace: WorkspaceFolder, label: str, file: str, options: BenchmarkOptions, run: str
) -> dict[str, Any]:
    chain = replace(workspace.chain(file), name=label)
    chain = overridden(chain, options.llm, options.retriever, options.settings, all_fit=False)
    options = _as_in_file(workspace, file, options)
    dataset = options.dataset or DEFAULT_DATASET
    own = f"{run}-{label}" if run else fresh_name(workspace, label, workspace.dataset(dataset)[0])
    return chain_entry(
        file,
        chain,
        dataset,
        options.limit,
        options.sampled,
        BATCH if options.batch_size is None else options.batch_size,
        own,
    )


def _as_in_file(
    workspace: WorkspaceFolder, reference: str, options: BenchmarkOptions
) -> BenchmarkOptions:
    """Fill options that are None from the reference, if it is a RaLLe experiment file."""
    experiment = workspace.experiment(reference)
    if experiment is None:
        return options
    limit, batch = options.limit, options.batch_size
    return replace(
        options,
        dataset=options.dataset or experiment.dataset_name,
        limit=experiment.num_evaluate if limit is None else limit,
        batch_size=experiment.batch_size if batch is None else batch,
    )


def of_flow(
    workspace: WorkspaceFolder,
    flow: FlowSpec,
    options: BenchmarkOptions,
    *,
    run: str = "",
    resume: bool = False,
) -> PreparedRun:
    """Return the checked benchmark of a chain's or an agent's flow. Raises UsageError."""
    rule = options.run.until
    size = BATCH if options.batch_size is None else options.batch_size
    prepared = prepare_run(
        workspace,
        flow,
        options.dataset or DEFAULT_DATASET,
        examples=options.examples,
        limit=options.limit,
        sampled=options.sampled,
        metrics=options.metrics,
        name=run,
        seed=options.seed,
        may_grow=resume and rule is None,
        options=replace(options.run, batch_size=size, resume=resume),
    )
    if rule is None:
        return prepared
    from rallebench.experiments.until_decided import ask_until_decided

    return ask_until_decided(prepared, RunFolder.open(workspace.runs, rule.against), rule)
