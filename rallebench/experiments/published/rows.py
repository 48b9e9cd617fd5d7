"""Our figures in the form of a printed table: comparable cells, and the remaining differences.

A cell is shown beside the paper's only if split, metric and questions (``official.py``) are the same. Other differences, such
as prompt wording or corpus, are listed below the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rallebench.core.experiment_reports import OwnRow
from rallebench.core.report import Estimate
from rallebench.experiments.benchmarks import published_table


def own_row(
    table: str,
    system: str,
    cells: Mapping[str, Estimate | None],
    why: str = "",
    differs: Iterable[str] = (),
    **settings: Any,
) -> OwnRow:
    """A row for a printed table, without the cells that lack a value. Means are given as shares even if the paper prints
    percentages."""
    printed = published_table(table)
    scored = {
        column: mean.times(100 if "percent" in printed.unit(column) else 1)
        for column, mean in cells.items()
        if mean is not None and mean.value is not None
    }
    comparable = {} if why else scored
    if not why and not comparable:
        why = "nothing that the paper prints was scored"
    return OwnRow(table, system, comparable, settings, why, tuple(filter(None, differs)))


def unlike(ours: str, theirs: str, n: int, printed: int | None) -> str:
    """The reason why figures for ``n`` questions of the set ``ours`` are not comparable with figures for ``printed`` questions
    of ``theirs``; '' if they are.

    >>> unlike("en", "en", 300, 300), unlike("en", "en", 20, 300)
    ('', "ours are of 20 questions, the paper's of 300")
    >>> unlike("en_refine", "en", 300, 300)
    "ours are of en_refine, the paper's of en"
    """
    if ours != theirs:
        return f"ours are of {ours}, the paper's of {theirs}"
    if printed is not None and n != printed:
        return f"ours are of {n:,} questions, the paper's of {printed:,}"
    return ""
