"""Questions as CSV with a header row: ``question``, and optionally ``answer``, ``id`` and ``page_id``.

An answer may be a JSON list of accepted answers. Without an id column a row's number (from 1) is its id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source
from rallebench.core.types import Example
from rallebench.datasets import DATASETS
from rallebench.datasets.kilt import examples

QUESTION = ("question", "input", "query")
ANSWER = ("answer", "answers", "output")
ID = ("id", "qid", "_id")
PAGE = ("page_id", "wikipedia_id")


def recognises(path: Path) -> bool:
    """Whether ``path`` looks like CSV."""
    return path.name.lower().removesuffix(".gz").endswith(".csv")


def records(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, KILT record). Raises BadFileError if no column is the question."""
    rows = source.table()
    header = next(rows, None)
    if header is None:
        return
    names = [name.strip().lower() for name in header[1]]
    columns = [
        next((names.index(n) for n in known if n in names), None)
        for known in (QUESTION, ANSWER, ID, PAGE)
    ]
    if columns[0] is None:
        raise BadFileError(
            f"{source.where(header[0])} names the columns {', '.join(names)[:200]}, and none is 'question'; "
            "the first row of a CSV question set names its columns, for example id,question,answer."
        )
    for count, (line, fields) in enumerate(rows, 1):
        if len(fields) != len(names):
            source.bad(line, f" has {len(fields)} fields where the header names {len(names)}.")
            continue
        question, answer, qid, page = ("" if at is None else fields[at].strip() for at in columns)
        output: list[dict[str, Any]] = [{"answer": text} for text in _answers(answer)]
        if page:
            output = [
                {**element, "provenance": [{"wikipedia_id": page}]} for element in output or [{}]
            ]
        yield (
            line,
            {
                "id": qid if columns[2] is not None else str(count),
                "input": question,
                "output": output,
            },
        )


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


@DATASETS.register(
    "csv",
    recognises=recognises,
    sample={"questions.csv": "id,question,answer\nq1,Which moon?,Titan\nq2,Which sea?,Black Sea\n"},
)
def read_csv(source: Source) -> Iterator[Example]:
    """CSV with a header row that names question, and optionally answer, id and page_id."""
    yield from examples(source, records(source))
