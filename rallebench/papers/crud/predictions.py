"""CRUD-RAG's own result files, one JSON document per task: written, their answers used again, and ``score --suite crud``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, Hint, NotFoundError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import read_json
from rallebench.experiments.common import in_folder, sentences
from rallebench.experiments.scorers import SCORERS
from rallebench.papers.common import check_file, means_of, not_in_gold, plain_name
from rallebench.papers.crud.judge import quest_scores, texts
from rallebench.papers.crud.records import CrudTask, read_tasks, tasks_of
from rallebench.papers.crud.scoring import DEFINITIONS, text_values

OF_TEXT = ("bleu-avg", "bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-L")
METRICS = (*OF_TEXT, "similarity", "QA_avg_F1", "QA_recall", "length")
NAMES = {"similarity": "bertScore"}
"""Ours → CRUD-RAG's, where they differ."""
SCORED_ANEW = tuple(name for name in METRICS if name != "similarity")
NEAR = 1e-6
"""Two values of a metric that differ by less are equal."""


def results_path(request: ExperimentRequest, task: CrudTask, index: str, k: int) -> str:
    """Where CRUD-RAG would write a task's results: collection, k and the kind of model are in the folder's name."""
    folder = f"{plain_name(index or 'none')}_top{k}_{plain_name(request.workspace.llm(request.llm).backend)}"
    return f"output/{folder}/{task.file}_{plain_name(request.llm)}.json"


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
        raise NotFoundError(f"reuse={reuse}: there is no such file or folder.")
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
    results = content if isinstance(content, Mapping) else {}
    rows = results.get("results")
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
    info = results.get("info")
    return info if isinstance(info, dict) else {}, rows


@SCORERS.register("crud")
def score_crud(guess: Path, gold: Path | None = None) -> dict[str, Any]:
    """CRUD-RAG's ``results`` (id, log.generated_text, log.ground_truth_text, log.quest_eval_save), every number anew.

    ``gold``: the records, by whose references each row is scored instead of by its own ``ground_truth_text``. Rows without a
    text are ``invalid`` and in no mean; RAGQuestEval is scored where its answers were kept. ``differ``: metric → rows
    whose own number is another. Raises NotFoundError, BadFileError.
    """
    check_file(guess, "a result of CRUD-RAG, a JSON document")
    info, rows = read_results(guess)
    if not rows:
        raise BadFileError(f"{guess} holds no result; CRUD-RAG writes at least one.")
    references, missing = _references(guess, rows, info, gold)
    columns: dict[str, list[float | None]] = {name: [] for name in SCORED_ANEW}
    differ: Counter[str] = Counter()
    valid = [row for row in rows if row["log"]["generated_text"].strip()]
    short = 0
    for row in valid:
        log = row["log"]
        own_reference = str(log.get("ground_truth_text", "")).strip()
        reference = references.get(str(row["id"]).strip(), own_reference)
        quest = _quest(log.get("quest_eval_save"))
        short += quest is None
        values = {**text_values(log["generated_text"].strip(), reference), **(quest or {})}
        printed = row.get("metrics")
        for name, column in columns.items():
            value = values.get(name)
            column.append(value)
            theirs = printed.get(name) if isinstance(printed, dict) else None
            if value is not None and isinstance(theirs, (int, float)):
                differ[name] += abs(theirs - value) > NEAR
    measured = {
        name: column for name, column in columns.items() if any(v is not None for v in column)
    }
    invalid = len(rows) - len(valid)
    notes = sentences(
        (
            invalid,
            f"{invalid} of {len(rows)} rows have no text; they are in no mean, as in CRUD-RAG.",
        ),
        (missing, f"{missing} records have no row; they are in no mean."),
        (
            short,
            f"{short} rows have fewer answers than questions; they are in neither mean of RAGQuestEval, as in CRUD-RAG.",
        ),
    )
    return {
        "suite": "crud",
        "task": str(info.get("task", "")),
        "n": len(rows),
        "invalid": invalid,
        "missing": missing,
        "differ": {name: count for name, count in differ.items() if count},
        "metrics": means_of(measured),
        "definitions": {name: DEFINITIONS[name] for name in measured},
        "notes": list(notes),
    }


def _quest(save: Any) -> dict[str, float] | None:
    """RAGQuestEval of a row: {} where nothing was asked, None where answers are missing. Questions none of which the
    reference answers are 0, as in CRUD-RAG's code.
    """
    if not isinstance(save, dict) or not texts(save.get("questions_gt")):
        return {}
    try:
        quest = quest_scores(texts(save.get("answers_gt4gt")), texts(save.get("answers_gm4gt")))
    except IndexError:
        return None
    return {"QA_avg_F1": quest.f1, "QA_recall": quest.recall}


def _references(
    guess: Path, rows: list[dict[str, Any]], info: Mapping[str, Any], gold: Path | None
) -> tuple[dict[str, str], int]:
    """Record id → the reference of ``gold``, and how many of its records have no row."""
    ids = Counter(str(row["id"]).strip() for row in rows)
    twice = [name for name, count in ids.items() if count > 1]
    if twice:
        raise BadFileError(f"{guess} has more than one result of the id {twice[0]!r}; keep one.")
    if gold is None:
        return {}, 0
    task = str(info.get("task", ""))
    if not task:
        raise BadFileError(
            f"{guess} does not say its task (info.task), so {gold} cannot be read.",
            hint=Hint("leave-out", "gold"),
        )
    (records,) = read_tasks(gold, tasks_of(task)).values()
    known = {record.id: record.reference for record in records.records}
    for name in ids:
        if name not in known:
            raise not_in_gold(guess, gold, name)
    return known, len(known) - len(ids)
