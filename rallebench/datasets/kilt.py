"""KILT's record format (Petroni et al. 2021, arXiv:2009.02252), as JSON lines.

::

    {"id": "…", "input": "…",
     "output": [{"answer": "…", "provenance": [{"wikipedia_id": "…", "title": "…"}]}]}

A right answer contains a member of each list in ``required``, a list of lists, also a key of this project.

A question without a right answer has ``"unanswerable": true``, a key of this project, and no answer: declining is right.

Every answer is an accepted alternative. The provenance of one output element is one evidence set, whose
pages are needed together. An element may have an answer, a provenance, or both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from rallebench.core.columnar import columnar_kind
from rallebench.core.declining import UNANSWERABLE
from rallebench.core.errors import BadFileError
from rallebench.core.json_lists import find_rows
from rallebench.core.sources import Problems, Source, has_suffix, stamps
from rallebench.core.types import Example, Gold, GoldClaim, Json, Question
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._values import is_empty
from rallebench.datasets.fields import GOLD, RowOfFields, normal

PAGE_KEY = "wikipedia_id"
KEYS = ("id", "input", "output", "meta", UNANSWERABLE)


SAMPLE = """{"id": "q1", "input": "Which moon?", "output": [{"answer": "Titan", "provenance": [{"wikipedia_id": "1"}]}]}
{"id": "q2", "input": "Which sea?", "output": [{"answer": "Black Sea"}, {"answer": "the Black Sea"}]}
"""
LOOKED_AT = 20
"""Number of rows by which the format of a JSON-lines file is recognised."""


def first_rows(path: Path, inside: str = "") -> list[Record]:
    """Return the first rows of JSON lines, a JSON list, a Parquet or an Arrow file; [] for any other or unreadable file.

    Bad rows are left out. ``inside``: see ``Source.objects``.
    """
    if not (has_suffix(".jsonl", ".json")(path) or columnar_kind(path)):
        return []
    return list(_first_rows(path, tuple(stamps(path)), inside))


@lru_cache(maxsize=8)  # every format inspects the same rows
def _first_rows(path: Path, _stamps: tuple[object, ...], inside: str) -> tuple[Record, ...]:
    try:
        rows = objects(Source(path, Problems(skip=True), peeking=True), inside)
        return tuple(row for _, row in islice(rows, LOOKED_AT))
    except BadFileError:
        return ()


def _recognises(path: Path) -> bool:
    rows = first_rows(path) if path.is_file() else []
    has_input = all("input" in row and "outputs" not in row for row in rows)
    return bool(rows) and has_input and not has_other_gold(rows)


def has_other_gold(rows: Sequence[Record]) -> bool:
    """Return whether rows contain gold but never in KILT's format, a list of objects."""
    outputs = [row["output"] for row in rows if row.get("output")]
    if any(isinstance(output, (dict, list)) for output in outputs):
        return False
    return bool(outputs) or any(normal(name) in GOLD for row in rows for name in row)


def numbered_rows(source: Source) -> Iterator[tuple[int, int, Record]]:
    """Yield (line, number from 1, object) of ``objects``."""
    return ((line, number, row) for number, (line, row) in enumerate(objects(source), start=1))


def objects(source: Source, inside: str = "") -> Iterator[tuple[int, Record]]:
    """Yield (number, object) of ``Source.objects``, or from an object that wraps a list; SQuAD's articles are split.

    ``inside``: see ``Source.objects``.
    """
    document = None if inside else source.document()
    rows = find_rows(document) if document else None
    if rows is None:
        yield from source.objects(inside)
        return
    source.unit = "record"
    questions = (source.map_row(question) for row in rows for question in _questions(row))
    yield from enumerate(questions, 1)
    source.done = source.total


def _questions(row: Json) -> Iterator[Record]:
    """Yield the questions of a SQuAD article, with its title; any other row unchanged."""
    paragraphs = row.get("paragraphs")
    texts = paragraphs if isinstance(paragraphs, list) else []
    listed = [text["qas"] for text in texts if isinstance(text, dict) and "qas" in text]
    if not listed:
        yield row
    for question in (x for qas in listed if isinstance(qas, list) for x in qas):
        if isinstance(question, dict):
            yield {**question, "title": row.get("title")}


def read_fields(row: Record, number: int) -> RowOfFields:
    """Read a record; if it has no gold, also by the fields that KILT does not define."""
    has_gold = row.get(UNANSWERABLE) is True or any(
        isinstance(x, dict) and any(x.values()) for x in row.get("output") or ()
    )
    left = {} if has_gold else {k: v for k, v in row.items() if k not in KEYS and not is_empty(v)}
    return RowOfFields(row, left=left)


