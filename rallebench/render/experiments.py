"""The parts, plan and pilot of an experiment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rallebench.core.experiment_reports import SuiteReport
from rallebench.core.forecast import Forecast, Interval, PlannedRun, Range
from rallebench.core.numbers import UNKNOWN, as_estimate, no_interval
from rallebench.core.registry import RegisteredForm
from rallebench.core.tables import Cell, Column, Format, Table
from rallebench.render.numbers import text

_PLAN = tuple(Column(label) for label in ("Part", "questions", "left", "model calls", "retrievals"))
_COST: Mapping[str, tuple[str, Format]] = {
    "seconds": ("time", "duration"),
    "prompt_tokens": ("prompt tokens", "count"),
    "completion_tokens": ("completion tokens", "count"),
    "usd": ("US $", "usd"),
}


def parts(report: SuiteReport) -> Iterator[Table]:
    """Yield one table for each group of parts with the same metrics, with the metrics' definitions."""
    groups = dict.fromkeys(tuple(part.metrics) for part in report.parts)
    for number, metrics in enumerate(groups):
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (
                part.label,
                *part.metrics.values(),
                part.n,
                part.n_errors,
                text(part.seconds, "duration"),
            )
            for part in report.parts
            if tuple(part.metrics) == metrics
        )
        columns = [
            Column("part"),
            *(Column(m, "score", report.definitions.get(m, "")) for m in metrics),
        ]
        columns += [Column("questions", "count"), Column("failed", "count"), Column("time")]
        title = f"Parts, by {', '.join(metrics)}" if number else "Parts"
        bare = [
            m for row in rows for cell in row if (m := as_estimate(cell)) and m.value is not None
        ]
        reasons = dict.fromkeys(no_interval(m.n) for m in bare if m.low is None)
        note = f"Where there is no interval: {', '.join(reasons)}." if reasons else ""
        yield Table(title, tuple(columns), rows, note=note)


def plan(forecast: Forecast) -> Table:
    """Return one row per part and the total in the last row; with expected costs where a pilot measured them."""
    parts = [_part(run.label, run, "about " * run.depends) for run in forecast.runs]
    rows = [*parts, _part("all", forecast)]
    pilot = forecast.pilot
    if pilot:
        rows = [(*row, *_amounts(costs)) for row, costs in zip(rows, [*pilot.parts, pilot.total])]
    columns = (*_PLAN, *(Column(label) for label, _ in _COST.values() if pilot))
    return Table(f"{forecast.kind}: {forecast.name} would run", columns, tuple(rows))


def _part(label: str, part: PlannedRun | Forecast, about: str = "") -> tuple[str, ...]:
    calls = (
        about * (count.high != 0) + span(count) for count in (part.generations, part.retrievals)
    )
    return (label, f"{about}{part.questions:,}", f"{part.open:,}", *calls)


def plan_blocks(forecast: Forecast) -> tuple[Table | str, ...]:
    """Return the plan, the costs of its indexes, and its notes."""
    lines = [f"Indexes: {forecast.index_costs}"] if forecast.index_costs else []
    return (plan(forecast), *lines, *(f"Note: {note}" for note in forecast.notes))


def forms(described: Iterable[RegisteredForm]) -> str:
    """List suites or builders with their settings."""
    texts = []
    for item in described:
        rows = [
            f"  {name}={setting.default}".ljust(31) + f" {setting.about or setting.takes}"
            for name, setting in item.form.items()
        ]
        texts.append("\n".join([f"{item.name}: {item.about}", *rows]))
    return "\n\n".join(texts)


def span(count: Range) -> str:
    """Format a number of calls known only within bounds.

    >>> span(Range(1200, 1200)), span(Range(5, 10)), span(Range(5, None))
    ('1,200', '5 to 10', 'at least 5')
    """
    if count.high is None:
        return f"at least {count.low:,}"
    return f"{count.low:,}" if count.low == count.high else f"{count.low:,} to {count.high:,}"


def amount(value: Interval, format: Format) -> str:
    """Format an expected amount with its bounds.

    >>> amount(Interval(90.0, 60.0, 130.0), "duration"), amount(Interval(), "count")
    ('1 min 30 s (1 min to 2 min 10 s)', 'unknown')
    """
    numbers = [value.value, value.low, value.high]
    if format == "count":
        numbers = [None if number is None else round(number) for number in numbers]
    expected, low, high = (text(number, format, UNKNOWN) for number in numbers)
    bounded = UNKNOWN not in (expected, low, high) and low != high
    return f"{expected} ({low} to {high})" if bounded else expected


def _amounts(costs: Mapping[str, Interval]) -> list[str]:
    return [amount(costs[name], format) for name, (_, format) in _COST.items()]
