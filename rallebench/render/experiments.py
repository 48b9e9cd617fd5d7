"""The parts, the plan and the pilot of an experiment, from their JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rallebench.core.numbers import UNKNOWN, as_estimate, no_interval
from rallebench.core.tables import Column, Format, Table
from rallebench.render.numbers import text

_PLAN = tuple(Column(label) for label in ("Part", "questions", "left", "model calls", "retrievals"))
_COST: Mapping[str, tuple[str, Format]] = {
    "seconds": ("time", "duration"),
    "prompt_tokens": ("prompt tokens", "count"),
    "completion_tokens": ("completion tokens", "count"),
    "usd": ("US $", "usd"),
}


def parts(report: Mapping[str, Any]) -> Iterator[Table]:
    """A table for the parts that have the same metrics, with the definitions of the metrics."""
    definitions = report.get("definitions", {})
    groups = dict.fromkeys(tuple(part["metrics"]) for part in report["parts"])
    for number, metrics in enumerate(groups):
        rows = tuple(
            (
                part["label"],
                *part["metrics"].values(),
                part["n"],
                part["n_errors"],
                text(part["seconds"], "duration"),
            )
            for part in report["parts"]
            if tuple(part["metrics"]) == metrics
        )
        columns = [Column("part"), *(Column(m, "score", definitions.get(m, "")) for m in metrics)]
        columns += [Column("questions", "count"), Column("failed", "count"), Column("time")]
        title = f"Parts, by {', '.join(metrics)}" if number else "Parts"
        bare = [
            m for row in rows for cell in row if (m := as_estimate(cell)) and m.value is not None
        ]
        reasons = dict.fromkeys(no_interval(m.n) for m in bare if m.low is None)
        note = f"Where there is no interval: {', '.join(reasons)}." if reasons else ""
        yield Table(title, tuple(columns), rows, note=note)


def plan(value: Mapping[str, Any]) -> Table:
    """A row for every part, the sum last; with expected costs where a pilot measured them."""
    pilot = value.get("probe")
    parts = [*value["plan"], {"label": "all", "depends": False, **value["total"]}]
    estimates = [*pilot["parts"], pilot["total"]] if pilot else []
    rows = []
    for number, part in enumerate(parts):
        about = "about " if part["depends"] else ""
        calls = [part[name] for name in ("generations", "retrievals")]
        rows.append(
            (
                part["label"],
                f"{about}{part['questions']:,}",
                f"{part['left']:,}",
                *(about * (count["high"] != 0) + span(count) for count in calls),
                *(_amounts(estimates[number]) if pilot else ()),
            )
        )
    columns = (*_PLAN, *(Column(label) for label, _ in _COST.values() if pilot))
    kind = value.get("suite") or value["experiment"]
    return Table(f"{kind}: {value['name']} would run", columns, tuple(rows))


def plan_blocks(value: Mapping[str, Any]) -> tuple[Table | str, ...]:
    """The plan, the costs of its indexes, and its notes."""
    costs = (value.get("indexes") or {}).get("costs")
    notes = value["probe"]["notes"] if value.get("probe") else value["notes"]
    lines = [f"Indexes: {costs}"] if costs else []
    return (plan(value), *lines, *(f"Note: {note}" for note in notes))


def forms(described: Iterable[Mapping[str, Any]]) -> str:
    """Suites or builders with their settings, below each other."""
    texts = []
    for item in described:
        rows = [
            f"  {s['name']}={s['default']}".ljust(31) + f" {s['about'] or s['takes']}"
            for s in item["settings"]
        ]
        texts.append("\n".join([f"{item['name']}: {item['about']}", *rows]))
    return "\n\n".join(texts)


def span(value: Mapping[str, Any]) -> str:
    """A number of calls between two bounds.

    >>> span({"low": 1200, "high": 1200}), span({"low": 5, "high": 10}), span({"low": 5, "high": None})
    ('1,200', '5 to 10', 'at least 5')
    """
    low, high = value["low"], value["high"]
    if high is None:
        return f"at least {low:,}"
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def amount(value: Mapping[str, float | None], format: Format) -> str:
    """An expected amount with its bounds.

    >>> amount({"value": 90.0, "low": 60.0, "high": 130.0}, "duration"), amount({"value": None}, "count")
    ('1 min 30 s (1 min to 2 min 10 s)', 'unknown')
    """
    numbers = [value.get(key) for key in ("value", "low", "high")]
    if format == "count":
        numbers = [None if number is None else round(number) for number in numbers]
    expected, low, high = (text(number, format, UNKNOWN) for number in numbers)
    bounded = UNKNOWN not in (expected, low, high) and low != high
    return f"{expected} ({low} to {high})" if bounded else expected


def _amounts(estimate: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    return [amount(estimate[name], format) for name, (_, format) in _COST.items()]
