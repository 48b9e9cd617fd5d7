"""Questions as CSV or TSV with a header row: ``question``, and optionally an answer, ``id`` and a gold page (``fields`` lists
the names); or without a header, each row a question and a list of its answers, as in DPR's files.

A cell may contain a list of accepted answers, or several separated by ``|``. Without an id column, the id is the row's
number (from 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Problems, Source, has_suffix
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._values import NoValueError, parse
from rallebench.datasets.fields import QUESTION, RowOfFields, normal, read_row


def read_fields(row: Mapping[str, object], number: int) -> RowOfFields:
    """Read a row of a table by its column names."""
    return read_row(row, number, cells=True)


def rows(source: Source) -> Iterator[tuple[int, int, dict[str, str]]]:
    """Yield (first line, number from 1, column → cell) of each row. Raises BadFileError for a header without a question."""
    if source.columns is None and _lacks_header(source.path):
        return _pairs(source)

    def check(line: int, columns: list[str]) -> None:
        source.needs_column(QUESTION, "dataset", "id,question,answer")(
            line, [normal(column) for column in columns]
        )

    return source.named_rows(check)


def _pairs(source: Source) -> Iterator[tuple[int, int, dict[str, str]]]:
    for number, (line, cells) in enumerate(source.table(), 1):
        if len(cells) == 2:
            yield line, number, {"question": cells[0].strip(), "answers": cells[1].strip()}
        else:
            source.bad(
                line, f" has {len(cells)} fields where a question and its answers are expected."
            )


def _first_row(path: Path) -> list[str]:
    try:
        table = Source(path, Problems(skip=True), peeking=True).table()
        return next((cells for _, cells in table), [])
    except BadFileError:
        return []


def _lacks_header(path: Path) -> bool:
    """Return whether the first row consists of a question and a list of answers."""
    row = _first_row(path)
    return len(row) == 2 and normal(row[0]) not in QUESTION and isinstance(parse(row[1]), list)


def _recognises(path: Path) -> bool:
    """Return whether a file is CSV, or tab-separated with a first row that names a question column or has a question with
    its answers.
    """
    if not has_suffix(".tsv", ".tab")(path) or not path.is_file():
        return has_suffix(".csv")(path)
    return any(normal(name) in QUESTION for name in _first_row(path)) or _lacks_header(path)


@DATASETS.register(
    "csv",
    recognises=_recognises,
    rows=rows,
    fields=read_fields,
    columns=True,
    sample={"questions.csv": "id,question,answer\nq1,Which moon?,Titan\nq2,Which sea?,Black Sea\n"},
)
def read_csv(source: Source) -> Iterator[tuple[int, Record]]:
    """CSV with a header row that names question, and optionally answer, id and page_id."""
    for line, number, row in rows(source):
        try:
            yield line, read_fields(row, number).record
        except NoValueError as error:
            source.bad(line, str(error))
