"""Suites for CRUD-RAG's six tasks (Lyu et al. 2024, arXiv:2401.17043): Chinese news, one retriever, one model.

``compat=original`` reproduces CRUD-RAG's code even if it deviates from the paper or contains errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiment_reports import PUBLISHED, OwnRow
from rallebench.core.experiments import Experiment, ExperimentRequest, IndexRequest, Report
from rallebench.core.report import Estimate
from rallebench.core.settings import dataclass_form
from rallebench.core.starter import READER
from rallebench.core.tables import Figure, Table
from rallebench.engine.statistics import means
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.common import bars, failed_note
from rallebench.experiments.languages import prompts_note
from rallebench.experiments.published.official import why_unverified
from rallebench.experiments.published.rows import own_row, unlike
from rallebench.papers.common import count_sentences, differs_by, list_names, register_each
from rallebench.papers.crud.benchmark import CRUD
from rallebench.papers.crud.cells import (
    Cell,
    CellPlan,
    perform_cell,
    plan_cell,
    wording_in,
)
from rallebench.papers.crud.configurations import Config, index_recipes
from rallebench.papers.crud.factors import WORDS
from rallebench.papers.crud.predictions import results_path
from rallebench.papers.crud.records import (
    DATA_IS,
    TASKS,
    CrudTask,
    find_tasks,
    read_tasks,
)
from rallebench.papers.crud.results import result_file
from rallebench.papers.crud.retrieval import searches_words, separator
from rallebench.papers.crud.settings import CrudSettings, CrudTasksSettings
from rallebench.workspace.paths import WorkspaceFolder

COLUMNS = {
    "BLEU": "bleu-avg",
    "ROUGE-L": "rouge-L",
    "similarity": "similarity",
    "precision": "QA_avg_F1",
    "recall": "QA_recall",
    "length": "length",
    "MRR": "mrr",
}
"""The paper's heading → our metric."""
PAPERS = "paper: GPT-3.5-turbo, bge-base, top 8, chunks of 128"


def task_table(cells: Sequence[Cell]) -> Table:
    """A row per cell; the paper's base system follows the rows of each task."""
    rows: list[tuple[Any, ...]] = []
    for number, cell in enumerate(cells):
        scores = (percent(cell.answered.means.get(name), name) for name in COLUMNS.values())
        rows.append((_describe(cell), *scores, len(cell.answered.episodes)))
        task = cell.plan.task
        last = all(other.plan.task != task for other in cells[number + 1 :])
        if last and not own_cell_row(cell, "llm", cell.plan.request.llm).why:
            printed = published_table("crud_table3").row(task=task.printed, base=True).values
            rows.append((f"{task.name} · {PAPERS}", *printed.values(), None, None))
    own = own_cell_row(cells[0], "llm", cells[0].plan.request.llm)
    note = f"All but length (characters) in %. Empty: not measured. {own.note}"
    return Table("CRUD-RAG", ("task", *COLUMNS, "answers"), tuple(rows), note=note)


CHUNK = 128
"""Tokens per chunk in the paper's base configuration."""
SPLIT = "split_merged"
"""The file with a fifth of the records, as measured in the paper."""
ENCODER = "text2vec-base-chinese"
FACTOR_TABLES = {
    "chunk": ("crud_table3", "chunk_size"),
    "overlap": ("crud_table4", "chunk_overlap_percent"),
    "retriever": ("crud_table5", "retriever"),
    "embedding": ("crud_table6", "embedding"),
    "topk": ("crud_table7", "top-k"),
    "llm": ("crud_table8", "llm"),
}
"""Factor of the grid → (the paper's table, the setting varied in it)."""


def own_cell_row(cell: Cell, factor: str, value: Any) -> OwnRow:
    """A cell as a row of the paper's table for a factor; its figures cover all records of ``split_merged.json``."""
    plan, request = cell.plan, cell.plan.request
    records, n = plan.records, len(plan.chosen)
    why = unlike(records.name, SPLIT, n, len(records.records)) or _too_few(plan)
    why = why or why_unverified("crud", SPLIT, file=records.path)
    own = {head: cell.answered.means.get(name) for head, name in COLUMNS.items() if head != "MRR"}
    theirs = dict(zip(published_table("crud_table8").columns, own.values()))
    if ENCODER not in plan.similarity:
        del theirs["bertScore"]
    judging = plan.judging
    if judging and judging.by_paper:
        del theirs["precision"]
    differs = differs_by(
        request,
        plan.wording,
        f"Ours retrieve from {plan.index}, the paper's from 86,834 articles." * bool(plan.k),
        f"RAGQuestEval by {judging.llm}, the paper's by GPT-3.5-turbo." if judging else "",
        "The paper does not print its number of records.",
    )
    table, setting = FACTOR_TABLES[factor]
    system = f"{setting}={value}"
    settings = {"task": plan.task.printed, setting: value}
    return own_row(table, system, theirs, why, differs, **settings)


