"""The cost of steps: seconds, calls, tokens and money, of a step, a question and a run.

Money needs a model's prices, in US dollars per million tokens: ``{"prompt": 0.15, "completion": 0.6}``.
An unknown cost is None, with the name of the model; it is never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from rallebench.core.backends import LLM
from rallebench.core.costs import ActionCost, Cost, CostTotal, QuestionCost, Spread, StepCost
from rallebench.core.prices import FREE, Prices, read_prices
from rallebench.core.types import Episode, Generate, Gold, Retrieve, Step, UseTool
from rallebench.metrics import metric
from rallebench.metrics.cost import (
    speed,
    step_completion_tokens,
    step_first_token,
    step_prompt_tokens,
)

NO_PRICES, NO_TOKENS = "no prices", "tokens not counted"
MILLION = 1_000_000


def llm_prices(llms: Mapping[str, LLM]) -> dict[str, dict[str, float] | None]:
    """The ``prices`` of each language model; None if it has none, or none that are numbers."""
    return {name: read_prices(getattr(llm, "prices", None)) for name, llm in llms.items()}


def step_usd(step: Step, prices: Prices) -> tuple[float, float] | None:
    """US dollars for the prompt and for the completion of a step; None if unknown. A free model needs no count of tokens.

    >>> from rallebench.core.types import Message, Reply
    >>> step = Step(Generate("m", (Message("user", "Who?"),)), Reply("Ada", prompt_tokens=1000, completion_tokens=10))
    >>> step_usd(step, {"m": {"prompt": 1.0, "completion": 2.0}}), step_usd(step, {})
    ((0.001, 2e-05), None)
    """
    if not isinstance(step.request, Generate) or prices.get(step.request.llm) == FREE:
        return 0.0, 0.0
    own = prices.get(step.request.llm) or {}
    prompt = _usd(step_prompt_tokens(step), own.get("prompt"))
    completion = _usd(step_completion_tokens(step), own.get("completion"))
    return None if prompt is None or completion is None else (prompt, completion)


def _usd(tokens: int | None, price: float | None) -> float | None:
    if tokens == 0:
        return 0.0
    return None if tokens is None or price is None else tokens * price / MILLION


def dollars(steps: Sequence[Step], prices: Prices) -> float | None:
    """US dollars of the original calls of steps; None if one of them is unknown."""
    parts = [step_usd(step, prices) for step in steps]
    return None if None in parts else sum(sum(part) for part in parts if part)


def total(
    steps: Sequence[Step],
    prices: Prices,
    *,
    failed_seconds: float = 0.0,
    questions: int | None = None,
) -> CostTotal:
    """The cost of ``steps`` together, each at the cost of its original call.

    ``seconds`` hold ``retrieval_seconds``, ``generation_seconds`` and ``failed_seconds`` (requests that ended in an
    error). Tokens are the counted ones, None if a model was called and no call was counted; ``calls_not_counted``: model →
    number of calls without a token count. ``tokens_per_second``: see ``metrics.cost``. ``usd`` is None unless it is known
    for every call; ``usd_known`` is the known part and ``usd_unknown_for``: model → why.
    """
    calls = [step for step in steps if isinstance(step.request, Generate)]
    searches = [step for step in steps if isinstance(step.request, Retrieve)]
    uncounted: Counter[str] = Counter()
    unknown: dict[str, str] = {}
    known = 0.0
    for step in calls:
        name = who(step)[1]
        lacks_tokens = None in (step_prompt_tokens(step), step_completion_tokens(step))
        if lacks_tokens:
            uncounted[name] += 1
        if (usd := step_usd(step, prices)) is not None:
            known += sum(usd)
        else:
            unknown.setdefault(name, NO_TOKENS if lacks_tokens else NO_PRICES)
    return CostTotal(
        questions,
        seconds=_round(sum(step.seconds for step in steps) + failed_seconds),
        retrieval_seconds=_round(sum(step.seconds for step in searches)),
        generation_seconds=_round(sum(step.seconds for step in calls)),
        failed_seconds=_round(failed_seconds),
        model_calls=len(calls),
        retrievals=len(searches),
        prompt_tokens=_sum_known(step_prompt_tokens(step) for step in calls),
        completion_tokens=_sum_known(step_completion_tokens(step) for step in calls),
        calls_not_counted=dict(uncounted),
        tokens_per_second=speed(calls),
        usd=None if unknown else known,
        usd_known=known,
        usd_unknown_for=unknown,
    )


def _sum_known(tokens: Iterable[int | None]) -> int | None:
    counts = list(tokens)
    known = [n for n in counts if n is not None]
    return sum(known) if known or not counts else None


def _round(seconds: float) -> float:
    return round(float(seconds), 6)


def who(step: Step) -> tuple[str, str]:
    """(the kind of a step, the name of its index, model or tool)."""
    request = step.request
    if isinstance(request, Retrieve):
        return "retrieve", request.retriever
    if isinstance(request, Generate):
        return "generate", request.llm
    return ("tool", request.tool) if isinstance(request, UseTool) else ("identity", "")


OF_CALL: Mapping[str, Callable[[Step, Prices], float | None]] = {
    "prompt_tokens": lambda step, prices: step_prompt_tokens(step),
    "completion_tokens": lambda step, prices: step_completion_tokens(step),
    "first_token_seconds": lambda step, prices: step_first_token(step),
    "tokens_per_second": lambda step, prices: speed([step]),
    "usd": lambda step, prices: dollars([step], prices),
}
"""Quantity → its value for one call of a language model."""


def step_cost(step: Step, prices: Prices) -> StepCost:
    """Return the cost of one step; only calls of a language model have tokens and dollars."""
    kind, target = who(step)
    cost = StepCost(kind, target, _round(step.seconds), step.cached, step.batch)
    if not isinstance(step.request, Generate):
        return cost
    return replace(
        cost,
        prompt_tokens=step_prompt_tokens(step),
        completion_tokens=step_completion_tokens(step),
        first_token_seconds=step_first_token(step),
        tokens_per_second=speed([step]),
        usd=dollars([step], prices),
    )


def question_cost(episode: Episode, prices: Prices) -> QuestionCost:
    """Return the cost of a question, a line of ``costs.jsonl``."""
    lost = episode.failed_seconds
    return QuestionCost(
        episode.qid,
        bool(episode.error),
        total(episode.steps, prices, failed_seconds=lost),
        total(_uncached_steps(episode), prices, failed_seconds=lost),
        tuple(step_cost(step, prices) for step in episode.steps),
    )


def _uncached_steps(episode: Episode) -> list[Step]:
    """The steps without those from the reply cache."""
    return [step for step in episode.steps if not step.cached]


# a run

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
"""Metrics with a distribution over the answered questions in a run's cost. Dollars are stored as ``usd``."""


