"""RGB's own files, with predictions as JSON lines and results as JSON, and their reader, ``score --suite rgb``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.settings import Setting
from rallebench.core.sources import Source
from rallebench.experiments.common import sentences
from rallebench.experiments.scorers import SCORERS
from rallebench.papers.common import check_file, gold_notes, metric_means, not_in_gold
from rallebench.papers.rgb.records import (
    Documents,
    Required,
    RgbRecord,
    detect_language,
    read_records,
    read_required,
)
from rallebench.papers.rgb.scoring import Assessment, assess, counts, metric_definitions

METRICS = ("all_rate", "rejection_rate", "lucky_rate", "fact_check_rate", "correct_rate")

PredictionRow = Mapping[str, Any]


def prediction_row(
    record: RgbRecord, documents: Documents, noise: float, assessment: Assessment
) -> PredictionRow:
    """A row of the predictions."""
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


def count_result(rows: Sequence[PredictionRow], noise: float, facts: bool) -> dict[str, Any]:
    """The result as counted by RGB, regardless of ``compat``. It covers the existing rows. A rejection counts as right at
    noise 1 or if it found the errors."""
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


def read_rows(path: Path) -> dict[str, PredictionRow]:
    """Id → row of a prediction file; {} if the file does not exist. Raises BadFileError for invalid rows."""
    rows: dict[str, PredictionRow] = {}
    for line, row in Source(path).objects() if path.is_file() else ():
        whole = {"id", "query", "ans", "prediction"} <= row.keys()
        if not whole or not isinstance(row["prediction"], str):
            raise BadFileError(
                f"{path}, line {line} is not a row of RGB's predictions (id, query, ans, prediction)."
            )
        qid = str(row["id"]).strip()
        if qid in rows:
            raise BadFileError(
                f"{path}, line {line} repeats the id {qid!r}; keep one prediction for each, and each noise_rate in a file of its own."
            )
        rows[qid] = row
    return rows


def fits(
    row: PredictionRow | None, record: RgbRecord, documents: Documents, original: bool
) -> bool:
    """Return whether an earlier row answers this record: id, query and answer are the same and, unless ``original``, the
    documents too."""
    if row is None or row["query"] != record.query or row["ans"] != record.answer:
        return False
    return original or list(row.get("docs") or ()) == list(documents.texts)


@SCORERS.register("rgb")
def score_rgb(guess: Path, gold: Path | None = None) -> dict[str, Any]:
    """Score RGB's rows (id, query, ans, prediction) again; ``gold``: its records, else the ``ans`` of each row counts.

    Returns the rates, with intervals, for every share of noise in the file. ``labels_differ``: number of rows with labels that
    differ from ours. ``missing``: number of records in ``gold`` without a row. Raises NotFoundError, BadFileError.
    """
    check_file(guess, "RGB's predictions, a JSON object a line")
    rows = read_rows(guess)
    if not rows:
        raise BadFileError(
            f"{guess} holds no row of RGB's predictions (id, query, ans, prediction)."
        )
    answers, missing, notes = _answers(rows, guess, gold)
    language = detect_language(guess.name, [str(row["query"]) for row in rows.values()])
    by_share: dict[float, list[tuple[PredictionRow, Required]]] = {}
    for qid, row in rows.items():
        try:
            share = float(str(Setting(float, 0.0, 0, 1).reads(row.get("noise_rate", 0))))
        except ValueError as must_be:
            raise BadFileError(
                f"{guess}: the row {row['id']!r} has the noise_rate {row['noise_rate']!r}; it must be {must_be}."
            ) from None
        scored = by_share.setdefault(share, [])
        if answers[qid]:
            scored.append((row, answers[qid]))
    without = sum(not required for required in answers.values())
    not_scored = sentences((without, f"{without} rows have no answer and are not scored."))
    return {
        "suite": "rgb",
        "language": language,
        "n": len(rows),
        "missing": missing,
        "shares": [_share(noise, by_share[noise], language) for noise in sorted(by_share)],
        "definitions": metric_definitions(*METRICS),
        "notes": [*notes, *not_scored],
    }


def _answers(
    rows: Mapping[str, PredictionRow], guess: Path, gold: Path | None
) -> tuple[dict[str, Required], int, tuple[str, ...]]:
    """(row id → required answers, number of records without a row, notes)."""
    own = {qid: read_required(row["ans"]) for qid, row in rows.items()}
    if gold is None:
        note = (
            "The answers are those in the rows; give RGB's own file as the gold to be sure of them."
        )
        return own, 0, (note,)
    check_file(gold, "RGB's records, a JSON object a line")
    records = {record.id: record for record in read_records(gold).records}
    for qid, row in rows.items():
        if qid not in records:
            raise not_in_gold(guess, gold, qid)
        if row["query"] != records[qid].query:
            raise BadFileError(
                f"{guess} has another question for {qid!r} than {gold}; give the file that was asked."
            )
    answers = {qid: records[qid].required for qid in own}
    changed, missing = sum(own[qid] != answers[qid] for qid in own), len(records) - len(own)
    where = "rate, as in RGB's script"
    return answers, missing, gold_notes(changed, gold, missing, len(records), where)


def _share(
    noise: float, rows: Sequence[tuple[PredictionRow, Required]], language: str
) -> dict[str, Any]:
    """The rates for rows with one share of noise, and RGB's own result from the same labels."""
    assessments = [assess(str(row["prediction"]), required, language) for row, required in rows]
    rates = [assessment.rates(noise) for assessment in assessments]
    labelled = [
        {"label": list(assessment.labels), "factlabel": int(assessment.errors)}
        for assessment in assessments
    ]
    differ = sum(
        "label" in row and list(row["label"] or ()) != new["label"]
        for (row, _), new in zip(rows, labelled)
    )
    return {
        "noise_rate": noise,
        "n": len(rows),
        "labels_differ": differ,
        "metrics": metric_means({name: [row[name] for row in rates] for name in METRICS}),
        "as_rgb_counts": count_result(labelled, noise, True),
    }
