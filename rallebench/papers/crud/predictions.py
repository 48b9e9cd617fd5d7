"""CRUD-RAG's result files, one JSON document per task: rows and means, reusable answers, and ``score --suite crud``."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, Hint, NotFoundError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import read_json
from rallebench.core.settings import fill
from rallebench.core.types import Json
from rallebench.experiments.common import in_folder, sentences
from rallebench.experiments.scorers import SCORERS
from rallebench.papers.common import check_file, metric_means, not_in_gold, plain_name
from rallebench.papers.crud.judge import PRECISION, RECALL, quest_scores, texts
from rallebench.papers.crud.records import CrudTask, find_tasks, read_tasks
from rallebench.papers.crud.scoring import DEFINITIONS, text_values
from rallebench.workspace.paths import WorkspaceFolder

OF_TEXT = ("bleu-avg", "bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-L")
METRICS = (*OF_TEXT, "similarity", "QA_avg_F1", "QA_recall", "length")
NAMES = {"similarity": "bertScore"}
"""Our metric name → CRUD-RAG's, for the names that differ."""
SCORED_ANEW = tuple(name for name in METRICS if name != "similarity")
NEAR = 1e-6
"""Values of a metric within this difference are equal."""


def results_path(
    request: ExperimentRequest[WorkspaceFolder], task: CrudTask, index: str, k: int
) -> str:
    """The path of a task's results in CRUD-RAG's layout; the folder name contains collection, k and model type."""
    folder = f"{plain_name(index or 'none')}_top{k}_{plain_name(request.workspace.llm(request.llm).backend)}"
    return f"output/{folder}/{task.file}_{plain_name(request.llm)}.json"


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A row of a result. ``answer``, ``reference``: stripped; ``quest``: saved by RAGQuestEval, {} if absent; ``valid``: the
    answer is not empty."""

    id: str
    answer: str
    reference: str
    metrics: Mapping[str, float]
    quest: Json
    valid: bool

    def to_json(self) -> Json:
        log = {
            "generated_text": self.answer,
            "ground_truth_text": self.reference,
            "quest_eval_save": self.quest,
            "evaluateDatetime": str(datetime.datetime.now()),
        }
        return {"id": self.id, "metrics": self.metrics, "log": log, "valid": self.valid}


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result file. ``task``: its name in CRUD's own files; '' if it is not named."""

    task: str
    rows: tuple[ResultRow, ...]


def overall_means(
    rows: Sequence[ResultRow], original: bool, task: str, judged: bool
) -> dict[str, float]:
    """The means over valid rows. RAGQuestEval's means cover the rows with readable questions and answers.

    ``original`` uses CRUD-RAG's names and counts. In every task except the summary, it writes 0 for an embedding similarity
    that was not computed. It omits RAGQuestEval if no record has it. Otherwise, unmeasured metrics are absent and rows left
    out of the means are counted.
    """
    valid = [row for row in rows if row.valid]
    means: dict[str, float] = {}
    for name in METRICS:
        key = NAMES.get(name, name)
        values = [row.metrics[key] for row in valid if key in row.metrics]
        if values:
            means[f"avg. {key}"] = sum(values) / len(values)
        elif original and name == "similarity" and task != "summary" and valid:
            means[f"avg. {key}"] = 0.0
    if valid or not original:
        means["num"] = len(valid)
    if not original:
        means["invalid"] = len(rows) - len(valid)
        if judged:
            means["num_quest"] = sum(RECALL in row.metrics for row in valid)
    return means


def read_earlier(reuse: str, name: str) -> dict[str, ResultRow]:
    """Record id → the valid row of an earlier result. Raises UsageError.

    ``reuse``: a file, or a folder with the file at ``name`` or the last part of ``name``; {} for a folder without it.
    """
    path = Path(reuse).expanduser()
    if not path.exists():
        raise NotFoundError(f"reuse={reuse}: there is no such file or folder.")
    file = in_folder(path, (name, Path(name).name)) if path.is_dir() else path
    rows = read_results(file).rows if file else ()
    return {row.id: row for row in rows if row.valid and row.answer}


