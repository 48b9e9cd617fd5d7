"""Field names in question files: question, id, accepted answers, gold pages, and whether there is an answer.

Names are compared in lower case with ``_`` between words (``goldenAnswers`` and ``Golden Answers`` become
``golden_answers``). A field with an unknown name is left over; the name decides if it looks like gold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rallebench.core.columns import Role
from rallebench.core.declining import declines
from rallebench.datasets import Record
from rallebench.datasets._values import NoValueError, is_empty, parse_answers, parse_pages, row_id

QUESTION = ("question", "query", "input", "question_text", "user_input", "prompt", "problem")
ID = ("id", "qid", "_id")

_GOLD = """
golden_answers golden_answer gold_answers gold_answer ground_truths ground_truth ground_truth_answers ground_truth_answer
groundtruth possible_answers expected_answers expected_answer expected_output expected_response correct_answer answers
answer answer_text answer_texts final_answer exact_answer ideal_answer true_answer true_answers right_answer target_answer
target_answers gt_answer gt_answers gt ref_answer ref_answers best_answer correct_answers accepted_answers short_answers short_answer gold
golden reference_answers reference_answer
"""
GOLD = tuple(_GOLD.split())
"""Names of accepted answers, the most reliable first; in a row with several, the first non-empty one counts."""
_WEAK = "references reference response responses outputs output targets target solution completion"
WEAK = tuple(_WEAK.split())
"""Names that mean something else if one of ``GOLD`` is present: a system's response, a cited source."""
MORE = ("answer_aliases", "answers_aliases", "alternative_answers", "aliases")
"""Names of additional accepted answers."""

_PAGES = """
page_id page_ids wikipedia_id wikipedia_ids gold_page gold_pages gold_page_id gold_page_ids gold_doc gold_docs gold_doc_id
gold_doc_ids gold_document gold_documents relevant_doc_ids relevant_docs supporting_facts evidence_list
"""
PAGES = tuple(_PAGES.split())
"""Names of gold pages; if a row has several, all are needed together."""
UNANSWERABLE = ("unanswerable", "is_unanswerable", "is_impossible")
ANSWERABLE = ("answerable", "is_answerable")
"""Names of fields that say whether the question has an answer; without one, declining is right."""
_TRUTH = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
_NAMES_PAGES = re.compile(
    r"(^|_)((sources?|pages?|urls?|uris?|links?|docs?|documents?|articles?|titles?|files?|paths?|references?|citations?)"
    r"(_ids?|_names?|_titles?|_urls?|_paths?)?|filenames?|docids?|docnos?|pids?|nodes?|provenances?"
    r"|(passage|context|chunk|node|corpus|evidence|gold|positive|relevant)_ids?)$"
)
"""Names of fields that may name gold pages; they do if a corpus has pages with these ids, titles or addresses."""

ROLES = {
    "question": Role("question", QUESTION),
    "answer": Role("answer", (*GOLD, *WEAK, *MORE)),
    "answers": Role("answers", (*GOLD, *WEAK, *MORE)),
    "page": Role("page_id", PAGES),
    "id": Role("id", ID),
    "group": Role("group", ("group",)),
    "unanswerable": Role("unanswerable", (*UNANSWERABLE, *ANSWERABLE)),
}
"""Roles of the columns of a table of questions. A cell of ``answers`` may hold several, also between ``;``."""

EXPLICIT = ""
"""Pseudo-field for the fields in ``PAGES``."""

_GOLD_LIKE = re.compile(
    r"(^|_)(answers?|ans|gold|golds|gt|golden|truths?|groundtruth|expected|correct|references?|responses?|labels?|targets?|solutions?"
    r"|ideal|aliases|outputs?|evidences?|supporting|relevant|positives?|qrels?)(\d*_|\d*$)"
)
_NOT_GOLD = re.compile(r"(^|_)(incorrect|wrong|false|negatives?|distractors?|predict\w*)(_|$)")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def normal(name: str) -> str:
    """Normalise a field name: lower case with ``_`` between words; a known name in its usual spelling.

    >>> normal("Golden Answers"), normal("goldenAnswers"), normal("pageid"), normal("Full Name")
    ('golden_answers', 'golden_answers', 'page_id', 'full_name')
    """
    snake = re.sub(r"[\s_-]+", "_", _WORD.sub("_", name.strip()).lower())
    return _KNOWN.get(_squeeze(snake), snake)


