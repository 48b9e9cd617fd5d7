"""Costs as people read them, on the page and on the command line: units, and words for what is not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rallebench.engine.cost import recorded

NOT_COUNTED, UNKNOWN = "not counted", "unknown"

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

SHORT = {
    "seconds": "seconds",
    "first_token_seconds": "to first token, s",
    "retrieval_seconds": "retrieval, s",
    "generation_seconds": "generation, s",
    "model_calls": "model calls",
    "retrievals": "retrievals",
    "prompt_tokens": "prompt tokens",
    "completion_tokens": "completion tokens",
    "tokens_per_second": "tokens/s",
    "usd": "US dollars",
}
"""Quantity → a few words with its unit."""


def seconds(value: float | None) -> str:
    """Seconds with as many digits as mean something.

    >>> seconds(0.0123), seconds(1.234), seconds(75.04), seconds(7300), seconds(None)
    ('0.012 s', '1.23 s', '75.0 s', '7,300 s', 'unknown')
    """
    return UNKNOWN if value is None else f"{plain(value)} s"


def plain(value: float) -> str:
    """A number of seconds, tokens per second and the like, without its unit.

    >>> plain(0), plain(0.0004), plain(0.5), plain(12), plain(12.34), plain(12345.6)
    ('0', '< 0.001', '0.500', '12.0', '12.3', '12,346')
    """
    if value == 0:
        return "0"
    if value < 0.001:
        return "< 0.001"
    if value < 1:
        return f"{value:.3f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def count(value: float | None) -> str:
    """A whole number, or a mean of such.

    >>> count(1024), count(12.25), count(None)
    ('1,024', '12.2', 'not counted')
    """
    if value is None:
        return NOT_COUNTED
    return f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:.1f}"


def calls(number: int, what: str) -> str:
    """A number of calls.

    >>> calls(1, "retrieval"), calls(1200, "model call")
    ('1 retrieval', '1,200 model calls')
    """
    return f"{number:,} {what}{'s' * (number != 1)}"


def tokens(prompt: float | None, completion: float | None) -> str:
    """Prompt and completion tokens.

    >>> tokens(1024, 12), tokens(None, 12), tokens(None, None)
    ('1,024 + 12 tokens', 'not counted + 12 tokens', 'tokens not counted')
    """
    if prompt is None and completion is None:
        return "tokens not counted"
    return f"{count(prompt)} + {count(completion)} tokens"


def speed(value: float | None) -> str:
    """Tokens per second; '' where it is not known.

    >>> speed(35.21), speed(None)
    ('35.2 tokens/s', '')
    """
    return "" if value is None else f"{plain(value)} tokens/s"


def usd(value: float | None) -> str:
    """US dollars, small ones to two digits that mean something.

    >>> usd(0.0), usd(0.0000123), usd(0.0421), usd(12.5), usd(None)
    ('$0', '$0.000012', '$0.042', '$12.50', 'unknown')
    """
    if value is None:
        return UNKNOWN
    if value == 0:
        return "$0"
    if value >= 0.1:
        return f"${value:,.2f}"
    digits = 2 - int(f"{value:e}".partition("e")[2])
    return f"${value:.{min(digits - 1, 12)}f}"


def price_of(total: Mapping[str, Any]) -> str:
    """The dollars of a total: a sum, a known part and for whom the rest is unknown, or unknown."""
    if total["usd"] is not None:
        return usd(total["usd"])
    who = ", ".join(f"{name} ({why})" for name, why in total["usd_unknown_for"].items())
    return (
        f"{usd(total['usd_known'])} + unknown for {who}"
        if total["usd_known"]
        else f"unknown for {who}"
    )


def counted(total: Mapping[str, Any]) -> str:
    """The tokens of a total, and how many calls are not in them."""
    missing = sum(total["calls_not_counted"].values())
    if total["prompt_tokens"] is None and total["completion_tokens"] is None:
        return "tokens not counted"
    note = f" ({calls(missing, 'call')} not counted)" if missing else ""
    return tokens(total["prompt_tokens"], total["completion_tokens"]) + note


def uncounted(total: Mapping[str, Any]) -> str:
    """Which models' tokens were not counted, '' if all were."""
    left = total["calls_not_counted"].items()
    return ", ".join(f"{calls(number, 'call')} of {name}" for name, number in left)


