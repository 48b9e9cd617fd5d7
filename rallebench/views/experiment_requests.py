"""Requests for sweeps and trade-offs from the settings that a user wrote; plans of any experiment as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rallebench.core.events import Operation, complete
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.types import Chain
from rallebench.engine import estimate
from rallebench.engine.pilot import QUESTIONS
from rallebench.engine.plan import Plan
from rallebench.engine.plan import as_json as json_of_plan
from rallebench.experiments import SUITES
from rallebench.experiments.sweeps import indexing, remarks
from rallebench.experiments.sweeps.results import headline, opened
from rallebench.experiments.sweeps.running import sweep_settings, variants_of
from rallebench.experiments.tradeoff.running import QUESTIONS as TRADEOFF_QUESTIONS
from rallebench.experiments.tradeoff.running import read_swept, tradeoff_settings
from rallebench.services.context import EngineContext
from rallebench.services.workbench import Workbench
from rallebench.workspace.checking import check_chain
from rallebench.workspace.indexes.ensure import index_costs

__all__ = ["QUESTIONS", "TRADEOFF_QUESTIONS", "headline", "opened"]


# sweeps


def sweep_request(
    workbench: Workbench,
    name: str,
    chain: Chain,
    factors: Sequence[str],
    dataset: str,
    *,
    limit: int | None = None,
    seed: int = 0,
    **ranking: Any,
) -> tuple[ExperimentRequest, int]:
    """The request for a sweep, and its number of variants. ``ranking``: ``strategy``, ``metrics``, ``metric``, ``sampled``.

    Raises UsageError for factors that the chain does not have.
    """
    settings = sweep_settings(chain, factors, dataset, **ranking)
    request = workbench.experiments.request("sweep", name, settings, limit, seed)
    return request, len(variants_of(settings))


def sweep_plan(
    workbench: Workbench, request: ExperimentRequest
) -> tuple[dict[str, Any], list[str]]:
    """The runs, index builds and encodings of a sweep as JSON, and notes. Raises UsageError for a variant that could not run."""
    variants = variants_of(request.settings)
    for variant in variants:
        check_chain(workbench.workspace, variant.chain)
    recipes = indexing.indexes(workbench.workspace, variants)
    costs = complete(index_costs(workbench.workspace, recipes))
    labels = [variant.label for variant in variants]
    verdict = f"{len(labels)} runs: {', '.join(labels)}."
    if any(variant.index for variant in variants):
        verdict += f" {costs.sentence}"
    value = {
        "variants": labels,
        "indexes_there": list(costs.existing),
        "index_builds": costs.builds,
        "passages": costs.passages,
        "encodings": {
            name: {"to_encode": new, "texts": total}
            for name, (new, total) in costs.encodings.items()
        },
        "verdict": verdict,
    }
    return value, remarks(variants)


# trade-offs


def tradeoff_request(
    workbench: Workbench,
    name: str,
    indexes: Sequence[str],
    dataset: str,
    *,
    k: int,
    limit: int,
    knobs: Sequence[str],
    flag: str = "",
) -> ExperimentRequest:
    """The request for an index trade-off. ``knobs``: ``KEY=V,V`` each, ``flag`` is their flag. Raises UsageError."""
    swept = read_swept(knobs, f"{flag} ".lstrip())
    settings = tradeoff_settings(list(indexes), dataset, k=k, swept=swept)
    return workbench.experiments.request("tradeoff", name, settings, limit)


# plans


def plan_json(plan: Plan) -> dict[str, Any]:
    return json_of_plan(plan, "suite" if plan.kind in SUITES else "experiment")


def plan_with_costs(
    workbench: Workbench, request: ExperimentRequest, *, questions: int, batch_size: int
) -> Operation[dict[str, Any]]:
    """The plan of an experiment as JSON, with the costs that a pilot of ``questions`` per run measures (0: none)."""
    planned = workbench.experiments.plan(request)
    value: dict[str, Any] = {**plan_json(planned), "probe": None}
    if not questions:
        return value
    if planned.builds:
        with workbench.models.lease("the estimate of the indexes") as lease:
            costs = yield from EngineContext(workbench, lease).index_costs(tuple(planned.builds))
        value["indexes"]["costs"] = costs
    pilot = workbench.experiments.pilot(
        planned, request, questions=questions, batch_size=batch_size
    )
    value["probe"] = estimate.as_json((yield from pilot))
    return value
