"""CSV with a header row: ``text``, and optionally ``id``, ``title`` and ``page_id``.

The text may be called ``contents`` or ``content``. Without an id column, the id is the row's number (from 1).
Fields may contain line ends; other columns are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rallebench.core.sources import Source, has_suffix
from rallebench.corpora import CORPORA, TEXT_NAMES, CorpusRow
from rallebench.corpora._collections import each_file, row_id
from rallebench.corpora._records import read_passage

SAMPLE = (
    "id,text,title\nd1,Titan is a moon of Saturn.,Titan\nd2,The Danube flows into the Black Sea.,\n"
)


@CORPORA.register("csv", recognises=has_suffix(".csv"), columns=True, sample={"corpus.csv": SAMPLE})
def read_csv(source: Source) -> Iterator[CorpusRow]:
    """CSV with a header row that names text, and optionally id, title, page_id and url; or a folder of such files."""
    return each_file(source, partial(_rows, root=source.path), ".csv")


def _rows(source: Source, root: Path) -> Iterator[CorpusRow]:
    check = source.needs_column(TEXT_NAMES, "corpus", "id,text,title")
    for line, number, row in source.named_rows(check):
        own_id = row_id(root, source.path, number)
        if passage := read_passage(source, line, row, row_id=own_id):
            yield passage
