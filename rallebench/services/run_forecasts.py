"""Cost of runs before they start: from the reply cache, from earlier runs, else from answers that a window has already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from rallebench.core.forecast import Seconds
from rallebench.core.runs import FlowSpec
from rallebench.core.types import Chain, Example
from rallebench.services.forecasts import (
    CACHE_SEARCH_SECONDS,
    EARLIER_RUNS,
    Forecasts,
    Speed,
    add_seconds,
    scale_seconds,
    widen,
)
from rallebench.workspace.flows import chain_flow

ANSWERS = "as the answers so far"


@dataclass(frozen=True, slots=True)
class RunForecast:
    """The cost of ``questions``, of which the cache has ``cached`` answers. ``seconds``: of the others, None if unknown;
    ``usd``: None without a price; ``basis``: the source of both; ``judged``: True if a judge is asked, too, whose time is unknown.
    """

    questions: int
    cached: int
    seconds: Seconds | None
    usd: float | None = None
    basis: str = ""
    judged: bool = False

    @property
    def is_cached(self) -> bool:
        """True if the cache has every answer."""
        return self.cached == self.questions and not self.judged


def forecast_run(
    forecasts: Forecasts,
    subject: Chain | FlowSpec,
    examples: Sequence[Example],
    *,
    taken: Sequence[float] = (),
    judged: bool = False,
    repeats: int = 1,
    patience: float = CACHE_SEARCH_SECONDS,
) -> RunForecast:
    """Forecast a run of a chain or an agent. ``taken``: seconds of each answer of the same chain so far; ``repeats``: how often a
    question is asked; ``patience``: seconds to search the cache.
    """
    flow = chain_flow(subject) if isinstance(subject, Chain) else subject
    count, chains = len(examples), [flow.chain] if flow.chain else []
    known = forecasts.in_cache(chains, examples, patience) if chains else None
    cached = known[1] if known else 0
    speed, basis = forecasts.speed(flow), EARLIER_RUNS
    if speed is None and taken:
        speed, basis = Speed(widen(fmean(taken)), None), ANSWERS
    if judged or speed is None:
        return RunForecast(count, cached, None, judged=judged)
    left = count - cached + count * (repeats - 1)
    usd = None if speed.usd is None else left * speed.usd
    return RunForecast(count, cached, scale_seconds(speed.seconds, left), usd, basis)


def join_forecasts(several: Iterable[RunForecast]) -> RunForecast:
    """Return the cost of several runs, one after the other; unknown if that of any is."""
    runs = list(several)
    open_ = [run for run in runs if not run.is_cached]
    known = [run.seconds for run in open_ if run.seconds is not None]
    prices = [run.usd for run in open_ if run.usd is not None]
    return RunForecast(
        sum(run.questions for run in runs),
        sum(run.cached for run in runs),
        add_seconds(known) if known and len(known) == len(open_) else None,
        sum(prices) if prices and len(prices) == len(open_) else None,
        " and ".join(dict.fromkeys(run.basis for run in open_)),
        any(run.judged for run in runs),
    )