def _too_few(plan: CellPlan) -> str:
    """The reason to doubt that a file is the paper's despite its name: it has far fewer records than a fifth of the task's. ''
    if there is no doubt."""
    whole = published_table("crud_table2").row(plan.task.printed).values["size"]
    n = plan.records.total
    return (
        "" if 8 * n > whole else f"ours has {n:,} records, the paper's about a fifth of {whole:,}"
    )


def _describe(cell: Cell) -> str:
    plan = cell.plan
    return f"{plan.task.name} · {plan.request.llm}, " + (
        f"{plan.index}, top {plan.k}" if plan.k else "no documents"
    )


def percent(mean: Estimate | None, metric: str) -> Estimate | None:
    """The mean in percent, with lengths unchanged; None without scores."""
    if mean is None or mean.value is None:
        return None
    return mean if metric == "length" else mean.times(100)


def task_plot(cells: Sequence[Cell]) -> Figure:
    """BLEU, ROUGE-L and the other metrics with a mean, as one bar per cell."""
    series = {
        head: [(_describe(cell), percent(cell.answered.means.get(name), name)) for cell in cells]
        for head, name in COLUMNS.items()
        if name != "length"
    }
    heads = [head for head in COLUMNS if head != "length"]
    led = dict.fromkeys(heads, tuple(cell.answered.run for cell in cells))
    return bars("CRUD-RAG by task", "task", "%", series, unit="percent", runs=led)


def printed_value(cell: Cell, factor: str, value: Any, metric: str) -> float | None:
    """The paper's figure for a value of a factor, in percent; None if it prints none or ours are not comparable."""
    if own_cell_row(cell, factor, value).why:
        return None
    name, setting = FACTOR_TABLES[factor]
    table = published_table(name)
    heads = [own for own in COLUMNS.values() if own != "mrr"]
    column = dict(zip(heads, published_table("crud_table8").columns)).get(metric)
    try:
        row = table.row(task=cell.plan.task.printed, **{setting: value})
    except LookupError:
        return None
    printed = row.values.get(column) if column else None
    return printed if isinstance(printed, (int, float)) else None


FORMULAS = {"precision, code": False, "precision, paper": True}
"""Column → True if the mean covers all questions that the reference answers."""
FORMULA_NOTE = (
    "In %. Code: mean word F1 over the questions that text and reference both answer. Paper, formula 2: over all that the "
    "reference answers. The paper's text agrees with its code."
)


def formula_tables(cells: Sequence[Cell]) -> tuple[Table, ...]:
    """RAGQuestEval's precision by CRUD-RAG's code and by the paper's formula 2, from the same judgements, and its recall. One
    row per task; no table without judgements."""
    rows: tuple[tuple[Any, ...], ...] = tuple(
        (cell.plan.task.name, *_quest_means(cell), len(cell.quests))
        for cell in cells
        if cell.quests
    )
    heads = ("task", *FORMULAS, "recall", "answers")
    return (Table("RAGQuestEval by both formulas", heads, rows, note=FORMULA_NOTE),) if rows else ()


def _quest_means(cell: Cell) -> tuple[Estimate, ...]:
    by_formula = {
        name: [100 * entry.scores(over_all=over_all).f1 for entry in cell.quests.values()]
        for name, over_all in FORMULAS.items()
    }
    recalls = [100 * entry.scores().recall for entry in cell.quests.values()]
    columns = {**by_formula, "recall": recalls}
    ranges = dict.fromkeys(columns, (0.0, 100.0))
    return tuple(means(columns, [cell.clusters[qid] for qid in cell.quests], ranges).values())


