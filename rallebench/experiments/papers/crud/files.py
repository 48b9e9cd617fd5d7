"""CRUD-RAG's own result files: one JSON document per task, and the answers of such a file used again."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import read_json
from rallebench.experiments.papers.common import in_folder
from rallebench.experiments.papers.crud.records import CrudTask

if TYPE_CHECKING:
    from rallebench.experiments.papers.crud.cells import Cell

METRICS = ("bleu-avg", "bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-L", "similarity")
METRICS += ("QA_avg_F1", "QA_recall", "length")
NAMES = {"similarity": "bertScore"}
"""Ours → CRUD-RAG's, where they differ."""
QUEST = ("QA_avg_F1", "QA_recall")
SAVED = {
    "questions_gt": "question",
    "answers_gt4gt": "answers",
    "answers_gm4gt": "text_answers",
}
"""CRUD-RAG's name of what RAGQuestEval saves → ours."""


def results_path(request: ExperimentRequest, task: CrudTask, index: str, k: int) -> str:
    """Where CRUD-RAG would write a task's results: collection, k and the kind of model are in the folder's name."""
    collection, llm = _plain(index or "none"), _plain(request.llm)
    return f"output/{collection}_top{k}_{_plain(request.workspace.llm(request.llm).backend)}/{task.file}_{llm}.json"


def _plain(name: str) -> str:
    return re.sub(r"[^\w.\-=+@]+", "-", name).strip("-")[:80] or "unnamed"


def results_of(cell: Cell) -> str:
    """The file's content. Questions that failed have no row; an empty answer's row is not ``valid``."""
    plan = cell.plan
    records = [record for record in plan.chosen if record.id in cell.answered.episodes]
    rows = [_row(cell, record.id, record.reference) for record in records]
    rows.sort(key=lambda row: str(row["id"]))
    info = {"task": plan.task.file, "llm": plan.request.llm}
    if not plan.original:
        decoding = json.dumps(plan.decoding)
        info |= {"retriever": plan.index, "top_k": str(plan.k), "decoding": decoding}
    overall = overall_of(rows, plan.original, plan.task.name, plan.judging is not None)
    value = {"info": info, "overall": overall, "results": rows}
    return json.dumps(value, ensure_ascii=False, indent=4)


def _row(cell: Cell, qid: str, reference: str) -> dict[str, Any]:
    answer = cell.answered.episodes[qid].answer
    metrics = {
        NAMES.get(name, name): value
        for name in METRICS
        if (value := cell.answered.values.get(name, {}).get(qid)) is not None
    }
    save: dict[str, Any] = {}
    if cell.plan.judging is not None:
        quest = cell.quests.get(qid, {})
        save = {theirs: quest.get(ours, []) for theirs, ours in SAVED.items()}
    log = {
        "generated_text": answer,
        "ground_truth_text": reference,
        "quest_eval_save": save,
        "evaluateDatetime": str(datetime.datetime.now()),
    }
    return {"id": qid, "metrics": metrics, "log": log, "valid": bool(answer.strip())}


def overall_of(
    rows: Sequence[Mapping[str, Any]], original: bool, task: str, judged: bool
) -> dict[str, Any]:
    """The means over valid rows, RAGQuestEval's over those whose questions and answers could be read.

    ``original``: names and number as CRUD-RAG has them, which writes 0 for an embedding similarity that was not
    computed in all tasks but the summary, and leaves RAGQuestEval out if no record has it. Otherwise what was not
    measured is absent, and the rows that are in no mean are counted.
    """
    valid = [row for row in rows if row["valid"]]
    means: dict[str, Any] = {}
    for name in METRICS:
        key = NAMES.get(name, name)
        values = [row["metrics"][key] for row in valid if key in row["metrics"]]
        if values:
            means[f"avg. {key}"] = sum(values) / len(values)
        elif original and name == "similarity" and task != "summary" and valid:
            means[f"avg. {key}"] = 0.0
    if valid or not original:
        means["num"] = len(valid)
    if not original:
        means["invalid"] = len(rows) - len(valid)
        if judged:
            means["num_quest"] = sum("QA_recall" in row["metrics"] for row in valid)
    return means


def read_earlier(reuse: str, name: str) -> dict[str, tuple[str, str]]:
    """Record id → (answer, reference) of the valid rows of an earlier result. Raises UsageError.

    ``reuse``: the file, or a folder that has it at ``name`` or under its last part; {} where a folder has none.
    """
    path = Path(reuse).expanduser()
    if not path.exists():
        raise NotFoundError(f"--set reuse={reuse}: there is no such file or folder.")
    file = in_folder(path, (name, Path(name).name)) if path.is_dir() else path
    logs = {
        str(row["id"]).strip(): row["log"]
        for row in (read_results(file)[1] if file else ())
        if row.get("valid", True) and row["log"]["generated_text"].strip()
    }
    return {
        qid: (log["generated_text"].strip(), str(log.get("ground_truth_text", "")).strip())
        for qid, log in logs.items()
    }


def read_results(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(info, rows) of a result file; each row has an id and a log with a generated_text. Raises BadFileError."""
    content = read_json(path)
    rows = content.get("results") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise BadFileError(
            f"{path} is no result of CRUD-RAG: it should hold an object with 'results'."
        )
    for number, row in enumerate(rows, 1):
        log = row.get("log") if isinstance(row, dict) else None
        text = log.get("generated_text") if isinstance(log, dict) else None
        if not isinstance(text, str) or "id" not in row:
            raise BadFileError(
                f"{path}: result {number} has no id, or no generated_text in its log."
            )
    info = content.get("info")
    return info if isinstance(info, dict) else {}, rows
