"""Questions as CSV with a header row: ``question``, and optionally an answer, ``id`` and a gold page (``fields`` has the names).

A cell may hold a list of accepted answers, or several with ``|`` between them. Without an id column a row's number (from 1)
is its id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rallebench.core.sources import Source, named
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._values import NoValueError
from rallebench.datasets.fields import QUESTION, RowOfFields, normal, read_row


def fields_of(row: Mapping[str, object], number: int) -> RowOfFields:
    """A row of a table by the names of its columns."""
    return read_row(row, number, cells=True)


def rows(source: Source) -> Iterator[tuple[int, int, dict[str, str]]]:
    """(first line, number from 1, column → cell) of each row. Raises BadFileError for a header without a question."""

    def check(line: int, columns: list[str]) -> None:
        source.needs_column(QUESTION, "dataset", "id,question,answer")(
            line, [normal(column) for column in columns]
        )

    return source.named_rows(check)


@DATASETS.register(
    "csv",
    recognises=named(".csv"),
    rows=rows,
    fields=fields_of,
    sample={"questions.csv": "id,question,answer\nq1,Which moon?,Titan\nq2,Which sea?,Black Sea\n"},
)
def read_csv(source: Source) -> Iterator[tuple[int, Record]]:
    """CSV with a header row that names question, and optionally answer, id and page_id."""
    for line, number, row in rows(source):
        try:
            yield line, fields_of(row, number).record
        except NoValueError as error:
            source.bad(line, str(error))
