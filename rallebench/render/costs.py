"""A run's cost as sentences and tables. Each unknown cost is explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rallebench.core.costs import Cost, CostTotal, Spread
from rallebench.core.numbers import ABSENT, NOT_COUNTED, UNKNOWN, plural, price
from rallebench.core.tables import Cell, Column, Format, Table
from rallebench.render.numbers import text

TOTALS = (
    ("All questions", "every step as when it was really asked, also what was cached"),
    ("of which failed", "steps before the failure, and the request that failed"),
    ("Asked by this run", "without what was cached, with earlier attempts of a question"),
)
"""Totals of a run's cost: label and explanation."""

QUANTITIES: Mapping[str, tuple[str, Format]] = {
    "seconds": ("seconds", "quantity"),
    "first_token_seconds": ("to first token, s", "quantity"),
    "retrieval_seconds": ("retrieval, s", "quantity"),
    "generation_seconds": ("generation, s", "quantity"),
    "model_calls": ("model calls", "count"),
    "retrievals": ("retrievals", "count"),
    "prompt_tokens": ("prompt tokens", "count"),
    "completion_tokens": ("completion tokens", "count"),
    "tokens_per_second": ("tokens/s", "quantity"),
    "usd": ("US dollars", "usd"),
}
"""Quantity → its label with the unit, and its number format."""
_ABSENT = {"prompt_tokens": NOT_COUNTED, "completion_tokens": NOT_COUNTED, "usd": UNKNOWN}
NOT_RECORDED = "Cost unknown: imported predictions do not say it."
_BESIDE = ("model_calls", "retrievals", "seconds", "prompt_tokens", "completion_tokens", "usd")


def cell(name: str, value: float | None) -> str:
    """Format a quantity without its unit, which is in the heading."""
    return text(value, QUANTITIES[name][1], _ABSENT.get(name, ABSENT))


def tokens(total: CostTotal) -> str:
    """Describe the prompt and completion tokens of a total, and the number of calls that did not report any."""
    sent, written = total.prompt_tokens, total.completion_tokens
    if sent is None and written is None:
        return "tokens not counted"
    missing = sum(total.calls_not_counted.values())
    note = f" ({plural(missing, 'call')} not counted)" if missing else ""
    counts = f"{cell('prompt_tokens', sent)} + {cell('completion_tokens', written)}"
    return f"{counts} tokens{note}"


def sentence(total: CostTotal) -> str:
    """Describe a total in one line."""
    parts = [
        plural(total.model_calls or 0, "model call"),
        plural(total.retrievals or 0, "retrieval"),
    ]
    spent, retrieval, generation = (
        text(getattr(total, name), "seconds", UNKNOWN)
        for name in ("seconds", "retrieval_seconds", "generation_seconds")
    )
    parts.append(f"{spent} (retrieval {retrieval}, generation {generation})")
    if total.model_calls:
        parts.append(tokens(total))
        if total.tokens_per_second is not None:
            parts.append(f"{text(total.tokens_per_second, 'quantity')} tokens/s")
        parts.append("US dollars: " * (total.usd is None) + price(total))
    return ", ".join(parts)


def blocks(cost: Cost) -> tuple[Table | str, ...]:
    """Return a run's cost: its totals, then the distributions per question."""
    if not cost.recorded:
        return (NOT_RECORDED,)
    totals = [
        f"{label} ({about}), n = {total.questions}: {sentence(total)}"
        for (label, about), total in zip(TOTALS, (cost.total, cost.failed, cost.uncached))
        if total is not cost.failed or total.questions
    ]
    rows: list[tuple[Cell, ...]] = []
    for name, (label, _) in QUANTITIES.items():
        spread = cost.per_question[name]
        numbers = (cell(name, value) for value in (spread.mean, spread.median, spread.p95))
        rows.append((label, *numbers, spread.n))
    names, note = ", ".join(cost.not_included), ""
    if names:
        note = f"Not included: the tokens and dollars of what {names} asks of language models."
    columns = ("per question", "mean", "median", "p95", "n")
    return (*totals, Table("Cost", columns, tuple(rows), note=note))


def beside(names: Sequence[str], costs: Sequence[Cost]) -> Table:
    """Compare the costs of runs, counting cached answers at their original cost: totals, then means per question."""
    rows: list[tuple[str, ...]] = [("questions", *(_total(cost, "questions") for cost in costs))]
    rows += [(QUANTITIES[name][0], *(_total(cost, name) for cost in costs)) for name in _BESIDE]
    for name, (label, _) in QUANTITIES.items():
        spreads = [cost.per_question[name] for cost in costs]
        rows.append((f"{label}, mean", *(_mean(name, spread) for spread in spreads)))
    notes = (
        f"* US dollars of {name}: {price(cost.total)}."
        for name, cost in zip(names, costs)
        if cost.total.usd is None and cost.recorded
    )
    columns = tuple(Column(name, "text") for name in ("", *names))
    return Table("Cost", columns, tuple(rows), note=" ".join(notes))


def _total(cost: Cost, name: str) -> str:
    value = getattr(cost.total, name)
    if value is not None:
        return text(value, QUANTITIES.get(name, ("", "count"))[1])
    if not cost.recorded:
        return UNKNOWN
    if name == "usd":
        return f"{text(cost.total.usd_known or None, 'usd', UNKNOWN)} *"
    return NOT_COUNTED


def _mean(name: str, spread: Spread) -> str:
    return f"{cell(name, spread.mean)} (n = {spread.n})" if spread.n else UNKNOWN
