"""A run's cost as MLflow's metrics, params and tags, and a step's as a span's attributes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.core.types import Episode, Generate, Step
from rallebench.engine.cost import Prices, total, usd_of
from rallebench.engine.cost_text import UNKNOWN, price_of
from rallebench.metrics.cost import completion_tokens_of, first_token_of, prompt_tokens_of, speed

_TOTALS = ("total", "failed", "asked")
_PARTS = (
    "seconds",
    "retrieval_seconds",
    "generation_seconds",
    "failed_seconds",
    "model_calls",
    "retrievals",
    "prompt_tokens",
    "completion_tokens",
    "tokens_per_second",
    "usd",
)


def cost_metrics(cost: Mapping[str, Any]) -> dict[str, Any]:
    """``cost_total_…``, ``cost_failed_…``, ``cost_asked_…`` and ``cost_question_…_mean`` (``_median``, ``_p95``, ``_n``).

    What is not known is None; of dollars that are known in part, that part is ``…_usd_known``.
    """
    found: dict[str, Any] = {}
    for which in _TOTALS:
        value = cost.get(which, {})
        found |= {f"cost_{which}_{part}": value.get(part) for part in _PARTS}
        found[f"cost_{which}_usd_known"] = value.get("usd_known") or None
    for name, spread in cost.get("per_question", {}).items():
        found |= {f"cost_question_{name}_{key}": value for key, value in spread.items()}
    return found


def price_params(run: Mapping[str, Any]) -> dict[str, Any]:
    """The prices of ``run.json``, model by model; ``unknown`` where there are none."""
    return {name: price or UNKNOWN for name, price in (run.get("prices") or {}).items()}


def cost_tags(cost: Mapping[str, Any]) -> dict[str, str]:
    """The dollars of a run in words, so that nobody reads a missing metric as nothing."""
    return {"rallebench.cost.usd": price_of(cost["total"])} if cost.get("total") else {}


def step_attributes(step: Step, prices: Prices) -> dict[str, Any]:
    """What a language model's span says of its cost, under MLflow's own names where it has some."""
    assert isinstance(step.request, Generate)
    read, written = prompt_tokens_of(step), completion_tokens_of(step)
    found: dict[str, Any] = {
        "first_token_seconds": first_token_of(step),
        "tokens_per_second": speed([step]),
    }
    if read is not None and written is not None:
        found["mlflow.chat.tokenUsage"] = _usage(read, written)
    dollars = usd_of(step, prices)
    if dollars is not None:
        found["mlflow.llm.cost"] = _cost(*dollars)
    return {**found, "usd": UNKNOWN if dollars is None else sum(dollars)}


def episode_attributes(episode: Episode, prices: Prices) -> dict[str, Any]:
    """What the root of a trace says of a question's cost; tokens and dollars are ``unknown`` where they are."""
    value = total(episode.steps, prices, failed_seconds=episode.failed_seconds)
    told = {
        key: UNKNOWN if value[key] is None else value[key]
        for key in ("prompt_tokens", "completion_tokens", "usd")
    }
    parts = (
        "seconds",
        "retrieval_seconds",
        "generation_seconds",
        "model_calls",
        "retrievals",
        "tokens_per_second",
    )
    return {**{key: value[key] for key in parts}, **told}


def trace_metadata(episode: Episode, prices: Prices) -> dict[str, Any]:
    """The tokens and dollars of a whole trace, as MLflow's list of traces shows them; {} where they are not known."""
    value = total(episode.steps, prices)
    found: dict[str, Any] = {}
    if value["model_calls"] and not value["calls_not_counted"]:
        found["mlflow.trace.tokenUsage"] = _usage(
            value["prompt_tokens"], value["completion_tokens"]
        )
    if value["model_calls"] and value["usd"] is not None:
        parts = [usd_of(step, prices) or (0.0, 0.0) for step in episode.steps]
        found["mlflow.trace.cost"] = _cost(
            sum(part[0] for part in parts), sum(part[1] for part in parts)
        )
    return found


def _usage(read: int, written: int) -> dict[str, int]:
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}


def _cost(read: float, written: float) -> dict[str, float]:
    return {"input_cost": read, "output_cost": written, "total_cost": read + written}
