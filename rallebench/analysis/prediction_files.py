"""Files of predictions by other programs, read row by row: answers, or ranked pages.

Forms: KILT's and FlashRAG's records, JSON lines, one JSON list or CSV with an id and an answer; one object ``{id: answer}``, as
SQuAD's and HotpotQA's scripts read it; and runs, which hold pages and no answers: TREC's six columns, MS MARCO's three,
or one object ``{id: {page: score}}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Union

from rallebench.analysis import trec
from rallebench.core.columns import first_value
from rallebench.core.errors import BadFileError, Hint, UsageError
from rallebench.core.json_lists import find_rows
from rallebench.core.json_values import JsonValue
from rallebench.core.sources import Problems, Source
from rallebench.core.streams import plain_name
from rallebench.core.types import Json

IDS = ("id", "qid", "question_id", "query_id", "_id")
ANSWERS = (
    "prediction",
    "predicted",
    "predicted_answer",
    "pred",
    "answer",
    "output",
    "response",
)
"""Names of the field with the answer, best first: beside a ``prediction``, an ``answer`` is the gold one."""
FACTS = ("sp", "evidence")
"""Members of HotpotQA's and 2WikiMultihopQA's files beside the answers: supporting facts."""

LOOKED_AT = 20
"""Members of an object that are looked at to tell its form."""

Pages = tuple[tuple[str, float], ...]
Answer = Union[str, int, float, None]


@dataclass(frozen=True, slots=True)
class Prediction:
    """One row of the file. ``answer``: None if it has none. ``pages``: (page id, score), best first; () for an
    empty list, None if the row has no list.
    """

    line: int
    qid: str
    answer: str | None
    pages: Pages | None = None


def detect_form(file: Path) -> str:
    """Detect the form of a file from its suffix and first row. Raises UsageError if it is unknown."""
    if not file.is_file():
        raise UsageError(f"There is no file {file}; give a file of predictions.")
    ending = Path(plain_name(file.name.lower())).suffix
    lines = Source(file, Problems(skip=True), peeking=True).lines()
    first = next((text.strip() for _, text in lines if text.strip()), "")
    if ending == ".jsonl" or first.startswith("["):
        return "jsonl"
    if ending == ".json" or first.startswith("{"):
        return _form_of_object(file, first)
    if ending != ".csv" and trec.is_run_line(first):
        return TREC
    if ending != ".csv" and trec.is_ranking_line(first):
        return MSMARCO
    if ending in (".csv", ".tsv"):
        return "csv"
    raise UsageError(
        f"{file} is in no known form of predictions ({', '.join(READERS)}).",
        hint=Hint("choose", "format"),
    )


def _form_of_object(file: Path, first_line: str) -> str:
    """Tell JSON lines, and an object around a list, from an object whose names are ids."""
    try:
        row = json.loads(first_line)
    except (ValueError, RecursionError):
        row = None
    if isinstance(row, dict) and row.keys() & {*IDS}:
        return "jsonl"
    members = Source(file, Problems(skip=True), peeking=True).members()
    first = [(name, value) for _, name, value in islice(members, LOOKED_AT)]
    if any(isinstance(value, list) and value and isinstance(value[0], dict) for _, value in first):
        return "jsonl"
    name, value = first[0] if first else ("", None)
    holds_pages = isinstance(value, (dict, list)) and name not in ("answer", *FACTS)
    return RUN_JSON if holds_pages else "squad"


def _records(source: Source) -> Iterator[Prediction]:
    """``{"id", "answer"}``, KILT's ``{"id", "output": [{"answer", "provenance"}]}``, or FlashRAG's ``{"id", "output":
    {"pred", "retrieval_result"}}``, as JSON lines or one list.
    """
    both = 0
    unmistakable = ANSWERS[: ANSWERS.index("answer")]
    for line, row in _objects(source):
        qid = first_value(row, IDS, None)
        if qid is None:
            fault = " has no 'id'; every row is an object with 'id' and 'answer'."
            if "id" in row:
                fault = ": the id is NoneType; it must be text or a whole number."
            source.bad(line, fault)
            continue
        if isinstance(qid, bool) or not isinstance(qid, (str, int)):
            source.bad(
                line, f": the id is {type(qid).__name__}; it must be text or a whole number."
            )
            continue
        try:
            answer, pages = _answer_and_pages(row)
        except ValueError as error:
            source.bad(line, f": {error}")
            continue
        both += "answer" in row and any(row.get(name) is not None for name in unmistakable)
        yield Prediction(line, str(qid).strip(), answer, pages)
    if both:
        source.problems.warnings.append(
            f"In {both:,} rows the prediction stands beside an 'answer', which was not read: it looks like the gold one."
        )


def _objects(source: Source) -> Iterator[tuple[int, Json]]:
    document = source.document()
    rows = find_rows(document) if document else None
    if rows is None:
        return source.objects()
    source.unit = "record"
    return enumerate(rows, 1)


def _answer_and_pages(row: Json) -> tuple[str | None, Pages | None]:
    """Raises ValueError with a sentence."""
    output = row.get("output")
    if isinstance(output, dict):  # FlashRAG's
        passages = _list(output, "retrieval_result")
        pages = [first_value(p, IDS, None) if isinstance(p, dict) else p for p in passages or ()]
        return _text(_answer(output)), _rank_ids(passages and pages)
    if isinstance(output, list) and output and isinstance(output[0], dict):  # KILT's
        elements = _list(output[0], "provenance")
        ids = [p.get("wikipedia_id") if isinstance(p, dict) else p for p in elements or ()]
        # An entry with only a title has no page id and is not scored.
        known = [page for page in ids if page is not None and page != ""]
        pages_of = None if elements is None or (elements and not known) else known
        return _text(output[0].get("answer")), _rank_ids(pages_of)
    return _text(_answer(row)), _rank_ids(_list(row, "pages"))


def _answer(row: Json) -> JsonValue:
    return next((row[name] for name in ANSWERS if row.get(name) is not None), None)


def _list(row: Json, name: str) -> list[JsonValue] | None:
    value = row.get(name)
    if value is None or isinstance(value, list):
        return value
    raise ValueError(f"{name!r} must be a list, not {type(value).__name__}.")


def _text(value: JsonValue) -> str | None:
    """The text of an answer; None for null. An empty text is an answer: SQuAD 2's for a question without one."""
    if not isinstance(value, (str, int, float, type(None))) or value != value:
        raise ValueError("the answer is not a text.")
    return None if value is None else str(value)


