"""``score --suite rgb``: predictions that RGB's own script, or any other program, wrote in its form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.settings import Setting
from rallebench.experiments.papers import SCORERS
from rallebench.experiments.papers.common import (
    check_file,
    gold_notes,
    means_of,
    not_in_gold,
    sentences,
)
from rallebench.experiments.papers.rgb.records import (
    Required,
    language_of,
    read_records,
    required_of,
)
from rallebench.experiments.papers.rgb.scoring import (
    PredictionRow,
    assess,
    named,
    read_rows,
    result_of,
)

METRICS = ("all_rate", "rejection_rate", "lucky_rate", "fact_check_rate", "correct_rate")


@SCORERS.register("rgb")
def score_rgb(guess: Path, gold: Path | None = None) -> dict[str, Any]:
    """RGB's rows (id, query, ans, prediction), scored anew; ``gold``: its records, else each row's own ``ans`` counts.

    For every share of noise in the file its rates with intervals. ``labels_differ``: rows whose own label is another than the
    one found here. ``missing``: records of ``gold`` without a row. Raises NotFoundError, BadFileError.
    """
    check_file(guess, "RGB's predictions, a JSON object a line")
    rows = read_rows(guess)
    if not rows:
        raise BadFileError(
            f"{guess} holds no row of RGB's predictions (id, query, ans, prediction)."
        )
    answers, missing, notes = _answers(rows, guess, gold)
    language = language_of(guess.name, [str(row["query"]) for row in rows.values()])
    by_share: dict[float, list[str]] = {}
    for qid, row in rows.items():
        try:
            share = Setting(float, 0.0, 0, 1).reads(row.get("noise_rate", 0))
        except ValueError as must_be:
            raise BadFileError(
                f"{guess}: the row {row['id']!r} has the noise_rate {row['noise_rate']!r}; it must be {must_be}."
            ) from None
        by_share.setdefault(share, []).append(qid)
    without = sum(not required for required in answers.values())
    return {
        "suite": "rgb",
        "language": language,
        "n": len(rows),
        "missing": missing,
        "shares": [
            _share(noise, [(rows[qid], answers[qid]) for qid in qids if answers[qid]], language)
            for noise, qids in sorted(by_share.items())
        ],
        "definitions": named(*METRICS),
        "notes": [
            *notes,
            *sentences((without, f"{without} rows have no answer and are not scored.")),
        ],
    }


def _answers(
    rows: Mapping[str, PredictionRow], guess: Path, gold: Path | None
) -> tuple[dict[str, Required], int, tuple[str, ...]]:
    """Row id → what is required, how many records have no row, and what must be said."""
    own = {qid: required_of(row["ans"]) for qid, row in rows.items()}
    if gold is None:
        note = "The answers are those in the rows; give RGB's file with --gold to be sure of them."
        return own, 0, (note,)
    check_file(gold, "RGB's records, a JSON object a line", "--gold")
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
    """The rates of the rows of one share of noise, and RGB's own result over the same labels."""
    assessments = [assess(str(row["prediction"]), required, language) for row, required in rows]
    rates = [assessment.rates(noise) for assessment in assessments]
    labelled = [
        {**row, "label": list(own.labels), "factlabel": int(own.errors)}
        for (row, _), own in zip(rows, assessments)
    ]
    differ = sum(
        "label" in row and list(row["label"] or ()) != new["label"]
        for (row, _), new in zip(rows, labelled)
    )
    return {
        "noise_rate": noise,
        "n": len(labelled),
        "labels_differ": differ,
        "metrics": means_of({name: [row[name] for row in rates] for name in METRICS}),
        "as_rgb_counts": result_of(labelled, noise, True),
    }