def suite_notes(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Sentences below the tables: notes on the cells, and differences from the paper."""
    notes = [note for cell in cells for note in _notes_of_cell(cell)]
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
            if first.judging.by_paper
            else "over the questions that the text answers, too (as CRUD-RAG's code has it)"
        )
        notes.append(
            f"RAGQuestEval is by {first.judging.llm}, the paper's by GPT-3.5-turbo; precision is {how}."
        )
    return tuple(dict.fromkeys(filter(None, notes)))


NOTES = {
    "empty": "answers are empty; they are counted here and in no mean",
    "without_documents": "questions were asked without documents, as nothing was found",
    "reused": "answers are of an earlier time and were not asked again; mrr leaves them out",
    "unknown_gold": "records have no known gold documents; mrr leaves them out",
}
QUEST_NOTES = {
    "quest_no_questions": "have no questions that could be read and are in neither of RAGQuestEval's means",
    "quest_unparsed": "have a judge's reply that could not be read and are in neither of RAGQuestEval's means",
    "quest_failed": "failed in RAGQuestEval and are in neither of its means",
    "quest_unanswerable": "have no question that the reference answers; RAGQuestEval counts 0 for them",
    "quest_nothing_answered": "answer none of the questions; RAGQuestEval counts 0 for them",
}
"""Count of a cell → the end of its sentence."""


def left_out_notes(plan: CellPlan) -> Iterator[str]:
    """A sentence for each reason why a cell omits some of a task's records."""
    for why, ids in plan.records.left_out.items():
        yield f"{plan.task.name}: {len(ids)} of {plan.records.total} records {why} and were left out: {list_names(ids)}."


def _notes_of_cell(cell: Cell) -> Iterator[str]:
    name, plan, counts = cell.plan.task.name, cell.plan, cell.counts.to_json()
    if not plan.settings.prompts:
        values = (" ".join(record.values.values()) for record in plan.chosen)
        yield prompts_note("Chinese", values, "send your own (prompts=FOLDER)", name)
    yield from left_out_notes(plan)
    yield from failed_note(name, cell.answered, "counted here and in no mean")
    ranked = plan.task.ranked and plan.k
    unknown = sum(not record.gold for record in plan.chosen) if ranked else 0
    of_all = count_sentences({**counts, "unknown_gold": unknown}, NOTES, f"of {cell.counts.n}")
    of_judged = count_sentences(counts, QUEST_NOTES, f"of {cell.counts.quest.judged} answers")
    yield from (f"{name}: {sentence}" for sentence in (*of_all, *of_judged))
    if references := cell.counts.quest.new_references:
        yield f"{name}: questions were made of {references} references; those that could be read are kept."


def _find_retriever(
    request: ExperimentRequest[WorkspaceFolder], settings: CrudSettings
) -> tuple[str, int, str]:
    """(retriever, k, document separator); '' for a retriever that is not built yet. Raises UsageError."""
    index, join = settings.index, settings.answering.join
    if not settings.k:
        return "", 0, separator(join, words=False)
    if index and settings.corpus:
        raise UsageError("index is a retriever already, so corpus is not needed; name one of them.")
    if not index and not settings.corpus:
        raise UsageError(
            "CRUD-RAG retrieves, so it needs documents, or a retriever as index=NAME; k=0 asks without any.",
            hint=Hint("set", "corpus=PATH"),
        )
    words = not index or searches_words(request.workspace, index)
    return index, settings.k, separator(join, words)


def crud_tasks(
    request: ExperimentRequest[WorkspaceFolder], settings: CrudSettings, tasks: tuple[CrudTask, ...]
) -> Experiment:
    """Run these tasks, one cell each."""
    answering = settings.answering
    records = read_tasks(request.workspace.data(settings.data, DATA_IS), tasks)
    wording = wording_in(answering, tasks)
    index, k, between = _find_retriever(request, settings)
    if k and not index:
        base = Config(CHUNK, 0, "", WORDS, k, request.llm)
        recipe = index_recipes(request, settings.documents, base)[WORDS]
        for task in tasks:  # raise all errors before building the index
            plan_cell(request, answering, task, records[task.name], ("", k, between))
        index = (yield IndexRequest("BM25 over the documents", recipe)).name
    plans = [
        plan_cell(
            request,
            answering,
            task,
            records[task.name],
            (index, k, between),
            reuse=settings.reuse,
        )
        for task in tasks
    ]
    cells: list[Cell] = []
    for plan in plans:
        cells.append((yield from perform_cell(plan, plan.task.name)))
    return Report(
        {
            "dataset": ", ".join(dict.fromkeys(plan.records.name for plan in plans)),
            "llm": request.llm,
            "index": index,
            "k": k,
            "compat": answering.compat,
            "headline": "rouge-L",
            "wording": wording.to_json(),
            PUBLISHED: tuple(own_cell_row(cell, "llm", request.llm) for cell in cells),
            "counts": {cell.label: cell.counts.to_json() for cell in cells},
        },
        suite_notes(cells),
        {results_path(request, cell.plan.task, index, k): result_file(cell) for cell in cells},
        tables=(task_table(cells), *formula_tables(cells)),
        figures=(task_plot(cells),),
    )


@CRUD.suite("crud", form=dataclass_form(CrudTasksSettings))
def crud(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """CRUD-RAG: several of its tasks, one after another."""
    settings = request.read(CrudTasksSettings)
    return (yield from crud_tasks(request, settings.suite, find_tasks(settings.tasks)))


def crud_task(request: ExperimentRequest[WorkspaceFolder], task: CrudTask) -> Experiment:
    """Run one task."""
    return (yield from crud_tasks(request, request.read(CrudSettings), (task,)))


register_each(
    CRUD.suite,
    crud_task,
    {
        f"crud-{task.name}": (f"CRUD-RAG, {task.key}: {task.about}.", task)
        for task in TASKS.values()
    },
    form=dataclass_form(CrudSettings),
)