@DATASETS.register(
    "kilt",
    recognises=_recognises,
    rows=numbered_rows,
    fields=read_fields,
    sample={"questions.jsonl": SAMPLE},
)
def read_kilt(source: Source) -> Iterator[tuple[int, Record]]:
    """KILT records as JSON lines, plain or packed: id, input, and output with the gold.

    Streams. ``output``, answers and provenances may be missing, null or empty (no gold); ids may be numbers
    and are kept as stripped text. A row is bad if its JSON is invalid, its id or input missing or blank, its
    id repeated, or a value of the wrong type.
    """
    return source.objects()


def examples(source: Source, records: Iterable[tuple[int, Record]]) -> Iterator[Example]:
    """Yield the examples from (line, record in KILT's format); an invalid record is a bad row of ``source``."""
    seen: dict[str, int] = {}
    for line, record in records:
        where = source.where(line)
        try:
            qid = record_id(record, where)
            if qid in seen:
                raise BadFileError(
                    f"{where} repeats the id {qid!r} of {source.unit} {seen[qid]}; every question needs its own."
                )
            question = Question(qid, record_input(record, where))
            example = Example(question, read_gold(record, where), record)
        except BadFileError as error:
            source.problems.add(line, str(error))
            continue
        seen[qid] = line
        yield example


# ── one record; ``where`` opens the error message: "FILE, line N" ────────────


def record_id(record: Json, where: str) -> str:
    """Return the record's id as stripped text."""
    qid = record.get("id")
    if isinstance(qid, bool) or not isinstance(qid, (str, int)):
        problem = f"has an 'id' that is {_kind(qid)}, not text or a whole number"
        problem = problem if qid is not None else "has no 'id'"
        raise BadFileError(f'{where} {problem}; a KILT record has "id", "input" and "output".')
    text = str(qid).strip()
    if not text:
        raise BadFileError(f"{where} has an empty 'id'; give every question its own id.")
    return text


def read_gold(record: Json, where: str, rank_keys: Sequence[str] = (PAGE_KEY,)) -> Gold:
    """Return the record's gold.

    ``answers``: the distinct non-empty stripped answers in order. ``provenance``: for each output element with pages,
    the set of their ids; with several ``rank_keys`` an id is their values joined with ``+``. ``titles``: page id →
    title ('' if missing) of every page in order. ``passages``: the sets of ``doc_id``, which RaLLe and others add to
    KILT's fields. ``grades``: a page's ``relevance``, which BEIR's judgements add, if it is a number; a page with a
    relevance of 0 or less is judged but not gold. ``required``: see ``_read_required``. ``unanswerable``: see ``read_unanswerable``.
    ``claims``: see ``_read_claims``.
    """
    elements = read_output(record, where)
    listed = [read_provenance(element, where) for element in elements]
    for item in chain(*listed):
        _check_grade(item, where)
    items = [[item for item in group if read_grade(item) > 0] for group in listed]
    sets = [{provenance_id(item, rank_keys, where) for item in group} - {""} for group in items]
    titles: dict[str, str] = {}
    for item in chain(*items):
        if page := provenance_id(item, (PAGE_KEY,), where):
            titles[page] = titles.get(page) or str(item.get("title") or "").strip()
    passages = [set(map(read_passage_id, group)) - {""} for group in items]
    grades = {
        provenance_id(item, (PAGE_KEY,), where): read_grade(item)
        for item in chain(*listed)
        if isinstance(item.get("relevance"), (int, float))
    }
    return Gold(
        read_answers(record, where),
        required=_read_required(record, where),
        provenance=tuple(frozenset(ids) for ids in sets if ids),
        titles=titles,
        passages=tuple(frozenset(ids) for ids in passages if ids),
        grades=grades,
        unanswerable=read_unanswerable(record, where),
        claims=_read_claims(record, where),
    )


def read_answers(record: Json, where: str) -> tuple[str, ...]:
    """Return the distinct non-empty stripped answers, in order."""
    answers = (_alias(element, where) for element in read_output(record, where))
    return tuple(dict.fromkeys(filter(None, answers)))


def _read_required(record: Json, where: str) -> tuple[tuple[str, ...], ...]:
    """Return the lists of texts of which a right answer contains one each. Raises BadFileError for any other value."""
    groups = record.get("required")
    if groups is None:
        return ()
    lists = isinstance(groups, list) and all(isinstance(group, list) for group in groups)
    if not lists or not all(isinstance(text, str) for group in groups for text in group):
        raise BadFileError(
            f"{where}: 'required' should be a list of lists of texts, as in [[\"1655\"]]."
        )
    distinct = (
        tuple(dict.fromkeys(text.strip() for text in group if text.strip())) for group in groups
    )
    return tuple(group for group in distinct if group)


