"""CRUD-RAG's six tasks (Lyu et al. 2024, arXiv:2401.17043) as suites: Chinese news, one retriever, one model.

``compat=original`` does what CRUD-RAG's code does where that differs from its paper or from good sense.
"""

from __future__ import annotations

from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.settings import Setting
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.papers.common import compat, own_prompts, register_each, string
from rallebench.experiments.papers.crud import PAPER
from rallebench.experiments.papers.crud.cells import Cell, check_prompts, perform_cell, plan_cell
from rallebench.experiments.papers.crud.files import results_of, results_path
from rallebench.experiments.papers.crud.records import DATA_IS, read_tasks
from rallebench.experiments.papers.crud.tables import notes_of, plot_of, table_of
from rallebench.experiments.papers.crud.tasks import TASKS, CrudTask, tasks_of

SETTINGS = {
    "data": string(
        "CRUD-RAG's split_merged.json or merged.json, one task's JSON or JSON lines, a folder of these, or a question set"
    ),
    "index": string("the retriever: an index, or a combination as rrf:words,vectors"),
    "k": Setting(
        int, 8, 0, 1000, about="passages per question; 0 asks without any", sweep=(2, 4, 6, 8, 10)
    ),
    "join": string(
        "what parts two documents; auto: a line end behind BM25, else a blank line",
        "auto",
        "line",
        "blank",
    ),
    "temperature": Setting(float, 0.1, 0, 2),
    "top_p": Setting(float, 0.9, 0, 1, about="0: the model's own"),
    "top_k": Setting(int, 0, 0, 100_000, about="default: 5, behind an API the model's own"),
    "max_tokens": Setting(int, 1280, 1, 100_000),
    "compat": compat(),
    "prompts": own_prompts("suites/crud"),
    "similarity": string(
        "encoder for the similarity of answer and reference; default: not measured"
    ),
    "quest": string("a language model for RAGQuestEval; default: not measured"),
    "quest_precision": string(
        "over the questions that the text answers, or over all that the reference does",
        "code",
        "paper",
    ),
    "gold": string("folder or file of CRUD-RAG's own gold questions, for RAGQuestEval"),
    "reuse": string(
        "CRUD-RAG's result file, or a folder of them: answers there are not asked again"
    ),
}


def crud_tasks(request: ExperimentRequest, tasks: tuple[CrudTask, ...]) -> Experiment:
    """These tasks, one cell each."""
    records = read_tasks(request.workspace.data(request.settings["data"], DATA_IS), tasks)
    check_prompts(request, tasks)
    plans = [plan_cell(request, task, records[task.name]) for task in tasks]
    cells: list[Cell] = []
    for plan in plans:
        cells.append((yield from perform_cell(plan, plan.task.name)))
    first = plans[0]
    return Report(
        {
            "dataset": ", ".join(dict.fromkeys(plan.records.name for plan in plans)),
            "llm": request.llm,
            "index": first.index,
            "k": first.k,
            "compat": request.settings["compat"],
            "headline": "rouge-L",
            "counts": {cell.answered.request.label: dict(cell.counts) for cell in cells},
        },
        notes_of(cells),
        {
            results_path(request, plan.task, plan.index, plan.k): results_of(cell)
            for plan, cell in zip(plans, cells)
        },
        tables=(table_of(cells),),
        figures=(plot_of(cells),),
    )


@EXPERIMENTS.register(
    "crud",
    place="suites",
    paper=PAPER,
    form={
        **SETTINGS,
        "tasks": Setting(str, "all", about="as in qa1,summary, or quest_answer, or all"),
    },
)
def crud(request: ExperimentRequest) -> Experiment:
    """CRUD-RAG: several of its tasks, one after another."""
    return (yield from crud_tasks(request, tasks_of(request.settings["tasks"])))


register_each(
    crud_tasks,
    {
        f"crud-{task.name}": (f"CRUD-RAG, {task.key}: {task.about}.", (task,))
        for task in TASKS.values()
    },
    paper=PAPER,
    form=SETTINGS,
)
