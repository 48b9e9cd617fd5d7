"""The content of CRUD-RAG's result file for a task."""

from __future__ import annotations

import json

from rallebench.core.json_values import as_json
from rallebench.core.types import Json
from rallebench.papers.crud.cells import Cell
from rallebench.papers.crud.judge import QuestEntry
from rallebench.papers.crud.predictions import METRICS, NAMES, ResultRow, overall_means


def result_file(cell: Cell) -> str:
    """The content of the file. Failed questions have no row; the row of an empty answer is not ``valid``."""
    plan = cell.plan
    records = [record for record in plan.chosen if record.id in cell.answered.episodes]
    rows = [_row(cell, record.id, record.reference) for record in records]
    rows.sort(key=lambda row: row.id)
    info = {"task": plan.task.file, "llm": plan.request.llm}
    if not plan.original:
        decoding = json.dumps(as_json(plan.decoding))
        info |= {"retriever": plan.index, "top_k": str(plan.k), "decoding": decoding}
    overall = overall_means(rows, plan.original, plan.task.name, plan.judging is not None)
    value = {"info": info, "overall": overall, "results": [row.to_json() for row in rows]}
    return json.dumps(value, ensure_ascii=False, indent=4)


def _row(cell: Cell, qid: str, reference: str) -> ResultRow:
    answer = cell.answered.episodes[qid].answer
    metrics = {
        NAMES.get(name, name): value
        for name in METRICS
        if (value := cell.answered.values.get(name, {}).get(qid)) is not None
    }
    judged = cell.plan.judging is not None
    save = _saved_fields(cell.quests.get(qid, QuestEntry())) if judged else {}
    return ResultRow(qid, answer, reference, metrics, save, bool(answer.strip()))


def _saved_fields(entry: QuestEntry) -> Json:
    """The part of a row saved by RAGQuestEval, under CRUD-RAG's keys."""
    return {
        "questions_gt": list(entry.question),
        "answers_gt4gt": list(entry.answers or ()),
        "answers_gm4gt": list(entry.text_answers or ()),
    }
