"""CSV with a header row: ``text``, and optionally ``id``, ``title`` and ``page_id``.

The text may be called ``contents`` or ``content``. Without an id column, the id is the row's number (from 1).
Fields may contain line ends; other columns are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator

from rallebench.core.sources import Source, first_value, has_suffix
from rallebench.corpora import (
    CORPORA,
    ID_NAMES,
    PAGE_NAMES,
    TEXT_NAMES,
    URL_NAMES,
    CorpusRow,
    split_title,
)
from rallebench.corpora._collections import each_file

SAMPLE = (
    "id,text,title\nd1,Titan is a moon of Saturn.,Titan\nd2,The Danube flows into the Black Sea.,\n"
)


@CORPORA.register("csv", recognises=has_suffix(".csv"), sample={"corpus.csv": SAMPLE})
def read_csv(source: Source) -> Iterator[CorpusRow]:
    """CSV with a header row that names text, and optionally id, title, page_id and url; or a folder of such files."""
    return each_file(source, _rows, ".csv")


def _rows(source: Source) -> Iterator[CorpusRow]:
    check = source.needs_column(TEXT_NAMES, "corpus", "id,text,title")
    for line, number, row in source.named_rows(check):
        name = next(name for name in TEXT_NAMES if name in row)
        title, text = first_value(row, ("title",)), row[name]
        if name == "contents" and not title:
            title, text = split_title(text)
        doc_id = first_value(row, ID_NAMES, str(number))
        yield CorpusRow(
            line, doc_id, text, title, first_value(row, PAGE_NAMES), first_value(row, URL_NAMES)
        )
