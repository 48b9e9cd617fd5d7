"""Quality against cost: a bubble per run, its area the memory that its models and indexes took."""

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
"""Key → the label of the axis."""

Reports = Sequence[tuple[str, RunReport]]
"""(name of a run, its report)."""


def figure(reports: Reports, measure: Measure, across: str) -> Figure:
    """The runs of which metric and cost are known; the size is in bytes, None where it is unknown."""
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
    """(run, cost, quality, bytes of memory) of every run of which cost and quality are known."""
    known = []
    for name, report in reports:
        mean, cost = report.metrics.get(metric), costs(report)[across]
        if mean is not None and mean.value is not None and cost is not None:
            known.append((name, cost, mean.value, report.memory.bytes if report.memory else None))
    return known


def notes(reports: Reports, metric: str, across: str) -> list[str]:
    """Sentences on the area of the bubbles and on runs without a point."""
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
    """The mean cost of a question when it was really asked, not what the cache saved; None where unknown."""
    mean = {name: estimate.value for name, estimate in report.metrics.items()}
    read, written = mean.get("prompt_tokens"), mean.get("completion_tokens")
    return {
        "seconds_per_question": mean.get("seconds"),
        "tokens_per_question": None if read is None or written is None else read + written,
        "completion_tokens_per_question": written,
    }
