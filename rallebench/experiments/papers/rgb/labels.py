"""Errors labelled by a person: a file of wrong answers to fill in, and a count of its categories.

The paper's authors named the errors of integration so (merging, ignoring, misalignment) and those of noise (long
distance, evidence uncertainty, concept confusion); any other word is a category, too.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.experiments import Table
from rallebench.core.sources import Source
from rallebench.experiments.papers.rgb.scoring import is_right
from rallebench.experiments.papers.rgb.testing import Answered
from rallebench.experiments.published import published_table

FILE = "errors-to-label.csv"
COLUMNS = ("part", "qid", "category", "question", "required", "prediction")
NO_LABEL = "no label"
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "integration": ("merging", "ignoring", "misalignment"),
    "noise": ("long distance", "evidence uncertainty", "concept confusion"),
}
"""Test → what the paper's authors called its errors, by hand."""
PRINTED: Mapping[str, str] = {"integration": "rgb_table6"}

WrongAnswer = Mapping[str, str]
"""An answer that is not right, a rejection too: the columns of its row in the file."""
Categories = Mapping[tuple[str, str], str]
"""(part or '', question id) → category."""


def wrong_answers(answered: Answered) -> list[WrongAnswer]:
    """All of them, in the order asked; questions that failed have no answer."""
    rows = []
    for part, (test, result) in answered.items():
        for example, assessment in test.assessments(result):
            if not is_right(assessment.labels):
                question = example.question
                required = " + ".join(" / ".join(group) for group in example.gold.required)
                cells = (part, question.qid, "", question.text, required, assessment.text)
                rows.append(dict(zip(COLUMNS, cells)))
    return rows


def to_fill_in(wrong: Sequence[WrongAnswer]) -> dict[str, str]:
    """The file with an empty column ``category``; {} if nothing was wrong."""
    if not wrong:
        return {}
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(wrong)
    return {FILE: text.getvalue()}


def read_labels(file: str) -> Categories:
    """Categories of a CSV file with a header, or of JSON lines: ``qid``, ``category``, and ``part`` where they differ
    by part. Blank categories are skipped; {} without a ``file``. Raises NotFoundError, BadFileError."""
    path = Path(file).expanduser()
    if file and not path.is_file():
        raise NotFoundError(
            f"--set labels={path}: there is no such file; it should have the columns qid and category."
        )
    categories: dict[tuple[str, str], str] = {}
    for line, row in _rows(path) if file else ():
        if not {"qid", "category"} <= row.keys():
            raise BadFileError(
                f"{path}, line {line} has no qid or no category; a file of labels has both, and may have part."
            )
        place = (row.get("part", "").strip(), row["qid"].strip())
        category = " ".join(row["category"].lower().split())
        if category and categories.setdefault(place, category) != category:
            raise BadFileError(
                f"{path}, line {line} calls {place[1]!r} {category!r}, and an earlier line {categories[place]!r}; keep one."
            )
    return categories


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    if path.name.endswith((".jsonl", ".json", ".jsonl.gz")):
        for line, row in Source(path).objects():
            yield line, {key: "" if value is None else str(value) for key, value in row.items()}
        return
    table = Source(path).table()
    _, head = next(table, (0, None))
    if head is None:
        raise BadFileError(
            f"{path} is empty; its first row should name the columns qid and category."
        )
    names = [name.strip().lower() for name in head]
    for line, fields in table:
        if any(field.strip() for field in fields):
            yield line, dict(zip(names, fields))


def error_table(
    test: str, categories: Categories, wrong: Sequence[WrongAnswer]
) -> tuple[Table, tuple[str, ...]]:
    """How many wrong answers are of which category, in every part; and a sentence on labels that no wrong answer has."""
    places = [(row["part"], row["qid"]) for row in wrong]
    named = [categories.get(place) or categories.get(("", place[1]), NO_LABEL) for place in places]
    counts = Counter(zip((part for part, _ in places), named))
    totals = Counter(named)
    labelled = len(wrong) - totals[NO_LABEL]
    own = CATEGORIES[test]
    parts = list(dict.fromkeys(part for part, _ in places))
    printed = _printed(test)
    rows = []
    for category in (*own, *sorted(totals.keys() - {*own, NO_LABEL}), NO_LABEL):
        share = f"{totals[category] / labelled:.0%}" if labelled and category != NO_LABEL else None
        cells = (*(counts[part, category] for part in parts), totals[category], share)
        rows.append((category, *cells, *(shares.get(category) for shares in printed.values())))
    note = f"{labelled} of {len(wrong)} wrong answers have a label; the share is of these. Labels are a person's."
    columns = ("", *parts, "all", "share", *(f"RGB's paper: {system}" for system in printed))
    known = {*places, *(("", qid) for _, qid in places)}
    strange = [qid for part, qid in categories if (part, qid) not in known]
    sentence = (
        f"{len(strange)} labels are of answers that are not wrong here: {', '.join(strange[:5])}."
    )
    return Table("Errors by category", columns, tuple(rows), False, note), (sentence,) * bool(
        strange
    )


def _printed(test: str) -> dict[str, dict[str, str]]:
    """The system whose errors the paper counts → category → share of them."""
    if test not in PRINTED:
        return {}
    table = published_table(PRINTED[test])
    shares = {
        row.settings["error_type"]: f"{table.shares(row)['share_of_errors']:.0%}"
        for row in table.rows
    }
    return {table.rows[0].system: shares}
