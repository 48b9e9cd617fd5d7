"""RGB's rules, decided by the words of a text alone, and its own result files: predictions as JSON lines, the result as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source
from rallebench.experiments.papers.rgb.documents import Documents
from rallebench.experiments.papers.rgb.records import Required, RgbRecord

REJECTIONS = ("信息不足", "insufficient information")
ERRORS = ("事实性错误", "factual errors")
REJECTED = (-1,)
DEFINITIONS: Mapping[str, str] = {
    "all_rate": "RGB's accuracy: every required answer stands in the reply, by one of its aliases, in any case; at noise 1 "
    "a rejection counts, too. Over the questions that did not fail.",
    "rejection_rate": "Rej: the reply holds 'insufficient information' or 信息不足. Over the questions that did not fail.",
    "lucky_rate": "Every required answer stands in the reply though no document holds it. Over the questions that did not fail.",
    "fact_check_rate": "ED: the reply holds 'factual errors' or 事实性错误. Over the questions that did not fail.",
    "correct_rate": "CR: every required answer stands in the reply as well. Over the replies that ED counts "
    "(compat=original: a rejection passes, too).",
    "rejection_rate_judge": "Rej*: the judge says that the question is not addressed. Over the verdicts that could be read.",
    "fact_check_rate_judge": "ED*: the judge says that the errors were identified. Over the verdicts that could be read.",
    "correct_rate_judge": "CR*: every required answer stands in the reply as well. Over the replies that ED* counts, as in "
    "RGB's paper.",
}

Labels = tuple[int, ...]


def named(*metrics: str) -> dict[str, str]:
    """These metrics with their definitions, in this order."""
    return {metric: DEFINITIONS[metric] for metric in metrics}


@dataclass(frozen=True, slots=True)
class Assessment:
    """A prediction as RGB scores it. ``text``: in Chinese without spaces; ``labels``: see ``labels_of``; ``errors``: whether
    it says that the documents are wrong (RGB's ``factlabel``)."""

    text: str
    labels: Labels
    errors: bool

    def rates(self, noise: float, original: bool = False) -> dict[str, float | None]:
        """Every rate of one answer; those that do not apply to it are None."""
        return {
            "all_rate": float(counts(self.labels, noise)),
            "rejection_rate": float(self.labels[:1] == REJECTED),
            "lucky_rate": float(is_right(self.labels)) if noise == 1 else None,
            "fact_check_rate": float(self.errors),
            "correct_rate": float(corrects(self.labels, original)) if self.errors else None,
        }


def assess(prediction: str, required: Required, language: str) -> Assessment:
    """The prediction's text, labels and verdict on the documents."""
    text = as_scored(prediction, language)
    return Assessment(text, labels_of(text, required), any(words in text for words in ERRORS))


def as_scored(prediction: str, language: str) -> str:
    """The prediction as RGB scores it: without spaces in Chinese.

    >>> as_scored("答案 是 70", "zh"), as_scored("It is 70", "en")
    ('答案是70', 'It is 70')
    """
    return prediction.replace(" ", "") if language == "zh" else prediction


def labels_of(prediction: str, required: Required) -> Labels:
    """(-1,) for a rejection; else 1 or 0 for every required answer, whether it contains any alias, in any case.

    >>> labels_of("Rome, 12 JAN", (("Rome",), ("January 12", "12 Jan"), ("noon",)))
    (1, 1, 0)
    """
    if any(words in prediction for words in REJECTIONS):
        return REJECTED
    text = prediction.lower()
    return tuple(int(any(alias.lower() in text for alias in group)) for group in required)


def is_right(labels: Sequence[int]) -> bool:
    """Everything required is there.

    >>> is_right((1, 1)), is_right((1, 0)), is_right(()), is_right((-1,))
    (True, False, False, False)
    """
    return 0 not in labels and 1 in labels


def counts(labels: Sequence[int], noise: float) -> bool:
    """RGB's ``all_rate``: right; at noise 1 a rejection, or right all the same."""
    return is_right(labels) or (noise == 1 and tuple(labels[:1]) == REJECTED)


def corrects(labels: Sequence[int], original: bool = False) -> bool:
    """Whether an answer that found the errors is right besides; in the original a rejection passes, too."""
    return 0 not in labels if original else is_right(labels)


PredictionRow = Mapping[str, Any]


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


def row_of(
    record: RgbRecord, documents: Documents, noise: float, assessment: Assessment
) -> PredictionRow:
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


def result_of(rows: Sequence[PredictionRow], noise: float, facts: bool) -> dict[str, Any]:
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


def read_rows(path: Path) -> dict[str, PredictionRow]:
    """The rows of a file of predictions by id, {} if there is none. Raises BadFileError for other rows."""
    rows: dict[str, PredictionRow] = {}
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


def fits(
    row: PredictionRow | None, record: RgbRecord, documents: Documents, original: bool
) -> bool:
    """Whether an earlier row answers this record: id, query and answer as they are, and, but in the original,
    the same documents."""
    if row is None or row["query"] != record.query or row["ans"] != record.answer:
        return False
    return original or list(row.get("docs") or ()) == list(documents.texts)
