"""Charge the calls of a run to a spending limit. Cached replies cost nothing; an unknown cost ends the run."""

from __future__ import annotations

from rallebench.core.backends import Backends
from rallebench.core.errors import BackendError, UsageError
from rallebench.core.prices import FREE, Prices, read_prices
from rallebench.core.spending_limit import SpendingLimit
from rallebench.core.types import Episode, Generate
from rallebench.engine.cost import dollars


def charged_prices(backends: Backends) -> Prices:
    """Return language model → prices for a run with a spending limit. Models that this program runs itself are free.

    Raises UsageError for a server's model without prices, and for a retriever that asks a language model itself.
    """
    prices = {}
    for name, llm in backends.llms.items():
        own = read_prices(llm.prices) if hasattr(llm, "prices") else FREE
        if own is None:
            raise UsageError(
                f"A spending limit needs the prices of {name!r}, and its entry has none: set prices, in US dollars per million "
                "tokens, or leave the limit out."
            )
        prices[name] = own
    for name, retriever in backends.retrievers.items():
        if hasattr(retriever, "unread"):
            raise UsageError(
                f"The retriever {name!r} asks a language model itself, and its calls are not counted in dollars; use another "
                "retriever, or leave the spending limit out."
            )
    return prices


def charged_batch(backends: Backends, prices: Prices, batch_size: int) -> int:
    """Return the questions at once of a run with a spending limit: one, if a paid model answers a whole batch in one call,
    which would be paid before the limit is checked.
    """
    whole = (
        name
        for name, own in prices.items()
        if own != FREE and getattr(backends.llms[name], "concurrency", 1) == 1
    )
    return 1 if any(whole) else batch_size


def charge(budget: SpendingLimit, episode: Episode, prices: Prices) -> None:
    """Add the calls of an episode to the budget. Raises StoppedError at its limit, BackendError for an unknown cost."""
    for step in episode.steps:
        if step.cached or not isinstance(step.request, Generate):
            continue
        usd = dollars([step], prices)
        if usd is None:
            raise BackendError(
                f"The cost of a call of {step.request.llm!r} is not known, as its server counts no tokens, so the spending "
                "limit cannot be kept and the run was stopped. Leave the limit out, or use another server."
            )
        budget.add(usd)
    budget.check()
