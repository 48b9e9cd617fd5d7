"""The repeats of a run as a sentence and a table."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.core.repeats import MetricRepeats, RepeatReport
from rallebench.core.tables import Cell, Column, Table

MOST_SHOWN = 5
"""Values of k in the table; the largest k is shown, too."""
HELP = (
    "Variance of the questions' true means: the part of the spread that more questions average out.",
    "Variance of the scores of one question: the part that more repeats average out.",
    "Share of the questions whose scores differ between repeats.",
)


def blocks(report: RepeatReport | None) -> tuple[Table | str, ...]:
    """Return the sentence, and with several repeats the table; () for a run without repeats."""
    if report is None:
        return ()
    rows = tuple(_row(report, name, metric) for name, metric in report.metrics.items() if metric.n)
    if not rows:
        return (report.sentence,)
    ks = shown_ks(report.number)
    labels = ("variance between questions", "between repeats", "unstable questions")
    columns = (
        Column("  metric", "text"),
        *(Column(label, "score", help=text) for label, text in zip(labels, HELP)),
        *(Column(f"pass@{k}") for k in ks),
        *(Column(f"pass^{k}") for k in ks),
        Column("n", "count"),
    )
    thresholds = ", ".join(f"{name} ≥ {score:g}" for name, score in report.thresholds.items())
    passes = "pass@k: at least one of k repeats passes; pass^k: all k pass. An answer passes with 1"
    note = f"{passes}{f', or {thresholds}' if thresholds else ''}."
    return (Table(report.sentence, columns, rows, note=note),)


def shown_ks(number: int) -> Sequence[int]:
    """Return the values of k that a table shows.

    >>> shown_ks(3), shown_ks(20)
    ([1, 2, 3], [1, 2, 3, 4, 5, 20])
    """
    return [k for k in range(1, number + 1) if k <= MOST_SHOWN or k == number]


def _row(report: RepeatReport, name: str, metric: MetricRepeats) -> tuple[Cell, ...]:
    ks = shown_ks(report.number)
    passes = [
        values[k - 1] if k <= len(values) else None
        for values in (metric.pass_at, metric.pass_all)
        for k in ks
    ]
    parts = (metric.between_questions, metric.between_repeats, metric.unstable)
    return (f"  {name}", *parts, *passes, metric.n)
