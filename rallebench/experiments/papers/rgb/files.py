"""RGB's own result files: predictions as JSON lines, the result as JSON, and the rows of an earlier time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source
from rallebench.experiments.papers.rgb.documents import Documents
from rallebench.experiments.papers.rgb.records import RgbRecord
from rallebench.experiments.papers.rgb.scoring import Assessment, counts

Row = Mapping[str, Any]


def file_name(
    dataset: str,
    language: str,
    model: str,
    temperature: float,
    noise: float,
    number: int,
    correct: float,
    part: str = "",
) -> str:
    """The path of the predictions, or with ``part`` ``_result`` of the result.

    >>> file_name("en_fact", "en", "my/model", 0.7, 0, 5, 0)
    'result-en/prediction_en_fact_my-model_temp0.7_noise0.0_passage5_correct0.0.json'
    """
    plain = re.sub(r"[^\w.\-=+@]+", "-", model).strip("-") or "model"
    rates = f"temp{float(temperature)}_noise{float(noise)}_passage{number}_correct{float(correct)}"
    return f"result-{language}/prediction_{dataset}_{plain}_{rates}{part}.json"


def row_of(record: RgbRecord, documents: Documents, noise: float, assessment: Assessment) -> Row:
    """A line of the predictions."""
    return {
        "id": record.id,
        "query": record.query,
        "ans": record.answer,
        "label": list(assessment.labels),
        "prediction": assessment.text,
        "docs": list(documents.texts),
        "noise_rate": noise,
        "factlabel": int(assessment.errors),
    }


def result_of(rows: Sequence[Row], noise: float, facts: bool) -> dict[str, Any]:
    """The result as RGB counts it, whatever ``compat`` says: over the rows there are, a rejection at noise 1 and
    one that found the errors passing as right."""
    right = sum(counts(row["label"], noise) for row in rows)
    value: dict[str, Any] = {
        "all_rate": right / len(rows) if rows else 0,
        "noise_rate": noise,
        "tt": right,
        "nums": len(rows),
    }
    if facts:
        noticed = [row for row in rows if row["factlabel"] == 1]
        corrected = sum(0 not in row["label"] for row in noticed)
        value |= {
            "fact_check_rate": len(noticed) / len(rows) if rows else 0,
            "correct_rate": corrected / len(noticed) if noticed else 0,
            "fact_tt": len(noticed),
            "correct_tt": corrected,
        }
    return value


def read_rows(path: Path) -> dict[str, Row]:
    """The rows of a file of predictions by id, {} if there is none. Raises BadFileError for other rows."""
    rows: dict[str, Row] = {}
    for line, row in Source(path).objects() if path.is_file() else ():
        whole = {"id", "query", "ans", "prediction"} <= row.keys()
        if not whole or not isinstance(row["prediction"], str):
            raise BadFileError(
                f"{path}, line {line} is no row of RGB's predictions (id, query, ans, prediction)."
            )
        qid = str(row["id"]).strip()
        if qid in rows:
            raise BadFileError(
                f"{path}, line {line} repeats the id {qid!r}; keep one prediction for each, and each noise_rate in a file of its own."
            )
        rows[qid] = row
    return rows


def fits(row: Row | None, record: RgbRecord, documents: Documents, original: bool) -> bool:
    """Whether an earlier row answers this record: id, query and answer as they are, and, but in the original,
    the same documents."""
    if row is None or row["query"] != record.query or row["ans"] != record.answer:
        return False
    return original or list(row.get("docs") or ()) == list(documents.texts)
