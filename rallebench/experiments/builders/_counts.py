"""What the rows of a stage amount to: how many stayed, why others did not, what asking for them took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from rallebench.core.types import Episode, Generate
from rallebench.experiments.builders.rows import Row, Rows
from rallebench.metrics.cost import completion_tokens_of, prompt_tokens_of

COSTS = ("calls", "prompt_tokens", "completion_tokens", "seconds")
ASKED = "asked"
"""The field of a row that says what asking for it took; of several rows of an input it stands in the first."""


def with_costs(rows: Iterable[Row], episode: Episode) -> Iterator[Row]:
    """The rows, the first with what asking took: calls, tokens (null where none were counted) and seconds."""
    steps = [step for step in episode.steps if isinstance(step.request, Generate)]
    if not steps and not episode.error:
        yield from rows
        return
    costs: dict[str, Any] = {"calls": len(steps)}
    for name, count in (
        ("prompt_tokens", prompt_tokens_of),
        ("completion_tokens", completion_tokens_of),
    ):
        each = [count(step) for step in steps]
        costs[name] = None if None in each else sum(filter(None, each))
    costs["seconds"] = round(sum(step.seconds for step in steps) + episode.failed_seconds, 3)
    for place, row in enumerate(rows):
        yield {**row, ASKED: costs} if place == 0 else row


def counts_of(rows: Rows, made: int = 0) -> dict[str, Any]:
    """The counts of a stage, see ``Filed``."""
    found: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    costs: dict[str, float] = dict.fromkeys(COSTS, 0)
    uncounted = 0
    for row in rows:
        found["rows"] += 1
        found["kept"] += row["keep"]
        found["unknown"] += bool(row.get("unknown"))
        found["failed"] += bool(row.get("error"))
        found["edited"] += row["edited"]
        if not row["keep"]:
            left_out[str(row.get("why") or "by hand")] += 1
        asked = row.get(ASKED) or {}
        uncounted += (
            asked.get("prompt_tokens", 0) is None or asked.get("completion_tokens", 0) is None
        )
        for key in COSTS:
            costs[key] += asked.get(key) or 0
    left_out.update(rows.told.get("left_out", {}))
    value: dict[str, Any] = {"inputs": len(rows)} | {key: found[key] for key in ("rows", "kept")}
    value |= (
        {"left_out": dict(left_out.most_common())}
        | {key: found[key] for key in ("unknown", "failed", "edited")}
        | {"made": made}
    )
    if costs["calls"]:
        value |= {**costs, "seconds": round(costs["seconds"], 3)}
        value["tokens_not_counted"] = uncounted
    return value
