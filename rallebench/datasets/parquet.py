"""Questions as Parquet, or as Arrow (Feather, a file or a stream): columns with the names of ``fields``, such as ``question``
and ``answers``; also a folder of such files.

SQuAD's ``answers``, a struct of lists, is read as its JSON is. Without an id column, the id is the row's number (from 1).
Files with the columns of a published set are read in its format.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rallebench.core.columnar import ARROW, PARQUET, column_names, columnar_kind, columnar_sample
from rallebench.core.columns import no_column
from rallebench.core.json_values import JsonObject
from rallebench.core.readers import matching_formats
from rallebench.core.sources import Source, table_files
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._values import NoValueError
from rallebench.datasets.fields import QUESTION, normal, read_row

ROWS: tuple[JsonObject, ...] = (
    {"id": "q1", "question": "Which moon?", "answers": {"text": ["Titan", "Saturn VI"]}},
    {"id": "q2", "question": "Which sea?", "answers": {"text": ["Black Sea"]}},
)


def _recognises(path: Path, kind: str) -> bool:
    """Return whether a file is of this kind and no format with names of its own fits it."""
    return columnar_kind(path) == kind and not any(matching_formats(DATASETS, path, without=kind))


def rows(source: Source) -> Iterator[tuple[int, int, Record]]:
    """Yield (row, row, object). Raises BadFileError for a file without a column that may hold the question."""
    for file in table_files(source.path) or [source.path]:
        names = column_names(file)
        if source.columns:
            names = source.columns.fields(names)
        if not {*map(normal, names)} & {*QUESTION}:
            raise no_column(file, names, "question")
    return ((number, number, row) for number, row in source.objects())


@DATASETS.register(
    ARROW,
    about="Arrow and Feather files with the columns of parquet.",
    recognises=partial(_recognises, kind=ARROW),
    rows=rows,
    fields=read_row,
    columns=True,
    sample={"questions.arrow": columnar_sample(ARROW, ROWS)},
)
@DATASETS.register(
    PARQUET,
    about="Parquet files with question, and optionally answers, id and page_id.",
    recognises=partial(_recognises, kind=PARQUET),
    rows=rows,
    fields=read_row,
    columns=True,
    sample={"questions.parquet": columnar_sample(PARQUET, ROWS)},
)
def read_table(source: Source) -> Iterator[tuple[int, Record]]:
    """Yield (row, record in KILT's format)."""
    for line, number, row in rows(source):
        try:
            yield line, read_row(row, number).record
        except NoValueError as error:
            source.bad(line, str(error))
