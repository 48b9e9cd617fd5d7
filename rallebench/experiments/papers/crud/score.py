"""``score --suite crud``: a result file in CRUD-RAG's own form, whoever wrote it, scored anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.experiments.papers import SCORERS
from rallebench.experiments.papers.common import check_file, means_of, not_in_gold, sentences
from rallebench.experiments.papers.crud.cells import DEFINITIONS, text_values
from rallebench.experiments.papers.crud.files import QUEST, read_results
from rallebench.experiments.papers.crud.records import read_tasks, tasks_of
from rallebench.metrics.judges.ragquesteval import quest_scores, texts

OF_TEXT = ("bleu-avg", "bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-L", "length")
NEAR = 1e-6
"""Two values of a metric that differ by less are one."""


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
    columns: dict[str, list[float | None]] = {name: [] for name in (*OF_TEXT, *QUEST)}
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
        printed = row.get("metrics") if isinstance(row.get("metrics"), dict) else {}
        for name, column in columns.items():
            value, theirs = values.get(name), printed.get(name)
            column.append(value)
            both = value is not None and isinstance(theirs, (int, float))
            differ[name] += both and abs(theirs - value) > NEAR
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
            f"{guess} does not say its task (info.task), so {gold} cannot be read; leave --gold out."
        )
    (records,) = read_tasks(gold, tasks_of(task)).values()
    known = {record.id: record.reference for record in records.records}
    for name in ids:
        if name not in known:
            raise not_in_gold(guess, gold, name)
    return known, len(known) - len(ids)
