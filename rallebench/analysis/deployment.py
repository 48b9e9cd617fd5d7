"""Plot quality against cost: one bubble per run, its area the memory of its models and indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rallebench.core.comparison import Measure
from rallebench.core.memory import size
from rallebench.core.report import Estimate, RunReport
from rallebench.core.tables import Figure, Unit

UNITS: Mapping[str, Unit] = {"seconds_per_question": "seconds"}
COST_AXES: Mapping[str, str] = {
    "seconds_per_question": "seconds a question",
    "tokens_per_question": "tokens a question",
    "completion_tokens_per_question": "written tokens a question",
}
"""Cost → its axis label."""

MOST_NAMED = 5
"""Maximum bubbles of a plot that show names; larger plots show numbers."""
Reports = Sequence[tuple[str, RunReport]]
"""(name of a run, its report)."""


@dataclass(frozen=True, slots=True)
class RunPoint:
    """A run in the plot. ``title``: its name for readers; ``memory``: in bytes, None if unknown."""

    title: str
    run: str
    cost: float
    quality: Estimate
    memory: int | None


def figure(reports: Reports, measure: Measure, across: str) -> Figure:
    """Plot the runs whose metric and cost are known; bubble sizes are in bytes, None if unknown."""
    known = points(reports, measure.name, across)
    return draw(known, across, measure.card.label, measure.bounds == (0, 1))


def draw(known: Sequence[RunPoint], across: str, label: str, is_share: bool) -> Figure:
    """Plot these runs; above MOST_NAMED with ranks in place of names."""
    short = len(known) > MOST_NAMED
    series, runs = {}, {}
    for number, point in enumerate(known, 1):
        held = point.memory
        words = f"memory: {size(held)}" if held is not None else "memory unknown"
        name = str(number) if short else point.title
        full = (point.title,) if short else ()
        series[name] = ((point.cost, point.quality, held, *full, words),)
        runs[name] = (point.run,)
    empty = "No run has both the metric and this cost."
    units: tuple[Unit, Unit] = (UNITS.get(across, ""), "share" if is_share else "")
    title = f"Quality against {COST_AXES[across]}"
    return Figure(
        title, COST_AXES[across], label, series, "bubble", empty=empty, units=units, runs=runs
    )


def points(reports: Reports, metric: str, across: str) -> list[RunPoint]:
    """Every run whose cost and quality are known."""
    known = []
    for name, report in reports:
        mean, cost = report.metrics.get(metric), costs(report)[across]
        if mean is not None and mean.value is not None and cost is not None:
            memory = report.memory.bytes if report.memory else None
            known.append(RunPoint(name, report.run, cost, mean, memory))
    return known


def notes(reports: Reports, metric: str, across: str) -> list[str]:
    """Explain the area of the bubbles, and name runs without a bubble."""
    known = points(reports, metric, across)
    sentences = []
    if known:
        hollow = [point.title for point in known if point.memory is None]
        unknown = f" Hollow, because it is unknown: {', '.join(hollow)}." if hollow else ""
        sentences.append(
            f"The area of a bubble is the memory that the run's models and indexes took when they were loaded.{unknown}"
        )
    names = {point.title for point in known}
    if lacking := [name for name, _ in reports if name not in names]:
        sentences.append(
            f"Not in the plot, because the metric or this cost is unknown: {', '.join(lacking)}."
        )
    return sentences


def costs(report: RunReport) -> dict[str, float | None]:
    """Mean cost of a question when it was first answered, ignoring savings by the cache; None if unknown."""
    mean = {name: estimate.value for name, estimate in report.metrics.items()}
    read, written = mean.get("prompt_tokens"), mean.get("completion_tokens")
    return {
        "seconds_per_question": mean.get("seconds"),
        "tokens_per_question": None if read is None or written is None else read + written,
        "completion_tokens_per_question": written,
    }
