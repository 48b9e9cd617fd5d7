"""What steps cost together: seconds, calls, tokens and money, of a step, a question or a run.

Money needs a model's prices, in US dollars per million tokens: ``{"prompt": 0.15, "completion": 0.6}``.
What is not known stays None and says for which model; it is never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rallebench.core.types import Episode, Generate, Retrieve, Step, UseTool
from rallebench.metrics.cost import completion_tokens_of, first_token_of, prompt_tokens_of, speed

Prices = Mapping[str, Mapping[str, float] | None]
"""Language model → its prices; None, or no entry, where they are not known."""

NO_PRICES, NO_TOKENS = "no prices", "tokens not counted"
MILLION = 1_000_000


def prices_of(llms: Mapping[str, Any]) -> dict[str, dict[str, float] | None]:
    """The prices that language models carry as ``prices``; None for one that carries none, or no numbers."""
    return {name: _prices(getattr(llm, "prices", None)) for name, llm in llms.items()}


def _prices(value: Any) -> dict[str, float] | None:
    if not isinstance(value, Mapping):
        return None
    known = {kind: value[kind] for kind in ("prompt", "completion") if _is_price(value.get(kind))}
    return {kind: float(price) for kind, price in known.items()} or None


def _is_price(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value >= 0


def recorded_prices(run: Mapping[str, Any]) -> dict[str, dict[str, float] | None]:
    """The prices that stand in a ``run.json``; {} in one of an earlier version."""
    value = run.get("prices")
    return (
        {str(name): _prices(price) for name, price in value.items()}
        if isinstance(value, Mapping)
        else {}
    )


def usd_of(step: Step, prices: Prices) -> tuple[float, float] | None:
    """US dollars for the prompt and for the completion of a step; None if that is not known.

    >>> from rallebench.core.types import Message, Reply
    >>> step = Step(Generate("m", (Message("user", "Who?"),)), Reply("Ada", prompt_tokens=1000, completion_tokens=10))
    >>> usd_of(step, {"m": {"prompt": 1.0, "completion": 2.0}}), usd_of(step, {})
    ((0.001, 2e-05), None)
    """
    if not isinstance(step.request, Generate):
        return 0.0, 0.0
    own = prices.get(step.request.llm) or {}
    parts = []
    for kind, tokens in (
        ("prompt", prompt_tokens_of(step)),
        ("completion", completion_tokens_of(step)),
    ):
        price = 0.0 if tokens == 0 else own.get(kind)
        if tokens is None or price is None:
            return None
        parts.append(tokens * price / MILLION)
    return parts[0], parts[1]


def why_unknown(step: Step, prices: Prices) -> str:
    """Why a step's dollars are not known: NO_TOKENS or NO_PRICES; '' if they are."""
    if usd_of(step, prices) is not None:
        return ""
    return NO_TOKENS if None in (prompt_tokens_of(step), completion_tokens_of(step)) else NO_PRICES


def total(steps: Sequence[Step], prices: Prices, *, failed_seconds: float = 0.0) -> dict[str, Any]:
    """What ``steps`` cost together, each as when it was really asked.

    ``seconds`` hold ``retrieval_seconds``, ``generation_seconds`` and ``failed_seconds`` (requests that
    ended in an error). Tokens are those that were counted, None if none were although a model was
    called; ``calls_not_counted``: model → calls that the backend counted no tokens for.
    ``tokens_per_second``: see ``metrics.cost``. ``usd`` is None unless it is known for every call;
    ``usd_known`` is the known part and ``usd_unknown_for``: model → why.
    """
    calls = [step for step in steps if isinstance(step.request, Generate)]
    searches = [step for step in steps if isinstance(step.request, Retrieve)]
    uncounted: dict[str, int] = {}
    unknown: dict[str, str] = {}
    known = 0.0
    for step in calls:
        assert isinstance(step.request, Generate)
        name = step.request.llm
        if None in (prompt_tokens_of(step), completion_tokens_of(step)):
            uncounted[name] = uncounted.get(name, 0) + 1
        if (dollars := usd_of(step, prices)) is not None:
            known += sum(dollars)
        else:
            unknown.setdefault(name, why_unknown(step, prices))
    return {
        "seconds": _rounded(sum(step.seconds for step in steps) + failed_seconds),
        "retrieval_seconds": _rounded(sum(step.seconds for step in searches)),
        "generation_seconds": _rounded(sum(step.seconds for step in calls)),
        "failed_seconds": _rounded(failed_seconds),
        "model_calls": len(calls),
        "retrievals": len(searches),
        "prompt_tokens": _counted(prompt_tokens_of(step) for step in calls),
        "completion_tokens": _counted(completion_tokens_of(step) for step in calls),
        "calls_not_counted": uncounted,
        "tokens_per_second": speed(calls),
        "usd": None if unknown else known,
        "usd_known": known,
        "usd_unknown_for": unknown,
    }


def _counted(tokens: Iterable[int | None]) -> int | None:
    asked = list(tokens)
    known = [n for n in asked if n is not None]
    return sum(known) if known or not asked else None


def _rounded(seconds: float) -> float:
    return round(float(seconds), 6)


def asked_now(episode: Episode) -> list[Step]:
    """The steps that were really asked this time, not remembered."""
    return [step for step in episode.steps if not step.cached]


def step_to_json(step: Step, prices: Prices) -> dict[str, Any]:
    """One step's cost as it stands in ``costs.jsonl``; what it has nothing of is left out."""
    request = step.request
    kind, target = who(step)
    value: dict[str, Any] = {
        "kind": kind,
        "target": target,
        "seconds": _rounded(step.seconds),
        "cached": step.cached,
    }
    if step.batch > 1:
        value["batch"] = step.batch
    if isinstance(request, Generate):
        dollars = usd_of(step, prices)
        value |= {
            "prompt_tokens": prompt_tokens_of(step),
            "completion_tokens": completion_tokens_of(step),
            "first_token_seconds": first_token_of(step),
            "tokens_per_second": speed([step]),
            "usd": None if dollars is None else sum(dollars),
        }
    return value


def question_to_json(episode: Episode, prices: Prices) -> dict[str, Any]:
    """One line of ``costs.jsonl``: a question's cost as when it was asked, what this run really asked, its steps."""
    lost = episode.failed_seconds
    return {
        "qid": episode.qid,
        "failed": bool(episode.error),
        "total": total(episode.steps, prices, failed_seconds=lost),
        "asked": total(asked_now(episode), prices, failed_seconds=lost),
        "steps": [step_to_json(step, prices) for step in episode.steps],
    }


def who(step: Step) -> tuple[str, str]:
    """What a step did, and the name of whom it asked."""
    request = step.request
    if isinstance(request, Retrieve):
        return "retrieve", request.retriever
    if isinstance(request, Generate):
        return "generate", request.llm
    return ("tool", request.tool) if isinstance(request, UseTool) else ("identity", "")
