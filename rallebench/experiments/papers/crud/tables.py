"""CRUD-RAG's table beside the paper's base row, and what a reader of it must know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rallebench.core.experiments import Figure, Table
from rallebench.engine.statistics import Mean
from rallebench.experiments.papers.common import failed_note, listed
from rallebench.experiments.papers.crud.cells import Cell
from rallebench.experiments.papers.crud.tasks import CrudTask
from rallebench.experiments.published import published_table
from rallebench.workspace.paths import READER

COLUMNS = {
    "BLEU": "bleu-avg",
    "ROUGE-L": "rouge-L",
    "similarity": "similarity",
    "precision": "QA_avg_F1",
    "recall": "QA_recall",
    "length": "length",
    "MRR": "mrr",
}
"""As the paper heads them → ours."""
PAPERS = "paper: GPT-3.5-turbo, bge-base, top 8, chunks of 128"


def table_of(cells: Sequence[Cell]) -> Table:
    """A row per cell, and below those of a task the paper's base system."""
    rows: list[tuple[Any, ...]] = []
    for number, cell in enumerate(cells):
        means = (percent(cell.answered.means.get(name), name) for name in COLUMNS.values())
        rows.append((_describe(cell), *means, len(cell.answered.episodes)))
        task = cell.plan.task
        if all(other.plan.task != task for other in cells[number + 1 :]):
            rows.append((f"{task.name} · {PAPERS}", *papers_base(task).values(), None, None))
    note = (
        "All but length (characters) in %. The paper's rows were measured on its own records and model: a yardstick. "
        "Empty: not measured."
    )
    return Table("CRUD-RAG", ("task", *COLUMNS, "answers"), tuple(rows), note=note)


def papers_base(task: CrudTask) -> dict[str, float]:
    """Column → what the paper's base system reached: BLEU, ROUGE-L, similarity, precision and recall in %, length in characters."""
    return dict(published_table("crud_table3").row(task=task.printed, base=True).values)


def _describe(cell: Cell) -> str:
    plan = cell.plan
    return f"{plan.task.name} · {plan.request.llm}, " + (
        f"{plan.index}, top {plan.k}" if plan.k else "no documents"
    )


def percent(mean: Mean | None, metric: str) -> Mean | None:
    """In %, but for a length; None where nothing is scored."""
    if mean is None or mean.value is None or metric == "length":
        return mean if mean is not None and mean.value is not None else None
    low, high = (100 * value if value is not None else None for value in (mean.low, mean.high))
    return Mean(100 * mean.value, low, high, mean.n)


def plot_of(cells: Sequence[Cell]) -> Figure:
    """BLEU, ROUGE-L and what else has a mean, a bar for every cell."""
    series = {
        head: tuple(
            (_describe(cell), mean)
            for cell in cells
            if (mean := percent(cell.answered.means.get(name), name)) is not None
        )
        for head, name in COLUMNS.items()
        if name != "length"
    }
    series = {head: points for head, points in series.items() if points}
    return Figure("CRUD-RAG by task", "task", "%", series, kind="bar")


def notes_of(cells: Sequence[Cell]) -> tuple[str, ...]:
    """One sentence each."""
    notes = [note for cell in cells for note in _notes(cell)]
    first = cells[0].plan
    if first.request.workspace.llm(first.request.llm).backend == READER:
        notes.append(
            "The embedded reader reads English only and says so instead of answering Chinese questions: choose another model."
        )
    if first.similarity:
        notes.append(
            f"similarity is by {first.similarity}; the paper's is by text2vec-base-chinese, and values of different encoders "
            "cannot be compared."
        )
    if first.judging is not None:
        how = (
            "over all questions that the reference answers (the paper's formula)"
            if first.judging.judge.settings["precision"] == "paper"
            else "over the questions that the text answers, too (as CRUD-RAG's code has it)"
        )
        notes.append(
            f"RAGQuestEval is by {first.judging.judge.llm}, the paper's by GPT-3.5-turbo; precision is {how}."
        )
    return tuple(dict.fromkeys(notes))


QUEST_NOTES = {
    "quest_no_questions": "have no questions that could be read and are in neither of RAGQuestEval's means",
    "quest_unparsed": "have a judge's reply that could not be read and are in neither of RAGQuestEval's means",
    "quest_failed": "failed in RAGQuestEval and are in neither of its means",
    "quest_unanswerable": "have no question that the reference answers; RAGQuestEval counts 0 for them",
    "quest_nothing_answered": "answer none of the questions; RAGQuestEval counts 0 for them",
}


def _notes(cell: Cell) -> Iterator[str]:
    name, plan, counts = cell.plan.task.name, cell.plan, cell.counts
    for why, ids in plan.records.left_out.items():
        yield f"{name}: {len(ids)} of {plan.records.total} records {why} and were left out: {listed(ids)}."
    yield from failed_note(name, cell.answered, "counted here and in no mean")
    if counts["empty"]:
        yield f"{name}: {counts['empty']} of {counts['asked']} answers are empty; they are counted here and in no mean."
    if counts["without_documents"]:
        yield f"{name}: for {counts['without_documents']} of {counts['asked']} questions nothing was found; they were asked without documents."
    if counts["reused"]:
        yield f"{name}: {counts['reused']} answers are of an earlier time and were not asked again; mrr leaves them out."
    unknown = sum(not record.gold for record in plan.chosen)
    if plan.task.ranked and plan.k and unknown:
        yield f"{name}: of {unknown} of {len(plan.chosen)} records the gold documents are not known; mrr leaves them out."
    for key, sentence in QUEST_NOTES.items():
        if counts.get(key):
            yield f"{name}: {counts[key]} of {counts['quest_asked']} answers {sentence}."
    if counts.get("quest_new_references"):
        yield f"{name}: questions were made of {counts['quest_new_references']} references; those that could be read are kept."