def _squeeze(name: str) -> str:
    return name[:1] + name[1:].replace("_", "")


_KNOWN = {_squeeze(name): name for name in (*ID, *QUESTION, *GOLD, *WEAK, *MORE, *PAGES)}


def may_name_pages(name: str) -> bool:
    """Return whether a field's name suggests that it names the page of an answer.

    >>> [name for name in ("source", "wiki_url", "doc_id", "file_name", "entity_pages", "level") if may_name_pages(name)]
    ['source', 'wiki_url', 'doc_id', 'file_name', 'entity_pages']
    """
    return bool(_NAMES_PAGES.search(name))


def looks_like_gold(name: str, value: Any) -> bool:
    """Return whether an unused field may hold answers or pages: by its name, or because it is a list of short texts.

    >>> looks_like_gold("gold_label", "x"), looks_like_gold("names", ["Titan"]), looks_like_gold("wrong_answers", ["Ulm"])
    (True, True, False)
    """
    if _NOT_GOLD.search(name):
        return False
    if _GOLD_LIKE.search(name) or may_name_pages(name):
        return True
    texts = isinstance(value, list) and all(isinstance(text, str) for text in value)
    return texts and 0 < max(map(len, value), default=0) <= 100


@dataclass(frozen=True, slots=True)
class RowOfFields:
    """A parsed row. ``record``: in KILT's format; ``names``: field → pages that it may name, ``EXPLICIT`` → pages of the record;
    ``left``: unused fields with their values; ``missing``: texts interpreted as a missing answer; ``split``: True if a cell
    contained several answers; ``unsplit``: True if a cell taken for one answer contains ``;``.
    """

    record: Record
    names: Mapping[str, list[str]] = field(default_factory=dict)
    left: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    split: bool = False
    unsplit: bool = False


def read_row(row: Mapping[str, Any], number: int, *, cells: bool = False) -> RowOfFields:
    """Read a row by its field names. ``cells``: the row is from a table, where ``|`` separates several answers.

    Raises NoValueError, whose message continues "FILE, line N", for a row without a question and for gold in an unknown form.
    """
    fields: dict[str, Any] = {}
    inner = row.get("metadata")  # FlashRAG stores a set's additional fields there
    further = inner.items() if isinstance(inner, Mapping) else ()
    for name, value in row.items():
        fields.setdefault(normal(name), value)
    for name, value in further:
        if normal(name) in PAGES or may_name_pages(normal(name)):
            fields.setdefault(normal(name), value)
    for name in QUESTION:  # Natural Questions and NarrativeQA have an object with the text
        if isinstance(fields.get(name), Mapping):
            fields[name] = fields[name].get("text")
    question = next(
        (n for n in QUESTION if isinstance(fields.get(n), str) and fields[n].strip()), None
    )
    if question is None:
        raise NoValueError(" has no 'question' with the text of the question.")
    used = {question, *ID, "group"}
    answers, missing, split = _answers(fields, used, cells)
    unanswerable = _is_unanswerable(fields, used)
    if unanswerable:
        answers = [answer for answer in answers if not declines(answer)]
    pages: list[str] = []
    for name in PAGES:
        if name in fields and not pages:
            pages = _read(parse_pages, "a page", fields[name])
            used.add(name)
    left = {n: v for n, v in fields.items() if n not in used and not is_empty(v)}
    candidates = {name: _pages_named(left[name]) for name in left if may_name_pages(name)}
    kilt = fields.get("output")
    is_kilt = isinstance(kilt, list) and any(
        isinstance(x, dict) and "provenance" in x for x in kilt
    )
    record = {
        "id": next((row_id(fields[n], number) for n in ID if not is_empty(fields.get(n))), number),
        "input": fields[question],
        "output": kilt if is_kilt else output(answers, [pages] if pages else []),
        **({"unanswerable": True} if unanswerable else {}),
    }
    if isinstance(group := fields.get("group"), (str, int)) and not isinstance(group, bool):
        record["group"] = group
    names = {name: pages for name, pages in candidates.items() if pages}
    names = {EXPLICIT: pages} if pages else names
    unsplit = cells and not split and any(";" in answer for answer in answers)
    return RowOfFields(record, names, left, tuple(missing), split, unsplit)


