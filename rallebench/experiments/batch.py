"""A folder of chains as an experiment: every chain becomes a run; one that fails does not end the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rallebench.chains.saved import chain_from_json, chain_to_json
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.runs import RunRequest
from rallebench.core.types import Chain
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.benchmark import prepare
from rallebench.experiments.sweeps.results import SweepReport, as_json, ranked
from rallebench.workspace.flows import chain_flow


def chain_entry(
    file: str, chain: Chain, dataset: str, limit: int | None, batch_size: int, run: str
) -> dict[str, Any]:
    """A chain of a batch, as its settings have it. ``file``: named in errors; ``run``: the name of its run."""
    return {
        "file": file,
        "chain": chain_to_json(chain),
        "dataset": dataset,
        "limit": limit,
        "batch_size": batch_size,
        "run": run,
    }


@EXPERIMENTS.register("batch", place="batches")
def batch(request: ExperimentRequest) -> Experiment:
    """Several chains, each a run of its own, ranked.

    Settings: ``chains`` (label → ``chain_entry``), ``metrics``, ``resume`` (their runs may exist), ``title`` (the batch's name in
    MLflow)."""
    settings = request.settings
    runs = {label: _run(request, label, entry) for label, entry in settings["chains"].items()}
    ended: dict[str, str] = {}
    failed: dict[str, str] = {}
    for label, run in runs.items():
        try:
            result = yield run
            ended[result.run] = label
        except RalleError as error:
            failed[label] = str(error)
    title = settings["title"]
    try:
        document = as_json(ranked(request.workspace, title, ended, failed))
    except RalleError as error:  # they have different questions: beside each other without a winner
        document = {**as_json(SweepReport(title, ended, None, failed)), "verdict": str(error)}
    return Report(document, failed=failed)


def _run(request: ExperimentRequest, label: str, entry: Mapping[str, Any]) -> RunRequest:
    """The chain's run, checked. Raises UsageError, which names the chain's file."""
    workspace, settings = request.workspace, request.settings
    try:
        benchmark = prepare(
            workspace,
            chain_flow(chain_from_json(entry["chain"])),
            entry["dataset"],
            limit=entry["limit"],
            metrics=settings["metrics"] or None,
            name=entry["run"],
            label=label,
            batch_size=entry["batch_size"],
            seed=request.seed,
            resume=settings["resume"] and (workspace.runs / entry["run"]).exists(),
        )
    except UsageError as error:
        raise type(error)(f"{entry['file']}: {error}") from None
    return replace(benchmark.request, batch_size=entry["batch_size"])
