"""Benchmarks from names and overrides: of a chain, of each chain of a folder, of an agent."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.analysis.baselines import COLUMNS, LABELS
from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import FlowSpec, RunResult
from rallebench.engine.experiment_store import LONGEST_RUN, folder_name
from rallebench.experiments.benchmark import Benchmark, fresh_name, prepare
from rallebench.experiments.sweeps.running import chain_entry
from rallebench.services.answers import overridden
from rallebench.workspace.flows import chain_flow, ending_summary
from rallebench.workspace.paths import DEFAULT_DATASET

if TYPE_CHECKING:
    from rallebench.services.workbench import Workbench

__all__ = ["COLUMNS", "LABELS", "Benchmark"]

BATCH = 20
"""Questions asked at once by default."""


@dataclass(frozen=True, slots=True)
class BenchmarkOptions:
    """What a benchmark is asked for; None: as RaLLe's experiment file says, or the default. ``settings``: ``key=value``."""

    dataset: str | None = None
    limit: int | None = None
    batch_size: int | None = None
    metrics: tuple[str, ...] | None = None
    max_errors: int | None = None
    seed: int = 0
    track: bool = True
    llm: str | None = None
    retriever: str | None = None
    settings: tuple[str, ...] = ()


def of_chain(
    workbench: Workbench,
    reference: str,
    options: BenchmarkOptions,
    *,
    run: str = "",
    resume: bool = False,
) -> Benchmark:
    """The checked benchmark of a chain. Raises UsageError."""
    chain = workbench.workspace.chain(reference)
    changed = overridden(chain, options.llm, options.retriever, options.settings)
    options = _as_in_file(workbench, reference, options)
    return of_flow(workbench, chain_flow(changed), options, run=run, resume=resume)


def batch_request(
    workbench: Workbench,
    files: Sequence[tuple[str, Path]],
    options: BenchmarkOptions,
    *,
    title: str,
    run: str = "",
    resume: bool = False,
) -> ExperimentRequest:
    """The request for a run of every chain of a folder; ``run``: the start of their names. A setting need not fit every chain.

    Raises UsageError, naming the file.
    """
    chains: dict[str, Any] = {}
    for label, path in files:
        try:
            chains[label] = _entry(workbench, label, str(path), options, run)
        except UsageError as error:
            raise error.saying(f"{path}: {error}") from None
    name = run or folder_name(f"{title} {time.strftime('%Y%m%d-%H%M%S')}", LONGEST_RUN)
    settings = {"title": title, "chains": chains, "metrics": options.metrics, "resume": resume}
    return workbench.experiments.request("batch", name, settings, seed=options.seed)


def _entry(
    workbench: Workbench, label: str, file: str, options: BenchmarkOptions, run: str
) -> dict[str, Any]:
    workspace = workbench.workspace
    chain = replace(workspace.chain(file), name=label)
    chain = overridden(chain, options.llm, options.retriever, options.settings, all_fit=False)
    options = _as_in_file(workbench, file, options)
    dataset = options.dataset or DEFAULT_DATASET
    own = f"{run}-{label}" if run else fresh_name(workspace, label, workspace.dataset(dataset)[0])
    return chain_entry(
        file,
        chain,
        dataset,
        options.limit,
        BATCH if options.batch_size is None else options.batch_size,
        own,
    )


def _as_in_file(
    workbench: Workbench, reference: str, options: BenchmarkOptions
) -> BenchmarkOptions:
    """What the options leave open as RaLLe's experiment file says, if the reference is one."""
    experiment = workbench.workspace.experiment(reference)
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
    workbench: Workbench,
    flow: FlowSpec,
    options: BenchmarkOptions,
    *,
    run: str = "",
    resume: bool = False,
) -> Benchmark:
    """The checked benchmark of a chain's or an agent's flow. Raises UsageError."""
    return prepare(
        workbench.workspace,
        flow,
        options.dataset or DEFAULT_DATASET,
        limit=options.limit,
        metrics=options.metrics,
        name=run,
        batch_size=BATCH if options.batch_size is None else options.batch_size,
        seed=options.seed,
        max_errors=options.max_errors,
        resume=resume,
        track=options.track,
    )


def result_json(workbench: Workbench, result: RunResult) -> dict[str, Any]:
    """A finished run as JSON; ``recall@5`` also as ``recall_at_5``, RaLLe's key."""
    report = result.report
    metrics = {**report["metrics"], **report.get("suite", {})}
    metrics |= {
        name.replace("@", "_at_"): value for name, value in report["metrics"].items() if "@" in name
    }
    value = {
        "run": result.run,
        "n": report["n"],
        "n_errors": report["n_errors"],
        "seconds": report["seconds"],
        "metrics": metrics,
        **({"judges": report["judges"]} if report.get("judges") else {}),
        "clusters": report.get("clusters"),
        "cost": report["cost"],
    }
    if result.request.flow.agent:
        value["agent"] = ending_summary(workbench.runs.open(result.run).episodes().values())
    return value
