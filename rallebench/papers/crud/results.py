"""The content of CRUD-RAG's own result file of a task."""

from __future__ import annotations

import datetime
import json
from typing import Any

from rallebench.papers.crud.cells import Cell
from rallebench.papers.crud.predictions import METRICS, NAMES, overall_of

SAVED = {"questions_gt": "question", "answers_gt4gt": "answers", "answers_gm4gt": "text_answers"}
"""CRUD-RAG's key of a value that RAGQuestEval saves → ours."""


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