def _answers(
    fields: Mapping[str, Any], used: set[str], cells: bool
) -> tuple[list[str], list[str], bool]:
    """Return a row's accepted answers, its texts for missing values, and whether a cell held several; extend ``used``."""
    names = [name for name in GOLD if name in fields]
    weak = (name for name in WEAK if name in fields and not used & {name})
    names = names or [name for name in weak if not _is_link(fields[name])]
    answers: list[str] = []
    missing: list[str] = []
    split = False
    for name in [*names, *(name for name in MORE if name in fields)]:
        value = fields[name]
        parts = _split_cell(value, ("|", ";") if name.endswith("s") else ("|",)) if cells else None
        if answers and name not in MORE:
            with suppress(NoValueError):  # the same error was reported above
                used |= {name} if {*parse_answers(parts or value)[0]} <= {*answers} else set()
            continue
        values, nothing = _read(parse_answers, "an answer", parts or value)
        split = split or parts is not None
        answers += values
        missing += nothing
        used.add(name)
    return list(dict.fromkeys(answers)), missing, split


def _is_unanswerable(fields: Mapping[str, Any], used: set[str]) -> bool:
    """Return whether a row says that its question has no answer; extend ``used``."""
    for name in (*UNANSWERABLE, *ANSWERABLE):
        if is_empty(fields.get(name)):
            continue
        truth = _TRUTH.get(str(fields[name]).strip().lower().removesuffix(".0"))
        if truth is None:
            raise NoValueError(f": {name!r} is neither true nor false; correct it or leave it out.")
        used.add(name)
        if truth is (name in UNANSWERABLE):
            return True
    return False


def _is_link(value: Any) -> bool:
    """Return whether a value is the address of a page, or a list of addresses."""
    names = _pages_named(value)
    return bool(names) and all(re.match(r"https?://\S+$", name) for name in names)


def output(answers: list[str], evidence: list[list[str]]) -> list[Record]:
    """Return KILT's ``output``: each answer with the gold pages. ``evidence``: alternative sets of pages."""
    elements: list[Record] = [{"answer": answer} for answer in answers]
    sets = [{"provenance": [{"wikipedia_id": page} for page in pages]} for pages in evidence]
    if len(sets) == 1:
        return [{**element, **sets[0]} for element in elements or [{}]]
    return [*elements, *sets]


def _read(read: Any, noun: str, value: Any) -> Any:
    try:
        return read(value)
    except NoValueError as error:
        raise NoValueError(
            f": {noun} is {error}; answers and pages should be a text or a list of texts."
        ) from None


def _split_cell(value: Any, marks: Sequence[str] = ("|",)) -> list[str] | None:
    """Split the answers in a cell such as ``Titan | Saturn VI``; return None for any other, such as ``|x|`` and ``P(A|B)``.

    ``marks``: separators; the first one in the cell counts.

    >>> _split_cell("Titan|Saturn VI"), _split_cell("|x|"), _split_cell("P(A|B)"), _split_cell("Titan")
    (['Titan', 'Saturn VI'], None, None, None)
    """
    if not isinstance(value, str) or value.lstrip()[:1] in ("[", "{"):
        return None
    mark = next((mark for mark in marks if mark in value), None)
    if mark is None:
        return None
    parts = [part.strip() for part in value.replace(2 * mark, mark).split(mark)]
    balanced = all(part.count("(") == part.count(")") for part in parts)
    return parts if balanced and all(parts) else None


def _pages_named(value: Any) -> list[str]:
    """Return the page names in a field; [] if it contains prose or anything else."""
    try:
        names = parse_pages(value)
    except NoValueError:
        return []
    return names if all(len(name) <= 500 for name in names) else []
