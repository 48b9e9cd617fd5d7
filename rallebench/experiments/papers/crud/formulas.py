"""RAGQuestEval's precision by CRUD-RAG's code and by its paper's formula 2, beside each other, from the same judgements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rallebench.core.tables import Mean, Table
from rallebench.engine.statistics import means
from rallebench.experiments.papers.crud.cells import Cell
from rallebench.metrics.judges.ragquesteval import quest_scores

FORMULAS = {"precision, code": False, "precision, paper": True}
"""Column → whether the mean is over all questions that the reference answers."""
NOTE = (
    "In %. Code: mean word F1 over the questions that text and reference both answer. Paper, formula 2: over all that the "
    "reference answers. The paper's text agrees with its code."
)


def by_both(cells: Sequence[Cell]) -> tuple[Table, ...]:
    """A row a task with both precisions and the recall; no table without judgements."""
    rows: tuple[tuple[Any, ...], ...] = tuple(
        (cell.plan.task.name, *_means(cell), len(cell.quests)) for cell in cells if cell.quests
    )
    heads = ("task", *FORMULAS, "recall", "answers")
    return (Table("RAGQuestEval by both formulas", heads, rows, note=NOTE),) if rows else ()


def _means(cell: Cell) -> tuple[Mean, ...]:
    clusters = cell.clusters
    by_formula = {
        name: [
            100 * quest_scores(c["answers"], c["text_answers"], over_all=over_all).f1
            for c in cell.quests.values()
        ]
        for name, over_all in FORMULAS.items()
    }
    recalls = [
        100 * quest_scores(c["answers"], c["text_answers"]).recall for c in cell.quests.values()
    ]
    columns = {**by_formula, "recall": recalls}
    ranges = dict.fromkeys(columns, (0.0, 100.0))
    return tuple(means(columns, [clusters[qid] for qid in cell.quests], ranges).values())
