"""R-Eval's record format (Tu et al. 2024) as JSON lines, also for the user's own questions.

::

    {"input": "…", "outputs": ["…"], "input_length": 7, "output_length": 1.0, "language": "en",
     "environment": "wiki", "dataset": "hotpotqa", "_id": "…"}

Only ``input`` is required. ``r-eval`` accepts every one of ``outputs``; ``r-eval-original`` only the first, as R-Eval's
scores do (several answers joined by ``;`` stay one text in both). ``_id`` is the question's id. It should be the sha256
of ``Tsinghua KoLA2`` and the record; a mismatch is reported but never an error, since other sets have their own salts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rallebench.core.sources import Problems, Source
from rallebench.core.types import Json
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._values import is_empty
from rallebench.datasets.fields import RowOfFields
from rallebench.datasets.kilt import first_rows, numbered_rows

SALT = "Tsinghua KoLA2 "


def recognises(path: Path) -> bool:
    """Return whether the first rows of a JSON-lines file are R-Eval's, with ``outputs`` instead of KILT's ``output``."""
    rows = first_rows(path) if path.is_file() else []
    return (
        bool(rows)
        and all("input" in row and "output" not in row for row in rows)
        and any("outputs" in row for row in rows)
    )


def _records(source: Source, *, first_only: bool = False) -> Iterator[tuple[int, Record]]:
    """Yield (line, KILT record), keeping R-Eval's other fields. A row without an ``_id`` gets its hash.

    An empty file, or one whose rows lack ``input``, gives bad rows with their line numbers.
    """
    for line, row in source.objects():
        outputs = row.get("outputs", [])
        if isinstance(outputs, str):
            outputs = [outputs]
        if not isinstance(outputs, list) or not all(
            isinstance(element, (str, int, float)) and not isinstance(element, bool)
            for element in outputs
        ):
            source.bad(line, ": 'outputs' should be a list of texts.")
            continue
        qid = row.get("_id") or row.get("id")
        if qid is not None and not isinstance(qid, (str, int)):
            source.bad(line, ": '_id' should be text.")
            continue
        answers = [str(element) for element in outputs]
        rest = {key: value for key, value in row.items() if key not in _OWN_KEYS}
        output = [{"answer": answer} for answer in (answers[:1] if first_only else answers)]
        yield line, {"id": str(qid or record_hash(row)), "output": output, **rest}


_OWN_KEYS = ("_id", "id", "outputs", "output")


_FORM = ("input", "input_length", "output_length", "language", "environment", "dataset", *_OWN_KEYS)


def read_fields(row: Record, number: int) -> RowOfFields:
    """Read a record; if it has no gold, also by the fields that R-Eval does not define."""
    other = {k: v for k, v in row.items() if k not in _FORM and not is_empty(v)}
    return RowOfFields(row, left=other if is_empty(row.get("outputs")) else {})


def record_hash(record: Json) -> str:
    """Return the ``_id`` that R-Eval gives a record: sha256 of a salt and the record as JSON without the id.

    >>> len(record_hash({"input": "Who?", "outputs": ["Ada"]}))
    64
    """
    return _hash_json(record, ascii_only=True)


def _hash_json(record: Json, ascii_only: bool) -> str:
    plain = {key: value for key, value in record.items() if key != "_id"}
    text = SALT + json.dumps(plain, ensure_ascii=ascii_only)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def id_holds(record: Json) -> bool:
    """Return whether the record's ``_id`` is its hash, so that the record is unchanged since R-Eval's program wrote it."""
    return record.get("_id") in {_hash_json(record, True), _hash_json(record, False)}


def ids_that_hold(path: Path) -> tuple[int, int]:
    """Return the number of rows whose ``_id`` is their hash, and of all rows; unreadable rows count as mismatches."""
    rows = [row for _, row in Source(path, Problems(skip=True)).objects()]
    return sum(map(id_holds, rows)), len(rows)


def as_record(
    question: str,
    answers: list[str],
    *,
    environment: str,
    dataset: str,
    language: str = "en",
    **more: Any,
) -> dict[str, Any]:
    """Return a record in R-Eval's format: lengths in words (the mean over answers), ``_id`` computed as R-Eval does.

    >>> as_record("Who is it?", ["Ada", "Ada Lovelace"], environment="wiki", dataset="own")["output_length"]
    1.5
    """
    record = {
        "input": question,
        "outputs": answers,
        "input_length": len(question.split()),
        "output_length": sum(len(answer.split()) for answer in answers) / max(1, len(answers)),
        "language": language,
        "environment": environment,
        "dataset": dataset,
        **more,
    }
    return {**record, "_id": record_hash(record)}


SAMPLE = {
    "questions.jsonl": '{"input": "Which moon?", "outputs": ["Titan", "the moon Titan"], "dataset": "own", "_id": "q1"}\n'
    '{"input": "Which sea?", "outputs": ["Black Sea"], "dataset": "own", "_id": "q2"}\n'
}


@DATASETS.register(
    "r-eval", recognises=recognises, rows=numbered_rows, fields=read_fields, sample=SAMPLE
)
def read_r_eval(source: Source) -> Iterator[tuple[int, Record]]:
    """R-Eval's records as JSON lines (input, outputs, environment, dataset, _id); every output is accepted."""
    return _records(source)


@DATASETS.register("r-eval-original", rows=numbered_rows, fields=read_fields, sample=SAMPLE)
def read_r_eval_original(source: Source) -> Iterator[tuple[int, Record]]:
    """R-Eval's records as JSON lines; only the first of the outputs is accepted, as R-Eval's scores do."""
    return _records(source, first_only=True)
