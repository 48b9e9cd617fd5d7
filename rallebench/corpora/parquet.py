"""Parquet, or Arrow (Feather, a file or a stream): columns ``text``, and optionally ``id``, ``title``, ``page_id`` and ``url``; also
a folder of such files.

The text may be called ``contents`` or ``content``. Without an id column, the id is the row's number (from 1). Other columns
are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rallebench.core.columnar import ARROW, PARQUET, column_names, columnar_kind, columnar_sample
from rallebench.core.columns import no_column
from rallebench.core.json_values import JsonObject
from rallebench.core.sources import Source, table_files
from rallebench.corpora import CORPORA, TEXT_NAMES, CorpusRow
from rallebench.corpora._records import NAMES, read_passage

ROWS: tuple[JsonObject, ...] = (
    {"id": "d1", "text": "Titan is a moon of Saturn.", "title": "Titan"},
    {"id": "d2", "text": "The Danube flows into the Black Sea.", "title": ""},
)


def _recognises(path: Path, kind: str) -> bool:
    return columnar_kind(path) == kind


@CORPORA.register(
    ARROW,
    about="Arrow and Feather files with the columns of parquet; also a folder of such files.",
    recognises=partial(_recognises, kind=ARROW),
    columns=True,
    sample={"corpus.arrow": columnar_sample(ARROW, ROWS)},
)
@CORPORA.register(
    PARQUET,
    about="Parquet files with text, and optionally id, title, page_id and url; also a folder of such files.",
    recognises=partial(_recognises, kind=PARQUET),
    columns=True,
    sample={"corpus.parquet": columnar_sample(PARQUET, ROWS)},
)
def read_table(source: Source) -> Iterator[CorpusRow]:
    """Yield the passages of a file or of a folder's files; rows are numbered across the folder."""
    for file in table_files(source.path) or [source.path]:
        names = column_names(file)
        if source.columns:
            names = source.columns.fields(names)
        if not {*TEXT_NAMES} & {*names}:
            raise no_column(file, names, "text")
    for number, row in source.objects(names=NAMES):
        if passage := read_passage(source, number, row, row_id=str(number)):
            yield passage