def _read_claims(record: Json, where: str) -> tuple[GoldClaim, ...]:
    """Return the claims of a right answer: ALCE's or RAGChecker's ``claims``, or ``nuggets`` with an ``importance`` (vital,
    okay).

    A claim is a text, the parts of one in a list, or an object with ``text``. Other values than lists are ignored. Raises BadFileError for other items of a list.
    """
    listed = record.get("claims") or record.get("nuggets") or record.get("gt_answer_claims")
    claims: list[GoldClaim] = []
    for item in listed if isinstance(listed, list) else ():
        text = item.get("text") if isinstance(item, dict) else item
        if isinstance(text, list) and all(isinstance(part, str) for part in text):
            text = " ".join(text)
        if not isinstance(text, str):
            raise BadFileError(
                f"{where}: an item of 'claims' is {_kind(item)}; give texts, or objects with a text and an importance (vital or "
                "okay)."
            )
        importance = item.get("importance") if isinstance(item, dict) else None
        if text.strip():
            claims.append(GoldClaim(text.strip(), importance != "okay"))
    return tuple(dict.fromkeys(claims))


def read_unanswerable(record: Json, where: str) -> bool:
    """Return whether a record says that declining is right. Raises BadFileError if it accepts an answer, too."""
    value = record.get(UNANSWERABLE)
    if value is not None and not isinstance(value, bool):
        raise BadFileError(
            f"{where} has an {UNANSWERABLE!r} that is {_kind(value)}, not true or false."
        )
    if not value:
        return False
    if answers := (*read_answers(record, where), *chain(*_read_required(record, where))):
        raise BadFileError(
            f"{where} is unanswerable, but accepts the answer {answers[0][:60]!r}; remove one of the two."
        )
    return True


def _check_grade(item: Json, where: str) -> None:
    value = item.get("relevance")
    if value is None or (type(value) in (int, float) and math.isfinite(value)):
        return
    kind = "not finite" if isinstance(value, float) else f"{_kind(value)}, not a number"
    raise BadFileError(f"{where}: a 'relevance' is {kind}; give a grade such as 0, 1 or 2.")


def read_grade(item: Json) -> float:
    """Return the relevance of a page; 1.0 by default."""
    value = item.get("relevance")
    return float(value) if isinstance(value, (int, float)) else 1.0


def read_passage_id(item: Json) -> str:
    """Return the stripped ``doc_id``; '' if absent or invalid, because KILT does not define the field."""
    value = item.get("doc_id")
    is_id = isinstance(value, (str, int)) and not isinstance(value, bool)
    return str(value).strip() if is_id else ""


def read_output(record: Json, where: str) -> Sequence[Json]:
    """Return the record's output elements; () if there are none."""
    return _objects(record.get("output"), where, "output")


def read_provenance(element: Json, where: str) -> Sequence[Json]:
    """Return an output element's provenance items; () if there are none."""
    return _objects(element.get("provenance"), where, "provenance")


def provenance_id(item: Json, rank_keys: Sequence[str], where: str) -> str:
    """Return the stripped values of ``rank_keys`` joined with ``+``; '' if one is absent or empty."""
    parts: list[str] = []
    for key in rank_keys:
        value = item.get(key)
        if isinstance(value, (bool, float, list, dict)):
            raise BadFileError(f"{where}: {key!r} is {_kind(value)}, not text or a whole number.")
        part = "" if value is None else str(value).strip()
        if not part:
            return ""
        parts.append(part)
    return "+".join(parts)


def record_input(record: Json, where: str) -> str:
    """Return the question of a record. Raises BadFileError if it is absent, blank or not text."""
    text = record.get("input")
    if not isinstance(text, str):
        problem = (
            "has no 'input'" if text is None else f"has an 'input' that is {_kind(text)}, not text"
        )
        raise BadFileError(f'{where} {problem}; "input" holds the question.')
    if not text.strip():
        raise BadFileError(f"{where} has an empty 'input'; it should hold the question.")
    return text


def _alias(element: Json, where: str) -> str:
    answer = element.get("answer")
    if answer is not None and not isinstance(answer, str):
        many = isinstance(answer, list)
        mend = "give each accepted answer an output of its own" if many else "put it in quotes"
        raise BadFileError(f"{where}: an 'answer' is {_kind(answer)}, not text; {mend}.")
    return (answer or "").strip()


def _objects(value: Any, where: str, name: str) -> Sequence[Json]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(element, dict) for element in value):
        raise BadFileError(f"{where}: {name!r} should be a list of objects, as in [{{…}}].")
    return value


def _kind(value: Any) -> str:
    """Return JSON's name for the type of a value.

    >>> _kind(True), _kind([]), _kind(1.5)
    ('true or false', 'a list', 'a number')
    """
    if isinstance(value, bool):
        return "true or false"
    names = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "null")
