"""Plot quality against cost: one bubble per run, its area the memory of its models and indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rallebench.core.comparison import Measure
from rallebench.core.memory import size
from rallebench.core.report import RunReport
from rallebench.core.tables import Figure

COST_AXES: Mapping[str, str] = {
    "seconds_per_question": "seconds a question",
    "tokens_per_question": "tokens a question",
    "completion_tokens_per_question": "written tokens a question",
}
"""Cost → its axis label."""

Reports = Sequence[tuple[str, RunReport]]
"""(name of a run, its report)."""


def figure(reports: Reports, measure: Measure, across: str) -> Figure:
    """Plot the runs whose metric and cost are known; bubble sizes are in bytes, None if unknown."""
    series = {
        name: ((x, y, held, f"memory: {size(held)}" if held is not None else "memory unknown"),)
        for name, x, y, held in points(reports, measure.name, across)
    }
    empty = "No run has both the metric and this cost."
    label = COST_AXES[across]
    return Figure("", label, measure.card.label, series, "bubble", empty=empty)


def points(
    reports: Reports, metric: str, across: str
) -> list[tuple[str, float, float, int | None]]:
    """(run, cost, quality, bytes of memory) of every run whose cost and quality are known."""
    known = []
    for name, report in reports:
        mean, cost = report.metrics.get(metric), costs(report)[across]
        if mean is not None and mean.value is not None and cost is not None:
            known.append((name, cost, mean.value, report.memory.bytes if report.memory else None))
    return known


def notes(reports: Reports, metric: str, across: str) -> list[str]:
    """Explain the area of the bubbles, and name runs without a bubble."""
    known = points(reports, metric, across)
    sentences = []
    if known:
        hollow = [name for name, *_, held in known if held is None]
        unknown = f" Hollow, because it is unknown: {', '.join(hollow)}." if hollow else ""
        sentences.append(
            f"The area of a bubble is the memory that the run's models and indexes took when they were loaded.{unknown}"
        )
    names = {name for name, *_ in known}
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
