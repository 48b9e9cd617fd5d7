"""A run's cost, as ``report.json`` has it: sentences and tables with words for what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.numbers import NOT_COUNTED, UNKNOWN, price
from rallebench.core.tables import Column, Format, Table
from rallebench.render.numbers import plural, text

TOTALS = (
    (
        "total",
        "All questions",
        "every step as when it was really asked, also what came from memory this time",
    ),
    ("failed", "of which failed", "steps before the failure, and the request that failed"),
    (
        "asked",
        "Asked by this run",
        "only what this run really asked, earlier attempts of a question included",
    ),
)
"""The totals of a run's cost: key, label, what is in it."""

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
"""Quantity → a few words with its unit, and the format of its numbers."""
_ABSENT = {"prompt_tokens": NOT_COUNTED, "completion_tokens": NOT_COUNTED, "usd": UNKNOWN}
_BESIDE = ("model_calls", "retrievals", "seconds", "prompt_tokens", "completion_tokens", "usd")


def recorded(cost: Mapping[str, Any]) -> bool:
    """Whether anything is known of what a run cost; imported predictions do not say it."""
    return bool(cost.get("recorded", True))


def cell(name: str, value: float | None) -> str:
    """A number of a quantity, its unit left to the heading."""
    format = QUANTITIES[name][1]
    return text(value, format, _ABSENT[name]) if name in _ABSENT else text(value, format)


def tokens(prompt: float | None, completion: float | None) -> str:
    """Prompt and completion tokens.

    >>> tokens(1024, 12), tokens(None, 12), tokens(None, None)
    ('1,024 + 12 tokens', 'not counted + 12 tokens', 'tokens not counted')
    """
    if prompt is None and completion is None:
        return "tokens not counted"
    return f"{cell('prompt_tokens', prompt)} + {cell('completion_tokens', completion)} tokens"


def speed(value: float | None) -> str:
    """Tokens per second; '' where it is not known."""
    return "" if value is None else f"{text(value, 'quantity')} tokens/s"


def counted(total: Mapping[str, Any]) -> str:
    """The tokens of a total, and the number of calls that are not in them."""
    if total["prompt_tokens"] is None and total["completion_tokens"] is None:
        return "tokens not counted"
    missing = sum(total["calls_not_counted"].values())
    note = f" ({plural(missing, 'call')} not counted)" if missing else ""
    return tokens(total["prompt_tokens"], total["completion_tokens"]) + note


def uncounted(total: Mapping[str, Any]) -> str:
    """The models whose tokens were not counted, '' if all were."""
    calls = total["calls_not_counted"].items()
    return ", ".join(f"{plural(number, 'call')} of {name}" for name, number in calls)


def sentence(total: Mapping[str, Any]) -> str:
    """A total in one line."""
    parts = [plural(total["model_calls"], "model call"), plural(total["retrievals"], "retrieval")]
    spent, retrieval, generation = (
        text(total[name], "seconds", UNKNOWN)
        for name in ("seconds", "retrieval_seconds", "generation_seconds")
    )
    parts.append(f"{spent} (retrieval {retrieval}, generation {generation})")
    if total["model_calls"]:
        dollars = price(total) if total["usd"] is not None else f"US dollars: {price(total)}"
        parts += [counted(total), speed(total["tokens_per_second"]), dollars]
    return ", ".join(filter(None, parts))


def left_out(cost: Mapping[str, Any]) -> str:
    """The retrievers whose own requests to language models are in no number, '' if there are none."""
    names = ", ".join(cost["not_included"])
    if not names:
        return ""
    return f"Not included: the tokens and dollars of what {names} asks of language models."


def blocks(cost: Mapping[str, Any]) -> tuple[Table | str, ...]:
    """A run's cost: its totals, then the distributions per question."""
    if not recorded(cost):
        return ("Cost unknown: imported predictions do not say it.",)
    totals = [
        f"{label} ({about}), n = {cost[key]['questions']}: {sentence(cost[key])}"
        for key, label, about in TOTALS
        if key != "failed" or cost[key]["questions"]
    ]
    rows = []
    for name, (label, _) in QUANTITIES.items():
        spread = cost["per_question"][name]
        numbers = (cell(name, spread[key]) for key in ("mean", "median", "p95"))
        rows.append((label, *numbers, spread["n"]))
    columns = (Column("per question"), Column("mean"), Column("median"), Column("p95"), Column("n"))
    return (*totals, Table("Cost", columns, tuple(rows), note=left_out(cost)))


def beside(names: Sequence[str], costs: Sequence[Mapping[str, Any]]) -> Table:
    """The costs of runs side by side, each as when it was really asked: totals, then means per question."""
    rows: list[tuple[str, ...]] = [("questions", *(_total(cost, "questions") for cost in costs))]
    rows += [(QUANTITIES[name][0], *(_total(cost, name) for cost in costs)) for name in _BESIDE]
    for name, (label, _) in QUANTITIES.items():
        spreads = [cost["per_question"][name] for cost in costs]
        rows.append((f"{label}, mean", *(_mean(name, spread) for spread in spreads)))
    notes = (
        f"* US dollars of {name}: {price(cost['total'])}."
        for name, cost in zip(names, costs)
        if cost["total"]["usd"] is None and recorded(cost)
    )
    columns = tuple(Column(name, "text") for name in ("", *names))
    return Table("Cost", columns, tuple(rows), note=" ".join(notes))


def _total(cost: Mapping[str, Any], name: str) -> str:
    total = cost["total"]
    if name == "usd" and total["usd"] is None:
        return (
            f"{text(total['usd_known'] or None, 'usd', UNKNOWN)} *" if recorded(cost) else UNKNOWN
        )
    if total[name] is None:
        return NOT_COUNTED if recorded(cost) else UNKNOWN
    return text(total[name], QUANTITIES.get(name, ("", "count"))[1])


def _mean(name: str, spread: Mapping[str, Any]) -> str:
    return f"{cell(name, spread['mean'])} (n = {spread['n']})" if spread["n"] else UNKNOWN
