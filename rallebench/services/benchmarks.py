"""Benchmarks from names and overrides: of a chain, of each chain of a folder, of an agent, of a run's baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.analysis import tables
from rallebench.analysis.baselines import LABELS, compare_baselines
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.runs import FlowSpec, RunResult
from rallebench.core.tables import Table
from rallebench.engine.store import RunFolder
from rallebench.experiments.benchmark import Benchmark, prepare
from rallebench.experiments.sweeps.results import SweepReport, as_json, ranked
from rallebench.services.answers import overridden
from rallebench.workspace.flows import chain_flow, ending_summary
from rallebench.workspace.paths import DEFAULT_DATASET

if TYPE_CHECKING:
    from rallebench.services.workbench import Workbench

__all__ = ["LABELS", "Benchmark"]


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
    name: str = "",
) -> Benchmark:
    """The checked benchmark of a chain. ``name``: that of a chain in a folder, where a setting need not fit. Raises UsageError."""
    chain = workbench.workspace.chain(reference)
    changed = overridden(
        replace(chain, name=name or chain.name),
        options.llm,
        options.retriever,
        options.settings,
        all_fit=not name,
    )
    if (experiment := workbench.workspace.experiment(reference)) is not None:
        limit, batch = options.limit, options.batch_size
        options = replace(
            options,
            dataset=options.dataset or experiment.dataset_name,
            limit=experiment.num_evaluate if limit is None else limit,
            batch_size=experiment.batch_size if batch is None else batch,
        )
    return of_flow(workbench, chain_flow(changed), options, run=run, resume=resume)


def of_folder(
    workbench: Workbench,
    files: Sequence[tuple[str, Path]],
    options: BenchmarkOptions,
    *,
    run: str = "",
    resume: bool = False,
) -> dict[str, Benchmark]:
    """Name → the benchmark of every chain of a folder; all are checked first. Raises UsageError, naming the file."""
    benchmarks = {}
    for name, path in files:
        own = f"{run}-{name}" if run else ""
        continued = resume and (workbench.workspace.runs / own).exists()
        try:
            benchmarks[name] = of_chain(
                workbench, str(path), options, run=own, resume=continued, name=name
            )
        except UsageError as error:
            raise type(error)(f"{path}: {error}") from None
    return benchmarks


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
        batch_size=20 if options.batch_size is None else options.batch_size,
        seed=options.seed,
        max_errors=options.max_errors,
        resume=resume,
        track=options.track,
    )


def result_json(workbench: Workbench, benchmark: Benchmark, result: RunResult) -> dict[str, Any]:
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
    if benchmark.request.flow.agent:
        value["agent"] = ending_summary(workbench.open_run(result.run).episodes().values())
    return value


def track_together(
    workbench: Workbench, name: str, chains: Mapping[str, str], failed: Mapping[str, str]
) -> str:
    """Put the runs (name → chain) of a folder below one parent in MLflow; '' or why that did not work."""
    try:
        document = as_json(ranked(workbench.workspace, name, chains, failed))
    except RalleError as error:
        # Of different questions: side by side all the same, without a winner.
        document = as_json(SweepReport(name, chains, None, failed)) | {"verdict": str(error)}
    return workbench.track_experiment(document, "batch")


def baselines_json(
    workbench: Workbench, run: RunFolder, failed: Mapping[str, str]
) -> tuple[dict[str, Any], Table]:
    """A run beside its baselines and the ceiling, as JSON and as a table."""
    compared = compare_baselines(run, workbench.benches.baselines_of(run))
    metrics = {
        name: {column: asdict(mean) for column, mean in row.items()}
        for name, row in compared.cells.items()
    }
    value = {
        "run": run.name,
        "lines": dict(compared.lines),
        "columns": compared.columns,
        "failed": dict(failed),
        "metrics": metrics,
    }
    return value, tables.baselines(compared)
