"""R-Eval's plots for our own grid: F1 by environment and level, kinds of error, and F1 against seconds and tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rallebench.analysis.agents import AnalysisOptions, TaskRun
from rallebench.analysis.agents.aspects import analyse
from rallebench.analysis.agents.reading import summarize
from rallebench.core.runs import RunResult
from rallebench.core.tables import Figure
from rallebench.papers.reval.grid import GridCell

TITLES = {"matching": "F1 by environment and level", "errors": "Errors", "deployment": "F1 against"}
"""Aspect of the analysis → start of its plot titles."""


def task_run(cell: GridCell, result: RunResult, original: bool) -> TaskRun:
    """A cell with its question results, as expected by the analyses."""
    rows = tuple(
        summarize(example, result.episodes[example.question.qid], original=original)
        for example in cell.questions.examples
        if example.question.qid in result.episodes
    )
    memory = sum(result.memory.values()) or None
    return replace(cell.task_run, name=result.run, rows=rows, failed=result.n_errors, memory=memory)


def analysis_plots(
    cells: Sequence[GridCell], results: Mapping[str, RunResult], original: bool
) -> Iterator[Figure]:
    """The plots of ``analyse``: a radar per workflow, rings per system, bubbles per environment."""
    runs = [task_run(cell, results[cell.label], original) for cell in cells]
    for aspect, beginning in TITLES.items():
        drawn = analyse(runs, aspect, AnalysisOptions(original)).figures
        for figure in drawn.values():
            if aspect == "deployment":
                yield replace(figure, title=f"{beginning} {figure.x}: {figure.title}")
            else:
                yield replace(figure, title=f"{beginning}: {figure.title}")
