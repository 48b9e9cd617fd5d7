"""``score --suite rgb``: predictions that RGB's own script, or any other program, wrote in its form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.engine.statistics import means
from rallebench.experiments.papers import SCORERS
from rallebench.experiments.papers.predictions import check_file
from rallebench.experiments.papers.rgb import files, scoring
from rallebench.experiments.papers.rgb.definitions import named
from rallebench.experiments.papers.rgb.records import (
    Required,
    language_of,
    read_records,
    required_of,
)
from rallebench.experiments.runs import bounds_of

METRICS = ("all_rate", "rejection_rate", "lucky_rate", "fact_check_rate", "correct_rate")


@SCORERS.register("rgb")
def score_rgb(guess: Path, gold: Path | None = None) -> dict[str, Any]:
    """RGB's rows (id, query, ans, prediction), scored anew; ``gold``: its records, else each row's own ``ans`` counts.

    For every share of noise in the file its rates with intervals. ``labels_differ``: rows whose own label is another than the
    one found here. ``missing``: records of ``gold`` without a row. Raises NotFoundError, BadFileError.
    """
    check_file(guess, "RGB's predictions, a JSON object a line")
    rows = list(files.read_rows(guess).values())
    if not rows:
        raise BadFileError(
            f"{guess} holds no row of RGB's predictions (id, query, ans, prediction)."
        )
    answers, missing, notes = _answers(rows, guess, gold)
    language = language_of(guess.name, [str(row["query"]) for row in rows])
    shares: dict[float, list[files.Row]] = {}
    for row in rows:
        shares.setdefault(_noise(row, guess), []).append(row)
    found = [_share(noise, mine, answers, language) for noise, mine in sorted(shares.items())]
    without = sum(not required for required in answers.values())
    if without:
        notes.append(f"{without} rows have no answer and are not scored.")
    return {
        "suite": "rgb",
        "language": language,
        "n": len(rows),
        "missing": missing,
        "shares": found,
        "definitions": named(*METRICS),
        "notes": notes,
    }


def _answers(
    rows: Sequence[files.Row], guess: Path, gold: Path | None
) -> tuple[dict[str, Required], int, list[str]]:
    """Row id → what is required, how many records have no row, and what must be said."""
    own = {str(row["id"]).strip(): required_of(row["ans"]) for row in rows}
    if gold is None:
        return (
            own,
            0,
            ["The answers are those in the rows; give RGB's file with --gold to be sure of them."],
        )
    check_file(gold, "RGB's records, a JSON object a line", "--gold")
    records = {record.id: record for record in read_records(gold).records}
    strange = [qid for qid in own if qid not in records]
    if strange:
        raise BadFileError(
            f"{guess} answers {strange[0]!r}, which {gold} does not hold; give the file that was asked."
        )
    other = [
        q
        for q, row in ((str(row["id"]).strip(), row) for row in rows)
        if row["query"] != records[q].query
    ]
    if other:
        raise BadFileError(
            f"{guess} has another question for {other[0]!r} than {gold}; give the file that was asked."
        )
    changed = sum(own[qid] != records[qid].required for qid in own)
    notes = [f"{changed} rows have another answer than {gold.name}; the latter's counts."] * bool(
        changed
    )
    missing = len(records) - len(own)
    notes += [
        f"{missing} of {len(records)} records have no row; they are in no rate, as in RGB's script."
    ] * bool(missing)
    return {qid: records[qid].required for qid in own}, missing, notes


def _noise(row: files.Row, guess: Path) -> float:
    value = row.get("noise_rate", 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise BadFileError(
            f"{guess}: the row {row['id']!r} has the noise_rate {value!r}; it must be a number from 0 to 1."
        )
    return float(value)


def _share(
    noise: float, rows: Sequence[files.Row], answers: Mapping[str, Required], language: str
) -> dict[str, Any]:
    """The rates of the rows of one share of noise, and RGB's own result over the same labels."""
    columns: dict[str, list[float | None]] = {metric: [] for metric in METRICS}
    relabelled, differ = [], 0
    for row in rows:
        required = answers[str(row["id"]).strip()]
        if not required:
            continue
        said = scoring.as_scored(str(row["prediction"]), language)
        labels, errors = scoring.labels_of(said, required), scoring.finds_errors(said)
        differ += "label" in row and list(row["label"] or ()) != list(labels)
        relabelled.append({**row, "label": list(labels), "factlabel": int(errors)})
        columns["all_rate"].append(float(scoring.counts(labels, noise)))
        columns["rejection_rate"].append(float(scoring.is_rejection(labels)))
        columns["lucky_rate"].append(float(scoring.is_right(labels)) if noise == 1 else None)
        columns["fact_check_rate"].append(float(errors))
        columns["correct_rate"].append(float(scoring.is_right(labels)) if errors else None)
    return {
        "noise_rate": noise,
        "n": len(relabelled),
        "labels_differ": differ,
        "metrics": {
            name: asdict(mean) for name, mean in means(columns, ranges=bounds_of(columns)).items()
        },
        "as_rgb_counts": files.result_of(relabelled, noise, True),
    }
