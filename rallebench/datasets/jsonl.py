"""Questions as JSON lines with the usual names: ``question``, and optionally ``answer`` or ``answers``, ``id`` and
``page_id``; ``fields`` lists all names and the forms of answers.

``{"question": "Which moon?", "answers": ["Titan", "Saturn VI"]}``; without an id a row's number (from 1) is its id.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rallebench.core.columnar import columnar_kind
from rallebench.core.readers import matching_formats
from rallebench.core.sources import Source
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._values import NoValueError
from rallebench.datasets.fields import GOLD, QUESTION, normal, read_row
from rallebench.datasets.kilt import first_rows, has_other_gold, numbered_rows

SAMPLE = """{"id": "q1", "question": "Which moon?", "answers": ["Titan", "Saturn VI"]}
{"id": "q2", "question": "Which sea?", "answer": "Black Sea"}
"""


def recognises(path: Path) -> bool:
    """Return whether one of the first rows has a question, none has the text of a corpus row, and no other format fits the
    file better."""
    first = first_rows(path) if path.is_file() and not columnar_kind(path) else []
    names = [set(map(normal, row)) for row in first]
    if not any(row & {*QUESTION} for row in names):
        return False
    if any("text" in row and not row & {*GOLD} for row in names):
        return False
    if any("input" in row for row in first) and not has_other_gold(first):
        return False
    return not any(matching_formats(DATASETS, path, without="jsonl"))


@DATASETS.register(
    "jsonl",
    recognises=recognises,
    rows=numbered_rows,
    fields=read_row,
    columns=True,
    sample={"questions.jsonl": SAMPLE},
)
def read_jsonl(source: Source) -> Iterator[tuple[int, Record]]:
    """JSON lines with question, and optionally answer or answers, id and page_id."""
    for line, number, row in numbered_rows(source):
        try:
            yield line, read_row(row, number).record
        except NoValueError as error:
            source.bad(line, str(error))
