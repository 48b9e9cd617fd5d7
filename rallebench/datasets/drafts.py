"""The record in KILT's format that an edited question becomes.

Whatever a draft does not change stays in the record as it was: further fields, the order of its keys, and the fields of gold
pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rallebench.core.dataset_edits import GoldPage, QuestionDraft
from rallebench.core.declining import UNANSWERABLE
from rallebench.core.errors import UsageError
from rallebench.core.types import Json
from rallebench.datasets import Record
from rallebench.datasets.kilt import (
    PAGE_KEY,
    provenance_id,
    read_answers,
    read_gold,
    read_grade,
    read_output,
    read_passage_id,
    read_provenance,
    read_unanswerable,
)

ANSWER, DOC, GROUP, ID, INPUT, META = "answer", "doc_id", "group", "id", "input", "meta"
OUTPUT, PROVENANCE, TITLE = "output", "provenance", "title"


def read_draft(record: Json, where: str = "The question") -> QuestionDraft:
    """Return the editable part of a record. ``where`` begins the sentence of a BadFileError."""
    evidence = tuple(
        tuple(_gold_page(item, where) for item in _gold_items(element, where))
        for element in read_output(record, where)
    )
    return QuestionDraft(
        str(record.get(INPUT) or ""),
        read_answers(record, where),
        evidence,
        read_unanswerable(record, where),
        _read_group(record),
    ).tidy()


def make_record(draft: QuestionDraft, qid: str, before: Json | None = None) -> Record:
    """Return the record of a draft, with everything of ``before``, the earlier record, that the draft does not change.

    Raises UsageError for an empty question, for one that is unanswerable but has answers, and for one without any gold unless
    it had none before.
    """
    draft, old = draft.tidy(), read_draft(before) if before is not None else None
    _check(draft, before)
    record: dict[str, Any] = dict(before) if before is not None else {ID: qid}
    if old is None or draft.text != old.text:
        record[INPUT] = draft.text
    if old is None or draft.evidence != old.evidence:
        record[OUTPUT] = _new_output(draft, before or {})
    elif draft.answers != old.answers:
        record[OUTPUT] = _with_answers(draft, before or {})
    if draft.unanswerable and not (old and old.unanswerable):
        record[UNANSWERABLE] = True
    elif old and old.unanswerable and not draft.unanswerable:
        del record[UNANSWERABLE]
    if draft.group != (old.group if old else ""):
        _set_group(record, draft.group)
    read_gold(record, "The question")
    return record


def _check(draft: QuestionDraft, before: Json | None) -> None:
    if not draft.text:
        raise UsageError("There is no question to save; type one.")
    required = before is not None and bool(read_gold(before, "The question").required)
    if draft.unanswerable and (draft.answers or required):
        raise UsageError(
            "The question is unanswerable, but accepts an answer; remove one of the two."
        )
    had_none = before is not None and not any(
        (read_draft(before).answers, read_draft(before).evidence, read_draft(before).unanswerable)
    )
    if not (draft.answers or draft.evidence or draft.unanswerable or required or had_none):
        raise UsageError(
            "There is no answer to save; type one, choose a gold page, or mark the question as unanswerable."
        )


# fields of a record


def _gold_items(element: Json, where: str) -> Iterator[Json]:
    """Yield the gold items of an element; a page that was judged irrelevant is none."""
    return (item for item in read_provenance(element, where) if read_grade(item) > 0)


def _gold_page(item: Json, where: str) -> GoldPage:
    page_id = provenance_id(item, (PAGE_KEY,), where)
    return GoldPage(page_id, str(item.get(TITLE) or "").strip(), read_passage_id(item))


def _read_group(record: Json) -> str:
    meta = record.get(META)
    group = record.get(GROUP, meta.get(GROUP) if isinstance(meta, Mapping) else None)
    is_name = isinstance(group, (str, int)) and not isinstance(group, bool)
    return str(group).strip() if is_name else ""


def _set_group(record: dict[str, Any], group: str) -> None:
    """Set the group; an empty one hides the group in ``meta``, if any."""
    record.pop(GROUP, None)
    if group or _read_group(record):
        record[GROUP] = group


def _with_answers(draft: QuestionDraft, before: Json) -> list[Record]:
    """Return the output with other answers and the same evidence: an answer that stays keeps its element, and new answers take
    those of removed ones.
    """
    elements = read_output(before, "The question")
    by_answer: dict[str, Record] = {}
    for element in elements:
        by_answer.setdefault(str(element.get(ANSWER) or "").strip(), element)
    seen = [by_answer[answer].get(PROVENANCE) for answer in draft.answers if answer in by_answer]
    free: list[Record] = []
    for element in elements:
        if element.get(PROVENANCE) and element.get(PROVENANCE) not in seen:
            seen.append(element.get(PROVENANCE))
            free.append({key: value for key, value in element.items() if key != ANSWER})
    output: list[Record] = []
    for answer in draft.answers:
        rest = {} if answer in by_answer else free.pop(0) if free else {}
        output.append(by_answer.get(answer) or {ANSWER: answer, **rest})
    return [*output, *free]


def _new_output(draft: QuestionDraft, before: Json) -> list[Record]:
    """Return the output with other evidence: the first set belongs to the first answer, the others are elements of their own."""
    elements = read_output(before, "The question")
    items = [item for element in elements for item in read_provenance(element, "The question")]
    known = {_gold_page(item, "The question").key: item for item in items}
    judged = [item for item in items if read_grade(item) <= 0]
    own_fields = {
        str(element.get(ANSWER) or "").strip(): {
            k: v for k, v in element.items() if k != PROVENANCE
        }
        for element in elements
    }
    sets = [[known.get(page.key) or _item(page) for page in pages] for pages in draft.evidence]
    if judged:
        sets = [[*(sets[0] if sets else []), *judged], *sets[1:]]
    output: list[Record] = [
        dict(own_fields.get(answer, {ANSWER: answer})) for answer in draft.answers
    ]
    return _attach(output, sets)


def _attach(output: list[Record], sets: Sequence[Sequence[Json]]) -> list[Record]:
    if sets and output:
        output[0] = {**output[0], PROVENANCE: list(sets[0])}
        sets = sets[1:]
    return [*output, *({PROVENANCE: list(pages)} for pages in sets)]


def _item(page: GoldPage) -> Record:
    """Return a new gold page in KILT's form."""
    fields = {PAGE_KEY: page.page_id, TITLE: page.title, DOC: page.doc_id}
    return {key: value for key, value in fields.items() if value}
