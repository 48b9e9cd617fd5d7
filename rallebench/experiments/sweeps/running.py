"""Sweeps and folders of chains as experiments. Each variant or chain becomes a run, and the runs are ranked."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rallebench.chains.overrides import override
from rallebench.chains.saved import chain_from_json, chain_to_json
from rallebench.core.errors import BackendError, RalleError, UsageError
from rallebench.core.experiments import (
    Experiment,
    ExperimentRequest,
    IndexCosts,
    IndexRequest,
    IndexResult,
    Notice,
    Release,
    Report,
)
from rallebench.core.runs import PreparedRun, RunOptions, RunRequest
from rallebench.core.settings import fill, parse_settings
from rallebench.core.types import Chain, Json
from rallebench.engine.experiment_store import ExperimentStore, run_name
from rallebench.engine.store import RunFolder
from rallebench.engine.stored_runs import ended_result, is_of
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.prepared_run import prepare_run
from rallebench.experiments.sweeps import Variant, expand, factor, indexing
from rallebench.experiments.sweeps.results import deciding, list_unranked, rank_runs
from rallebench.workspace.flows import chain_flow
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """The stored settings of a sweep. ``metrics``: [] for the default ones; ``sampled``: the seed draws the questions."""

    chain: Json
    vary: Sequence[str]
    strategy: str
    dataset: str
    metrics: Sequence[str] = ()
    metric: str = ""
    sampled: bool = False


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The stored settings of a batch. ``chains``: label → BatchedChain as JSON; ``title``: its name in MLflow; ``resume``:
    existing runs may be continued."""

    chains: Mapping[str, Json]
    title: str
    metrics: Sequence[str] = ()
    resume: bool = False


@dataclass(frozen=True, slots=True)
class BatchedChain:
    """A chain of a batch. ``file``: its path, for error messages; ``run``: the name of its run."""

    file: str
    chain: Json
    dataset: str
    limit: int | None
    batch_size: int
    run: str
    sampled: bool = False


def sweep_settings(
    chain: Chain,
    vary: Sequence[str],
    dataset: str,
    *,
    strategy: str = "one-factor",
    metrics: tuple[str, ...] | None = None,
    metric: str = "",
    sampled: bool = False,
) -> dict[str, Any]:
    """The settings of a sweep. ``vary``: ``field=value,value`` texts; ``metric``: the ranking metric, '' for the default of
    the chain and its gold; ``sampled``: the seed draws the questions."""
    return {
        "chain": chain_to_json(chain),
        "vary": list(vary),
        "strategy": strategy,
        "dataset": dataset,
        "metrics": list(metrics or ()),
        "metric": metric,
        **_sampled_setting(sampled),
    }


def sweep_variants(settings: Json) -> list[Variant]:
    """The variants of a sweep, from its settings. Raises UsageError."""
    values = fill(SweepSettings, settings)
    factors = [factor(text, parse_settings) for text in values.vary]
    return expand(chain_from_json(values.chain), factors, values.strategy)


