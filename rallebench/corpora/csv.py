"""CSV with a header row: ``text``, and optionally ``id``, ``title`` and ``page_id``.

The text may be called ``contents`` or ``content``. Without an id column a row's number (from 1) is its id.
Fields may hold line ends; other columns are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source, value_of
from rallebench.corpora import CORPORA, ID_NAMES, PAGE_NAMES, TEXT_NAMES, CorpusRow


def _recognises(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(".csv")


SAMPLE = (
    "id,text,title\nd1,Titan is a moon of Saturn.,Titan\nd2,The Danube flows into the Black Sea.,\n"
)


@CORPORA.register("csv", recognises=_recognises, sample={"corpus.csv": SAMPLE})
def read_csv(source: Source) -> Iterator[CorpusRow]:
    """CSV with a header row that names text, and optionally id, title and page_id."""
    for line, number, row in source.named_rows(partial(_check, source)):
        yield CorpusRow(
            line,
            value_of(row, ID_NAMES, str(number)),
            value_of(row, TEXT_NAMES),
            value_of(row, ("title",)),
            value_of(row, PAGE_NAMES),
        )


def _check(source: Source, line: int, columns: list[str]) -> None:
    if not set(columns) & set(TEXT_NAMES):
        raise BadFileError(
            f"{source.where(line)} names the columns {', '.join(columns)[:200]}, and none is 'text'; "
            "the first row of a CSV corpus names its columns, for example id,text,title."
        )
