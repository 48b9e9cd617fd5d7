"""BARAG's sums: two means, tokens, retrievals, perfect answers, and the histogram of truthfulness + relevance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.experiments import Figure, Table
from rallebench.engine.statistics import Mean, means
from rallebench.experiments.papers.barag.runs import AnswerRow

BINS = tuple(range(2, 11))
"""Unit bins, centred on these."""
COLUMNS = (
    "Truthfulness",
    "Relevance",
    "Input tokens",
    "Output tokens",
    "Retrieved",
    "Perfect",
    "Answers",
)
PERFECT = 5


@dataclass(frozen=True, slots=True)
class Summary:
    """``n_in``, ``n_out`` are None where a backend counted no tokens. ``retrieved``: how many answers were given with
    passages; ``flagged``: how many say so of themselves. ``scored``: how many have scores, over which the means are."""

    n: int
    scored: int
    truthfulness: Mean
    relevance: Mean
    n_in: int | None
    n_out: int | None
    retrieved: int
    flagged: int
    perfect: int
    histogram: Mapping[int, int]
    total: float | None

    @property
    def cells(self) -> tuple[Any, ...]:
        """As a row of a table, in the order of ``COLUMNS``."""
        scored = self.scored > 0
        return (
            self.truthfulness if scored else None,
            self.relevance if scored else None,
            self.n_in,
            self.n_out,
            self.retrieved,
            self.perfect if scored else None,
            self.n,
        )

    def as_json(self) -> dict[str, Any]:
        """For a report."""
        counts = {name: getattr(self, name) for name in ("n_in", "n_out", "retrieved", "flagged")}
        return {
            "n": self.n,
            "scored": self.scored,
            "truthfulness": self.truthfulness.value,
            "relevance": self.relevance.value,
            **counts,
            "both_5": self.perfect,
            "histogram": {str(center): count for center, count in self.histogram.items()},
        }


def summary_of(rows: Sequence[AnswerRow]) -> Summary:
    """The sums over a run's rows."""
    scores = means(
        {"t": [row.truthfulness for row in rows], "r": [row.relevance for row in rows]},
        ranges={"t": (1, 5), "r": (1, 5)},
    )
    totals = [row.total for row in rows if row.total is not None]
    histogram = dict.fromkeys(BINS, 0)
    for total in totals:
        histogram[bin_of(total)] += 1
    return Summary(
        len(rows),
        len(totals),
        scores["t"],
        scores["r"],
        total_of(row.n_in for row in rows),
        total_of(row.n_out for row in rows),
        sum(row.read for row in rows),
        sum(row.retrieved for row in rows),
        sum(row.truthfulness == PERFECT == row.relevance for row in rows),
        histogram,
        sum(totals) / len(totals) if totals else None,
    )


def bin_of(total: float) -> int:
    """The bin that a sum of two scores falls in; one between two falls in the upper.

    >>> bin_of(2), bin_of(9.5), bin_of(10)
    (2, 10, 10)
    """
    return min(BINS[-1], max(BINS[0], math.floor(total + 0.5)))


def total_of(counts: Iterable[int | None]) -> int | None:
    """The sum; None where one is not known."""
    known = list(counts)
    return None if None in known else sum(count or 0 for count in known)


def runs_table(title: str, rows: Mapping[str, Summary], note: str = "") -> Table:
    """Tables II and III: a row per way of answering."""
    cells = tuple((name, *summary.cells) for name, summary in rows.items())
    return Table(title, ("Run", *COLUMNS), cells, note=note)


def histogram_plot(title: str, rows: Mapping[str, Summary]) -> Figure:
    """Truthfulness + relevance, counted in unit bins; the mean stands in the series' name."""
    series = {
        f"{name} (mean {summary.total:.2f})": tuple(
            (str(center), count) for center, count in summary.histogram.items()
        )
        for name, summary in rows.items()
        if summary.total is not None
    }
    return Figure(title, "truthfulness + relevance", "answers", series, kind="bar")
