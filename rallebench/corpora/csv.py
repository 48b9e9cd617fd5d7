"""CSV with a header row: ``text``, and optionally ``id``, ``title`` and ``page_id``.

The text may be called ``contents`` or ``content``. Without an id column a row's number (from 1) is its id.
Fields may hold line ends; other columns are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator

from rallebench.core.sources import Source, named, value_of
from rallebench.corpora import CORPORA, ID_NAMES, PAGE_NAMES, TEXT_NAMES, CorpusRow

SAMPLE = (
    "id,text,title\nd1,Titan is a moon of Saturn.,Titan\nd2,The Danube flows into the Black Sea.,\n"
)


@CORPORA.register("csv", recognises=named(".csv"), sample={"corpus.csv": SAMPLE})
def read_csv(source: Source) -> Iterator[CorpusRow]:
    """CSV with a header row that names text, and optionally id, title and page_id."""
    check = source.needs_column(TEXT_NAMES, "corpus", "id,text,title")
    for line, number, row in source.named_rows(check):
        yield CorpusRow(
            line,
            value_of(row, ID_NAMES, str(number)),
            value_of(row, TEXT_NAMES),
            value_of(row, ("title",)),
            value_of(row, PAGE_NAMES),
        )