def _rank_ids(pages: list[JsonValue] | None) -> Pages | None:
    if pages is None:
        return None
    if not all(isinstance(page, (str, int)) and not isinstance(page, bool) for page in pages):
        raise ValueError("a page is not an id; pages are a list of texts.")
    return tuple((str(page), 1.0 / rank) for rank, page in enumerate(pages, 1))


def _answers_by_id(source: Source) -> Iterator[Prediction]:
    """``{id: answer}``, or HotpotQA's ``{"answer": {id: answer}, "sp": …}``."""
    for number, name, value in source.members():
        if name in FACTS and isinstance(value, dict):
            source.problems.warnings.append(
                f"Only the answers were read; the supporting facts ({name!r}) are not scored here."
            )
            continue
        inside = value.items() if name == "answer" and isinstance(value, dict) else [(name, value)]
        for qid, answer in inside:
            try:
                yield Prediction(number, qid.strip(), _text(answer))
            except ValueError as error:
                source.bad(number, f" ({qid[:60]!r}): {error}")


def _pages_by_id(source: Source) -> Iterator[Prediction]:
    """``{id: {page: score}}``, as ranx, BEIR and pytrec_eval write runs; or a list of pages for each id, best first."""
    for number, qid, value in source.members():
        where = f" ({qid[:60]!r})"
        if isinstance(value, list):
            try:
                yield Prediction(number, qid.strip(), None, _rank_ids(value))
            except ValueError as error:
                source.bad(number, f"{where}: {error}")
            continue
        if not isinstance(value, Mapping):
            source.bad(number, f"{where} is not an object of pages and their scores.")
            continue
        scores = {page.strip(): _score(score) for page, score in value.items()}
        if bad := [page for page, score in scores.items() if not math.isfinite(score)]:
            fault = f"gives {bad[0][:60]!r} a score that is not a number; give numbers."
            source.bad(number, f"{where} {fault}")
        else:
            yield Prediction(number, qid.strip(), None, trec.rank_pages(scores))


def _score(value: JsonValue) -> float:
    """Return a number; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all floats
        return math.nan


def _comma_separated(source: Source) -> Iterator[Prediction]:
    rows = source.table()
    _, columns = next(rows, (0, []))
    columns = [head.strip() for head in columns]
    answer = next((head for head in ANSWERS if head in columns), "")
    key = next((head for head in IDS if head in columns), "")
    if not key or not answer:
        raise BadFileError(
            f"{source.path} needs a header row with the columns id and answer; it has {', '.join(columns)[:200] or 'none'}."
        )
    for line, fields in rows:
        if len(fields) != len(columns):
            source.bad(
                line,
                f" has {len(fields)} columns where its header has {len(columns)}; quote fields with commas.",
            )
            continue
        row = dict(zip(columns, fields))
        yield Prediction(line, row[key].strip(), row[answer])


def _run(source: Source) -> Iterator[Prediction]:
    for line, qid, pages in trec.read_run(source):
        yield Prediction(line, qid, None, pages)


TREC, MSMARCO, RUN_JSON = "trec", "msmarco", "run-json"
READERS: Mapping[str, Callable[[Source], Iterator[Prediction]]] = {
    "jsonl": _records,
    "kilt": _records,
    "csv": _comma_separated,
    "squad": _answers_by_id,
    TREC: _run,
    MSMARCO: _run,
    RUN_JSON: _pages_by_id,
}
RUNS = (TREC, MSMARCO, RUN_JSON)
"""Forms in which a question without pages has no row, and scores 0."""
COLUMNS = (TREC, MSMARCO)
"""Forms whose ids may be percent-encoded, because white space separates the columns."""
