"""Questions as CSV with a header row: ``question``, and optionally ``answer``, ``id`` and ``page_id``.

An answer may be a JSON list of accepted answers. Without an id column a row's number (from 1) is its id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from rallebench.core.sources import Source, named, value_of
from rallebench.datasets import DATASETS, Record

QUESTION = ("question", "input", "query")
ANSWER = ("answer", "answers", "output")
ID = ("id", "qid", "_id")
PAGE = ("page_id", "wikipedia_id")


@DATASETS.register(
    "csv",
    recognises=named(".csv"),
    sample={"questions.csv": "id,question,answer\nq1,Which moon?,Titan\nq2,Which sea?,Black Sea\n"},
)
def read_csv(source: Source) -> Iterator[tuple[int, Record]]:
    """CSV with a header row that names question, and optionally answer, id and page_id."""
    check = source.needs_column(QUESTION, "dataset", "id,question,answer")
    for line, number, row in source.named_rows(check):
        output: list[Record] = [{"answer": text} for text in _answers(value_of(row, ANSWER))]
        if page := value_of(row, PAGE):
            provenance = {"provenance": [{"wikipedia_id": page}]}
            output = [{**element, **provenance} for element in output or [{}]]
        qid = value_of(row, ID, str(number))
        yield line, {"id": qid, "input": value_of(row, QUESTION), "output": output}


def _answers(field: str) -> list[str]:
    """The accepted answers of a field.

    >>> _answers("Titan"), _answers('["Titan", "Saturn VI"]'), _answers("[sic] Titan"), _answers("")
    (['Titan'], ['Titan', 'Saturn VI'], ['[sic] Titan'], [])
    """
    if field.startswith("["):
        try:
            value = json.loads(field)
        except ValueError:
            return [field]
        if isinstance(value, list) and all(isinstance(text, (str, int, float)) for text in value):
            return [str(text) for text in value]
    return [field] if field else []