def total_line(total: Mapping[str, Any]) -> str:
    """A total in one line."""
    parts = [
        calls(total["model_calls"], "model call"),
        calls(total["retrievals"], "retrieval"),
        f"{seconds(total['seconds'])} (retrieval {seconds(total['retrieval_seconds'])}, "
        f"generation {seconds(total['generation_seconds'])})",
    ]
    if not total["model_calls"]:
        return ", ".join(parts)
    parts += [
        counted(total),
        speed(total["tokens_per_second"]),
        f"US dollars: {price_of(total)}" if total["usd"] is None else price_of(total),
    ]
    return ", ".join(filter(None, parts))


def lines(cost: Mapping[str, Any]) -> list[str]:
    """A run's cost as the command line prints it: totals, then the distributions per question."""
    if not recorded(cost):
        return [f"  cost {UNKNOWN}: imported predictions do not say it"]
    text = ["  cost"]
    for key, label, about in TOTALS:
        total = cost[key]
        if key == "failed" and not total["questions"]:
            continue
        text.append(f"    {label} ({about}), n = {total['questions']}")
        text.append(f"      {total_line(total)}")
    text.append(f"    {'per question':<20} {'mean':>11} {'median':>11} {'p95':>11}   n")
    for name, label in SHORT.items():
        spread = cost["per_question"][name]
        cells = (cell(name, spread[key]) for key in ("mean", "median", "p95"))
        text.append("    {:<20} {:>11} {:>11} {:>11}   {}".format(label, *cells, spread["n"]))
    if cost["not_included"]:
        text.append(f"    {left_out(cost)}")
    return text


def side_by_side(names: Sequence[str], costs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The costs of runs beside each other, each as when it was really asked: totals, then means per question.

    What is known in part has a mark, and a line below that says what is missing.
    """
    rows = [("cost", [*names])]
    for key in ("questions", "model_calls", "retrievals"):
        rows.append((key.replace("_", " "), [_total(cost, key, count) for cost in costs]))
    rows.append(("seconds", [_total(cost, "seconds", plain) for cost in costs]))
    for key in ("prompt_tokens", "completion_tokens"):
        rows.append((SHORT[key], [_total(cost, key, count) for cost in costs]))
    dollars, notes = [], []
    for name, cost in zip(names, costs):
        spent = cost["total"]
        dollars.append(
            usd(spent["usd"])
            if spent["usd"] is not None
            else f"{usd(spent['usd_known'] or None)} *"
        )
        notes += [] if spent["usd"] is not None else [f"* US dollars of {name}: {price_of(spent)}"]
    rows.append(("US dollars", dollars))
    for part, label in SHORT.items():
        spreads = [cost["per_question"][part] for cost in costs]
        cells = [
            f"{cell(part, spread['mean'])} (n = {spread['n']})" if spread["n"] else UNKNOWN
            for spread in spreads
        ]
        rows.append((f"{label}, mean", cells))
    wide = [max(24, *(len(cells[i]) for _, cells in rows)) for i in range(len(names))]
    lines = ("  ".join(f"{text:>{width}}" for text, width in zip(cells, wide)) for _, cells in rows)
    return [f"{label:<24} {line}" for (label, _), line in zip(rows, lines)] + notes


def _total(cost: Mapping[str, Any], key: str, style: Callable[[float], str]) -> str:
    value = cost["total"][key]
    if value is None:
        return NOT_COUNTED if recorded(cost) else UNKNOWN
    return style(value)


def cell(name: str, value: float | None) -> str:
    """One number of a distribution, its unit left to the heading."""
    if name == "usd":
        return usd(value)
    if name in ("prompt_tokens", "completion_tokens"):
        return count(value)
    if name in ("model_calls", "retrievals"):
        return "–" if value is None else count(value)
    return "–" if value is None else plain(value)


def left_out(cost: Mapping[str, Any]) -> str:
    """Which retrievers' own questions to language models are in no number, '' if there are none."""
    names = ", ".join(cost["not_included"])
    return (
        f"Not included: the tokens and dollars of what {names} asks of language models."
        if names
        else ""
    )
