"""Questions as JSON lines with the names that most files use: ``question``, and optionally ``answer`` or ``answers``,
``id`` and ``page_id``.

``{"question": "Which moon?", "answers": ["Titan", "Saturn VI"]}``; without an id a row's number (from 1) is its id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rallebench.core.sources import Source
from rallebench.datasets import DATASETS, Record
from rallebench.datasets.csv import ANSWER, ID, PAGE
from rallebench.datasets.kilt import first_rows

QUESTION = ("question", "query")
SAMPLE = """{"id": "q1", "question": "Which moon?", "answers": ["Titan", "Saturn VI"]}
{"id": "q2", "question": "Which sea?", "answer": "Black Sea"}
"""


def recognises(path: Path) -> bool:
    """Whether one of the first rows names a question as most files do, none does as KILT or a corpus, and no other format
    knows the file better."""
    rows = first_rows(path) if path.is_file() else []
    named = any(isinstance(row.get(key), str) for row in rows for key in QUESTION)
    if not named or any(row.keys() & {"input", "text"} for row in rows):
        return False
    others = (DATASETS.entry(name).traits for name in DATASETS.names() if name != "jsonl")
    return not any(traits["recognises"](path) for traits in others if "recognises" in traits)


def texts(value: Any) -> list[str] | None:
    """A text or a number, or a list of them, as texts; None for anything else.

    >>> texts("Titan"), texts([1898, "1898年"]), texts(None), texts({"text": "Titan"})
    (['Titan'], ['1898', '1898年'], [], None)
    """
    values = value if isinstance(value, list) else [] if value is None else [value]
    if any(isinstance(x, bool) or not isinstance(x, (str, int, float)) for x in values):
        return None
    return [str(x) for x in values]


def first_of(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the first name that the row has, None if it has none."""
    return next((row[name] for name in names if row.get(name) is not None), None)


@DATASETS.register("jsonl", recognises=recognises, sample={"questions.jsonl": SAMPLE})
def read_jsonl(source: Source) -> Iterator[tuple[int, Record]]:
    """JSON lines with question, and optionally answer or answers, id and page_id."""
    for number, (line, row) in enumerate(source.objects(), start=1):
        question = first_of(row, QUESTION)
        answers, pages = texts(first_of(row, ANSWER)), texts(first_of(row, PAGE))
        if not isinstance(question, str) or not question.strip():
            source.bad(line, " has no 'question'; it should hold the text of the question.")
            continue
        if answers is None or pages is None:
            source.bad(line, ": answers and pages should be a text or a list of texts.")
            continue
        output: list[Record] = [{"answer": answer} for answer in answers]
        if pages:
            provenance = {"provenance": [{"wikipedia_id": page} for page in pages]}
            output = [{**element, **provenance} for element in output or [{}]]
        qid = first_of(row, ID)
        yield line, {"id": number if qid is None else qid, "input": question, "output": output}