@dataclass(frozen=True, slots=True)
class StoredResults:
    """A result file, unchecked."""

    results: object = None
    info: object = None


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row of a result file, unchecked."""

    id: object = None
    log: object = None
    metrics: object = None
    valid: object = True


@dataclass(frozen=True, slots=True)
class StoredLog:
    """The log of a result row, unchecked."""

    generated_text: object = None
    ground_truth_text: object = ""
    quest_eval_save: object = None


@dataclass(frozen=True, slots=True)
class StoredInfo:
    """The header of a result file."""

    task: object = ""


def read_results(path: Path) -> ResultFile:
    """Read a result file. Each row needs an id and a log with generated_text. Raises BadFileError."""
    content = read_json(path)
    stored = fill(StoredResults, content if isinstance(content, dict) else {})
    if not isinstance(stored.results, list):
        raise BadFileError(
            f"{path} is not a result of CRUD-RAG: it should hold an object with 'results'."
        )
    rows = tuple(_result_row(row, path, n) for n, row in enumerate(stored.results, 1))
    info = fill(StoredInfo, stored.info if isinstance(stored.info, dict) else {})
    return ResultFile(str(info.task), rows)


def _result_row(row: object, path: Path, number: int) -> ResultRow:
    stored = fill(StoredRow, row if isinstance(row, dict) else {})
    log = fill(StoredLog, stored.log if isinstance(stored.log, dict) else {})
    if not isinstance(log.generated_text, str) or stored.id is None:
        raise BadFileError(f"{path}: result {number} has no id, or no generated_text in its log.")
    return ResultRow(
        str(stored.id).strip(),
        log.generated_text.strip(),
        str(log.ground_truth_text).strip(),
        stored.metrics if isinstance(stored.metrics, dict) else {},
        log.quest_eval_save if isinstance(log.quest_eval_save, dict) else {},
        bool(stored.valid),
    )


@SCORERS.register("crud")
def score_crud(guess: Path, gold: Path | None = None) -> dict[str, Any]:
    """Score CRUD-RAG's ``results`` (id, log.generated_text, log.ground_truth_text, log.quest_eval_save) anew.

    References come from the records in ``gold``, or else from each row's ``ground_truth_text``. Rows without a text are
    ``invalid`` and left out of the means. RAGQuestEval is scored if its answers were saved. ``differ``: metric → number of
    rows with a stored value that differs from ours. Raises NotFoundError, BadFileError.
    """
    check_file(guess, "a result of CRUD-RAG, a JSON document")
    result = read_results(guess)
    rows = result.rows
    if not rows:
        raise BadFileError(f"{guess} holds no result; CRUD-RAG writes at least one.")
    references, missing = _references(guess, result, gold)
    columns: dict[str, list[float | None]] = {name: [] for name in SCORED_ANEW}
    differ: Counter[str] = Counter()
    answered = [row for row in rows if row.answer]
    short = 0
    for row in answered:
        quest = _quest(row.quest)
        short += quest is None
        reference = references.get(row.id, row.reference)
        values = {**text_values(row.answer, reference), **(quest or {})}
        for name, column in columns.items():
            value, printed = values.get(name), row.metrics.get(name)
            column.append(value)
            if value is not None and isinstance(printed, (int, float)):
                differ[name] += abs(printed - value) > NEAR
    measured = {
        name: column for name, column in columns.items() if any(v is not None for v in column)
    }
    invalid = len(rows) - len(answered)
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
        "task": result.task,
        "n": len(rows),
        "invalid": invalid,
        "missing": missing,
        "differ": {name: count for name, count in differ.items() if count},
        "metrics": metric_means(measured),
        "definitions": {name: DEFINITIONS[name] for name in measured},
        "notes": list(notes),
    }


@dataclass(frozen=True, slots=True)
class SavedQuest:
    """The part of a row saved by RAGQuestEval, unchecked."""

    questions_gt: object = None
    answers_gt4gt: object = None
    answers_gm4gt: object = None


def _quest(save: Json) -> dict[str, float] | None:
    """RAGQuestEval's scores of a row: {} if it was not run, None if answers are missing. As in CRUD-RAG's code, the scores are
    0 if the reference answers none of the questions."""
    saved = fill(SavedQuest, save)
    if not texts(saved.questions_gt):
        return {}
    try:
        quest = quest_scores(texts(saved.answers_gt4gt), texts(saved.answers_gm4gt))
    except IndexError:
        return None
    return {PRECISION: quest.f1, RECALL: quest.recall}


def _references(guess: Path, result: ResultFile, gold: Path | None) -> tuple[dict[str, str], int]:
    """(record id → its reference in ``gold``, number of records in ``gold`` without a row)."""
    ids = Counter(row.id for row in result.rows)
    twice = [name for name, count in ids.items() if count > 1]
    if twice:
        raise BadFileError(f"{guess} has more than one result of the id {twice[0]!r}; keep one.")
    if gold is None:
        return {}, 0
    if not result.task:
        raise BadFileError(
            f"{guess} does not say its task (info.task), so {gold} cannot be read.",
            hint=Hint("leave-out", "gold"),
        )
    (records,) = read_tasks(gold, find_tasks(result.task)).values()
    known = {record.id: record.reference for record in records.records}
    for name in ids:
        if name not in known:
            raise not_in_gold(guess, gold, name)
    return known, len(known) - len(ids)