def run_cost(
    episodes: Sequence[Episode],
    earlier: Sequence[Episode],
    prices: Prices,
    not_included: Sequence[str] = (),
) -> Cost:
    """Return the cost of a run. ``episodes``: every question's last attempt; ``earlier``: repeated attempts;
    ``not_included``: retrievers that ask language models themselves."""
    good = [episode for episode in episodes if not episode.error]
    bad = [episode for episode in episodes if episode.error]
    here = [step for episode in [*episodes, *earlier] for step in _uncached_steps(episode)]
    lost = sum(episode.failed_seconds for episode in [*bad, *earlier])
    answered = {
        name: [metric(name).value(episode, Gold()) for episode in good] for name in PER_QUESTION
    }
    answered["usd"] = [dollars(episode.steps, prices) for episode in good]
    return Cost(
        _cost_total(episodes, prices),
        _cost_total(good, prices),
        _cost_total(bad, prices),
        total(here, prices, failed_seconds=lost, questions=sum(map(_asked_anything, episodes))),
        {name: spread(values) for name, values in answered.items()},
        tuple(_per_action(good, prices)),
        {name: price for name, price in prices.items() if price},
        tuple(not_included),
    )


def not_recorded(questions: int) -> Cost:
    """Return the cost of imported predictions, in which every number is None."""
    unknown = CostTotal(questions, usd_unknown_for={"imported predictions": "not recorded"})
    per_question = {name: spread([]) for name in (*PER_QUESTION, "usd")}
    return Cost(unknown, unknown, unknown, unknown, per_question, recorded=False)


def _asked_anything(episode: Episode) -> bool:
    return bool(episode.failed_seconds or any(who(step)[1] for step in _uncached_steps(episode)))


def _cost_total(episodes: Sequence[Episode], prices: Prices) -> CostTotal:
    steps = [step for episode in episodes for step in episode.steps]
    lost = sum(episode.failed_seconds for episode in episodes)
    return total(steps, prices, failed_seconds=lost, questions=len(episodes))


def _per_action(episodes: Sequence[Episode], prices: Prices) -> Iterator[ActionCost]:
    groups: dict[tuple[int, str, str], list[Step]] = {}
    for episode in episodes:
        for number, step in enumerate(episode.steps, 1):
            groups.setdefault((number, *who(step)), []).append(step)
    for (number, kind, target), steps in sorted(groups.items()):
        yield ActionCost(
            number,
            kind,
            target,
            sum(step.cached for step in steps),
            spread([step.seconds for step in steps]),
            **{
                name: spread([measure(step, prices) for step in steps])
                for name, measure in (OF_CALL if kind == "generate" else {}).items()
            },
        )


def spread(values: Sequence[float | None]) -> Spread:
    """Return the distribution of the known values; the 95th percentile is interpolated linearly.

    >>> spread([1.0, None, 3.0])
    Spread(mean=2.0, median=2.0, p95=2.9, n=2)
    """
    known = [float(value) for value in values if value is not None]
    if not known:
        return Spread()
    median, p95 = (round(float(end), 9) for end in np.percentile(known, (50, 95)))
    return Spread(fmean(known), median, p95, len(known))
