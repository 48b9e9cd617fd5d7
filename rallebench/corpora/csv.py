"""CSV with a header row: ``text``, and optionally ``id``, ``title`` and ``page_id``.

The text may be called ``contents`` or ``content``. Without an id column a row's number (from 1) is its id.
Fields may hold line ends; other columns are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source
from rallebench.corpora import CORPORA, ID_NAMES, PAGE_NAMES, TEXT_NAMES, CorpusRow


def _recognises(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(".csv")


SAMPLE = (
    "id,text,title\nd1,Titan is a moon of Saturn.,Titan\nd2,The Danube flows into the Black Sea.,\n"
)


@CORPORA.register("csv", recognises=_recognises, sample={"corpus.csv": SAMPLE})
def read_csv(source: Source) -> Iterator[CorpusRow]:
    """CSV with a header row that names text, and optionally id, title and page_id."""
    rows = source.table()
    header = next(rows, None)
    if header is None:
        return
    names = [name.strip().lower() for name in header[1]]
    at_text = _first(names, TEXT_NAMES)
    if at_text is None:
        raise BadFileError(
            f"{source.where(header[0])} names the columns {', '.join(names)[:200]}, and none is 'text'; "
            "the first row of a CSV corpus names its columns, for example id,text,title."
        )
    at_id, at_title, at_page = (
        _first(names, accepted) for accepted in (ID_NAMES, ("title",), PAGE_NAMES)
    )
    for count, (number, fields) in enumerate(rows, 1):
        if len(fields) != len(names):
            source.bad(number, f" has {len(fields)} fields where the header names {len(names)}.")
            continue
        yield CorpusRow(
            number,
            str(count) if at_id is None else fields[at_id].strip(),
            fields[at_text].strip(),
            "" if at_title is None else fields[at_title].strip(),
            "" if at_page is None else fields[at_page].strip(),
        )


def _first(names: list[str], accepted: tuple[str, ...]) -> int | None:
    return next((names.index(name) for name in accepted if name in names), None)
