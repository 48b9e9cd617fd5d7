"""Errors told apart by hand: a file of wrong answers to fill in, and the categories of a filled one counted.

The paper's authors named the errors of integration so (merging, ignoring, misalignment) and those of noise (long
distance, evidence uncertainty, concept confusion); any other word is a category, too.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.experiments import Table
from rallebench.core.runs import RunResult
from rallebench.core.sources import Source
from rallebench.experiments.papers.rgb import published, scoring
from rallebench.experiments.papers.rgb.testing import Test, labels_in

FILE = "errors-to-label.csv"
COLUMNS = ("part", "qid", "category", "question", "required", "prediction")
NO_LABEL = "no label"

Done = Mapping[str, "tuple[Test, RunResult]"]
"""Label of the part → the test and its answers."""
Labels = Mapping[tuple[str, str], str]
"""(part or '', question id) → category."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """An answer that is not right, a rejection too."""

    part: str
    qid: str
    question: str
    required: str
    prediction: str


def wrong_answers(done: Done) -> list[Wrong]:
    """All of them, in the order asked; questions that failed have no answer."""
    found = []
    for label, (test, answered) in done.items():
        for example in answered.request.examples:
            episode = answered.episodes.get(example.question.qid)
            if episode is None:
                continue
            said, labels = labels_in(test, example, episode)
            if not scoring.is_right(labels):
                required = " + ".join(" / ".join(group) for group in example.gold.required)
                found.append(
                    Wrong(label, example.question.qid, example.question.text, required, said)
                )
    return found


def to_fill_in(wrong: Sequence[Wrong]) -> dict[str, str]:
    """The file with an empty column ``category``; {} if nothing was wrong."""
    if not wrong:
        return {}
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows(
        (one.part, one.qid, "", one.question, one.required, one.prediction) for one in wrong
    )
    return {FILE: text.getvalue()}


def read_labels(path: Path) -> Labels:
    """Categories of a CSV file with a header, or of JSON lines: ``qid``, ``category``, and ``part`` where they differ
    by part. Blank categories are none. Raises NotFoundError, BadFileError."""
    if not path.is_file():
        raise NotFoundError(
            f"--set labels={path}: there is no such file; it should have the columns qid and category."
        )
    found: dict[tuple[str, str], str] = {}
    for line, row in _rows(path):
        if not {"qid", "category"} <= row.keys():
            raise BadFileError(
                f"{path}, line {line} has no qid or no category; a file of labels has both, and may have part."
            )
        place = (row.get("part", "").strip(), row["qid"].strip())
        category = " ".join(row["category"].lower().split())
        if category and found.setdefault(place, category) != category:
            raise BadFileError(
                f"{path}, line {line} calls {place[1]!r} {category!r}, and an earlier line {found[place]!r}; keep one."
            )
    return found


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    if path.name.endswith((".jsonl", ".json", ".jsonl.gz")):
        return [
            (line, {key: "" if value is None else str(value) for key, value in row.items()})
            for line, row in Source(path).objects()
        ]
    table = list(Source(path).table())
    if not table:
        raise BadFileError(
            f"{path} is empty; its first row should name the columns qid and category."
        )
    names = [name.strip().lower() for name in table[0][1]]
    return [
        (line, dict(zip(names, fields)))
        for line, fields in table[1:]
        if any(field.strip() for field in fields)
    ]


def counted(test: str, labels: Labels, wrong: Sequence[Wrong]) -> tuple[Table, str]:
    """How many wrong answers are of which category, in every part; and one sentence on labels that no wrong answer has, or ''."""
    named = {
        (one.part, one.qid): labels.get((one.part, one.qid)) or labels.get(("", one.qid), NO_LABEL)
        for one in wrong
    }
    parts = list(dict.fromkeys(one.part for one in wrong))
    known = [
        *published.CATEGORIES[test],
        *sorted(set(named.values()) - {*published.CATEGORIES[test], NO_LABEL}),
        NO_LABEL,
    ]
    counts = Counter((part, category) for (part, _), category in named.items())
    totals = Counter(category for category in named.values())
    labelled = sum(n for category, n in totals.items() if category != NO_LABEL)
    whose, printed = published.errors() if test == "integration" else ("", {})
    rows = []
    for category in known:
        share = f"{totals[category] / labelled:.0%}" if labelled and category != NO_LABEL else None
        paper = [f"{printed[category]:.0%}" if category in printed else None] if whose else []
        rows.append(
            (category, *(counts[part, category] for part in parts), totals[category], share, *paper)
        )
    note = f"{labelled} of {len(wrong)} wrong answers have a label; the share is of these. Labels are a person's."
    columns = ("", *parts, "all", "share", *([f"RGB's paper: {whose}"] if whose else []))
    table = Table("Errors by category", columns, tuple(rows), False, note)
    strange = [
        qid
        for part, qid in labels
        if not any(qid == one.qid and part in ("", one.part) for one in wrong)
    ]
    return (
        table,
        f"{len(strange)} labels are of answers that are not wrong here: {', '.join(strange[:5])}."
        if strange
        else "",
    )
