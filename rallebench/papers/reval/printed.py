"""Plots of R-Eval's printed tables."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from rallebench.core.tables import Figure
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.published.plots import Plot, rim
from rallebench.experiments.published.tables import PublishedTable

WORKFLOWS = (Plot("{}", ("[0-9]*",), "F1", "task", "radar", each="workflow"),)

AXES = {
    "Wikipedia KS": ("reval_table5", ("1-1", "1-2")),
    "Wikipedia KU": ("reval_table5", ("2-1", "2-2", "2-3")),
    "Wikipedia KA": ("reval_table5", ("3-1", "3-2", "3-3", "3-4")),
    "scholar KS": ("reval_table3", ("1-3",)),
    "scholar KU": ("reval_table3", ("2-4",)),
    "scholar KA": ("reval_table3", ("3-5",)),
}
"""Axis of R-Eval's radars → the table and the tasks averaged for it."""


def draw_levels(table: PublishedTable) -> Iterator[Figure]:
    """R-Eval's radars from both task tables: F1 by environment and level, one radar per workflow and one polygon per model."""
    series: dict[str, dict[str, tuple[tuple[str, float], ...]]] = {}
    for row in table.rows:
        means = []
        for axis, (name, tasks) in AXES.items():
            values = published_table(name).row(row.system).values
            means.append((axis, fmean(values[task] for task in tasks)))
        series.setdefault(row.settings["workflow"], {})[row.settings["llm"]] = tuple(means)
    high = max(rim(of_workflow) for of_workflow in series.values())
    for workflow, of_workflow in series.items():
        title = f"{workflow}, by environment and level"
        yield Figure(title, "", "F1", of_workflow, "radar", high=high)


ERRORS = {
    "exact_match_percent": "EM",
    "answer_match_percent": "AM",
    "tool_using_error_percent": "TE",
}
"""Fact in R-Eval's text → class of answers."""
RIGHT = ("EM", "AM")


def draw_shares(table: PublishedTable) -> Iterator[Figure]:
    """R-Eval's rings, as far as its text gives their shares."""
    from rallebench.analysis.agents.errors import (
        CLASSES,
    )  # avoid importing the analyses to list tables

    beginning = "error shares of "
    for row in table.rows:
        if row.system.startswith(beginning):
            classes = {ERRORS[name]: value for name, value in row.values.items()}
            right = sum(classes[name] for name in RIGHT)
            rest = "other errors, not printed one by one"
            outside = {**classes, rest: round(100 - sum(classes.values()), 1)}
            ordered = sorted(outside.items(), key=lambda part: part[0] not in RIGHT)
            series = {
                "right and wrong": (("ACC", round(right, 1)), ("WA", round(100 - right, 1))),
                "classes": tuple(ordered),
            }
            title = row.system.removeprefix(beginning)
            yield Figure(title, "", "percent", series, "rings", labels=CLASSES)
