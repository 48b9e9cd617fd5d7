"""What a run cost: totals, what of them was really asked, distributions per question and per action."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.types import Episode, Generate, Gold, Step
from rallebench.engine.cost import Prices, asked_now, total, usd_of, who
from rallebench.metrics import metric
from rallebench.metrics.cost import completion_tokens_of, first_token_of, prompt_tokens_of, speed

PER_QUESTION = (
    "seconds",
    "first_token_seconds",
    "retrieval_seconds",
    "generation_seconds",
    "model_calls",
    "retrievals",
    "prompt_tokens",
    "completion_tokens",
    "tokens_per_second",
)
"""Metrics of which a run's cost has a distribution over its answered questions; dollars come as ``usd``."""


def run_cost(
    episodes: Sequence[Episode],
    earlier: Sequence[Episode],
    prices: Prices,
    not_included: Sequence[str] = (),
) -> dict[str, Any]:
    """The section ``cost`` of a report.

    ``episodes``: every question's last attempt; ``earlier``: attempts that were made again.
    ``total``: all last attempts, each step as when it was really asked, ``answered`` and ``failed`` its
    two parts. ``asked``: what this run really asked, earlier attempts included and memory left out.
    ``per_question``: distributions over the answered questions. ``per_action``: the same, action by action.
    ``not_included``: retrievers that ask language models themselves.
    """
    good = [episode for episode in episodes if not episode.error]
    bad = [episode for episode in episodes if episode.error]
    here = [step for episode in [*episodes, *earlier] for step in asked_now(episode)]
    lost = sum(episode.failed_seconds for episode in [*bad, *earlier])
    return {
        "total": _of(episodes, prices),
        "answered": _of(good, prices),
        "failed": _of(bad, prices),
        "asked": {
            "questions": sum(_asked_anything(e) for e in episodes),
            **total(here, prices, failed_seconds=lost),
        },
        "per_question": _per_question(good, prices),
        "per_action": _per_action(good, prices),
        "prices": {name: price for name, price in prices.items() if price},
        "not_included": list(not_included),
    }


def not_recorded(questions: int) -> dict[str, Any]:
    """The section ``cost`` of a run that somebody else made: every number is None, ``recorded`` False."""
    unknown: dict[str, Any] = dict.fromkeys(total((), {}), None)
    unknown |= {
        "questions": questions,
        "calls_not_counted": {},
        "usd_unknown_for": {"imported predictions": "not recorded"},
    }
    return {
        "recorded": False,
        **{part: dict(unknown) for part in ("total", "answered", "failed", "asked")},
        "per_question": {name: spread([]) for name in (*PER_QUESTION, "usd")},
        "per_action": [],
        "prices": {},
        "not_included": [],
    }


def recorded(cost: Mapping[str, Any]) -> bool:
    """Whether anything is known of what a run cost."""
    return bool(cost.get("recorded", True))


def _asked_anything(episode: Episode) -> bool:
    return bool(episode.failed_seconds or any(who(step)[1] for step in asked_now(episode)))


def _of(episodes: Sequence[Episode], prices: Prices) -> dict[str, Any]:
    steps = [step for episode in episodes for step in episode.steps]
    lost = sum(episode.failed_seconds for episode in episodes)
    return {"questions": len(episodes), **total(steps, prices, failed_seconds=lost)}


def _per_question(episodes: Sequence[Episode], prices: Prices) -> dict[str, Any]:
    found = {
        name: [metric(name).value(episode, Gold()) for episode in episodes] for name in PER_QUESTION
    }
    found["usd"] = [dollars(episode.steps, prices) for episode in episodes]
    return {name: spread(values) for name, values in found.items()}


def _per_action(episodes: Sequence[Episode], prices: Prices) -> list[dict[str, Any]]:
    groups: dict[tuple[int, str, str], list[Step]] = {}
    for episode in episodes:
        for number, step in enumerate(episode.steps, 1):
            groups.setdefault((number, *who(step)), []).append(step)
    return [
        {"action": number, "kind": kind, "target": target, **_spreads(steps, prices)}
        for (number, kind, target), steps in sorted(groups.items())
    ]


def _spreads(steps: Sequence[Step], prices: Prices) -> dict[str, Any]:
    found: dict[str, Any] = {
        "cached": sum(step.cached for step in steps),
        "seconds": spread([step.seconds for step in steps]),
    }
    if isinstance(steps[0].request, Generate):
        found |= {
            "first_token_seconds": spread([first_token_of(step) for step in steps]),
            "prompt_tokens": spread([prompt_tokens_of(step) for step in steps]),
            "completion_tokens": spread([completion_tokens_of(step) for step in steps]),
            "tokens_per_second": spread([speed([step]) for step in steps]),
            "usd": spread([dollars([step], prices) for step in steps]),
        }
    return found


def dollars(steps: Sequence[Step], prices: Prices) -> float | None:
    """US dollars of steps, as when they were asked; None if one of them is not known."""
    parts = [usd_of(step, prices) for step in steps]
    return None if None in parts else sum(sum(part) for part in parts if part)


def spread(values: Sequence[float | None]) -> dict[str, Any]:
    """Mean, median, 95th percentile (between two values, in a straight line) and n; None is not counted.

    >>> spread([1.0, None, 3.0])
    {'mean': 2.0, 'median': 2.0, 'p95': 2.9, 'n': 2}
    """
    known = sorted(float(value) for value in values if value is not None)
    if not known:
        return {"mean": None, "median": None, "p95": None, "n": 0}
    mean = math.fsum(known) / len(known)
    return {"mean": mean, "median": _at(known, 0.5), "p95": _at(known, 0.95), "n": len(known)}


def _at(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (ordered[high] - ordered[low]) * (place - low), 9)
