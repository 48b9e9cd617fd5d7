"""Forecasts in words, the same wherever work is about to start."""

from __future__ import annotations

from rallebench.core.forecast import Seconds
from rallebench.core.numbers import plural
from rallebench.gui.html import join_facts
from rallebench.render.numbers import text, time_range
from rallebench.services.run_forecasts import RunForecast

UNKNOWN = "time unknown"
NO_RUN = "no run of this chain and model yet"
JUDGED = "a judge is asked about every answer, too"
CACHED = "a few seconds"


def time_words(seconds: Seconds | None) -> str:
    """Return a range of times, or that it is unknown."""
    return UNKNOWN if seconds is None else time_range(*seconds[1:])


def run_time(value: RunForecast) -> str:
    """Return the time of a run in two or three words, as on a button."""
    return CACHED if value.is_cached else time_words(value.seconds)


def run_words(value: RunForecast) -> str:
    """Describe the time and price of runs, and where both come from."""
    held = ""
    if value.cached:
        are = "is" if value.cached == 1 else "are"
        held = f"{value.cached:,} of {plural(value.questions, 'answer')} {are} in the cache"
    if value.is_cached:
        return f"{held}, so it takes {CACHED}"
    if value.seconds is None:
        return join_facts(held, f"{UNKNOWN}: {JUDGED if value.judged else NO_RUN}")
    price = text(value.usd, "usd") if value.usd else ""
    return join_facts(held, f"{time_words(value.seconds)}, {value.basis}", price)