@EXPERIMENTS.register("sweep", place="sweeps", competes=True)
def sweep(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """Run every variant, rank them. A variant that fails is reported, and the others are run."""
    workspace, settings = request.workspace, request.read(SweepSettings)
    if settings.metric:
        deciding(settings.metric)
    variants = sweep_variants(request.settings)
    runs = [_run(request, settings, variant) for variant in variants]
    retrievers = indexing.retrievers(workspace, variants)
    warnings = tuple(dict.fromkeys(sentence for run in runs for sentence in run.warnings))
    if warnings:
        yield Notice(warnings)
    if recipes := indexing.indexes(workspace, variants):
        yield IndexCosts(tuple(recipes))
    ended: dict[str, str] = {}
    errors: dict[str, RalleError] = {}
    for variant, prepared, retriever in zip(variants, runs, retrievers):
        run = prepared.request
        try:
            held: tuple[str, ...] = ()
            if retriever is not None and ended_result(workspace.runs, run) is None:
                reference, held = yield from _ensure_indexes(variant, retriever)
                run = replace(run, flow=chain_flow(override(variant.chain, retriever=reference)))
            ended[(yield run).run] = variant.label
            if len(held) > 1:
                yield Release((reference, *held))
        except RalleError as error:
            errors[variant.label] = error
    if errors and not ended:
        cause = next(iter(errors.values()))
        raise BackendError(f"Every variant failed. {cause}", hint=cause.hint)
    failed = {label: str(error) for label, error in errors.items()}
    result = rank_runs(workspace, request.name, ended, failed, settings.metric)
    return Report(failed=failed, result=result)


def _ensure_indexes(
    variant: Variant, retriever: indexing.VariedRetriever
) -> Generator[IndexRequest, IndexResult, tuple[str, tuple[str, ...]]]:
    """Request the indexes of a variant; return (name of the combined retriever, names of the indexes)."""
    names = {}
    for member, recipe in retriever.recipes.items():
        of = f", {member}" if len(retriever.recipes) > 1 else ""
        index = yield IndexRequest(f"{variant.label}{of}", recipe, transient=True)
        names[member] = index.name
    return retriever.reference(names), tuple(names.values())


def _run(
    request: ExperimentRequest[WorkspaceFolder], settings: SweepSettings, variant: Variant
) -> PreparedRun:
    """The checked run of a variant. Raises UsageError."""
    workspace: WorkspaceFolder = request.workspace
    name = run_name(request.name, variant.label)
    exists = (workspace.runs / name).exists()
    prepared = prepare_run(
        workspace,
        chain_flow(variant.chain),
        settings.dataset,
        limit=request.limit,
        sampled=settings.sampled,
        metrics=settings.metrics or None,
        name=name,
        label=variant.label,
        seed=request.seed,
        options=RunOptions(resume=exists),
    )
    known = not exists or ExperimentStore(workspace.path).exists(request.name)
    if not known and not is_of(RunFolder.open(workspace.runs, name), prepared.request):
        raise UsageError(
            f"The run {name!r} exists already and does not belong to the sweep {request.name!r}; choose another name."
        )
    return prepared


def chain_entry(
    file: str,
    chain: Chain,
    dataset: str,
    limit: int | None,
    sampled: bool,
    batch_size: int,
    run: str,
) -> dict[str, Any]:
    """The entry of a chain in a batch's settings. ``file``: its path, for error messages; ``run``: the name of its run."""
    own = {"file": file, "chain": chain_to_json(chain), "dataset": dataset, "limit": limit}
    return {**own, **_sampled_setting(sampled), "batch_size": batch_size, "run": run}


def _sampled_setting(sampled: bool) -> dict[str, bool]:
    """The setting for drawn questions; it is absent from other requests, so that their digest does not change."""
    return {"sampled": True} if sampled else {}


@EXPERIMENTS.register("batch", place="batches", competes=True)
def batch(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """Several chains, each a run of its own, ranked; one that fails does not end the others.

    The settings are ``BatchSettings``.
    """
    settings = request.read(BatchSettings)
    title = settings.title
    runs = {
        label: _chain_run(request, settings, label, fill(BatchedChain, entry))
        for label, entry in settings.chains.items()
    }
    ended: dict[str, str] = {}
    failed: dict[str, str] = {}
    for label, run in runs.items():
        try:
            ended[(yield run).run] = label
        except RalleError as error:
            failed[label] = str(error)
    try:
        result = rank_runs(request.workspace, title, ended, failed)
    except RalleError as error:  # different questions have no common winner
        result = list_unranked(title, ended, failed, str(error))
    return Report(failed=failed, result=result)


def _chain_run(
    request: ExperimentRequest[WorkspaceFolder],
    settings: BatchSettings,
    label: str,
    entry: BatchedChain,
) -> RunRequest:
    """The checked run of a chain. Raises UsageError that names the chain's file."""
    workspace = request.workspace
    try:
        prepared = prepare_run(
            workspace,
            chain_flow(chain_from_json(entry.chain)),
            entry.dataset,
            limit=entry.limit,
            sampled=entry.sampled,
            metrics=settings.metrics or None,
            name=entry.run,
            label=label,
            seed=request.seed,
            options=RunOptions(
                entry.batch_size,
                resume=settings.resume and (workspace.runs / entry.run).exists(),
            ),
        )
    except UsageError as error:
        raise error.saying(f"{entry.file}: {error}") from None
    return replace(prepared.request, batch_size=entry.batch_size)
