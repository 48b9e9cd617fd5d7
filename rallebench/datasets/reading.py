"""Reading of datasets of any format: the format is recognised, every row checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from itertools import islice
from pathlib import Path

from rallebench.core.columns import Columns, list_columns, no_column
from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.readers import (
    matching_formats,
    read_rows,
    role_columns,
    table_form,
    table_rows,
)
from rallebench.core.sources import Problems, Source, stamps, table_files
from rallebench.core.types import Example, digest
from rallebench.datasets import DATASETS, Record
from rallebench.datasets.fields import ROLES, normal
from rallebench.datasets.kilt import examples

DEFAULT = "kilt"
FEW = 20
"""Rows by whose names a file of no known format is described."""


def dataset_form(path: Path) -> str:
    """Return the format of a dataset by its name and first rows; DEFAULT if no format recognises it.

    A folder of files with rows has the format of its first file.
    """
    path = Path(path)
    form = next(matching_formats(DATASETS, path), "")
    if not form and (files := table_files(path)):
        return dataset_form(files[0])
    return form or DEFAULT


def known_form(source: Source) -> str:
    """Return ``dataset_form``. Raises BadFileError, which lists the columns, for records of no known format."""
    form = dataset_form(source.path)
    if form == DEFAULT:
        names = list_columns(table_rows(source.path, FEW, source.encoding))
        if names and "input" not in names:
            raise no_column(source.path, names, "question")
    return form


def read_examples(path: Path, *, form: str = "", source: Source | None = None) -> Iterator[Example]:
    """Return the examples of a file or folder in order, streaming. ``form``: a name of DATASETS; '' recognises it.

    ``source``: tracks the bytes read and counts bad rows; without it, the first bad row raises BadFileError.
    """
    if not Path(path).exists():
        raise BadFileError(f"{path} does not exist.")
    source = source or Source(path)
    return examples(source, records(source, form or dataset_form(path)))


def records(source: Source, form: str) -> Iterator[tuple[int, Record]]:
    """Return (line, record in KILT's format) of each row in a format."""
    return read_rows(DATASETS[form], source, form)


def read_table(path: Path, columns: Columns, form: str = "") -> tuple[Example, ...]:
    """Return the examples of a table whose columns have these roles. Raises BadFileError for any bad row."""
    source = Source(path)
    source.columns = role_columns(source, columns, ROLES, normal)
    read = tuple(examples(source, records(source, table_form(DATASETS, path, form))))
    if not read:
        raise BadFileError(f"{path} contains no questions.")
    return read


def read_questions(
    path: Path, limit: int | None = None, form: str = "", *, sample_seed: int | None = None
) -> tuple[Example, ...]:
    """Return the first ``limit`` examples (all if None), after checking every row. ``form``: see ``read_examples``.

    ``sample_seed``: draws them at random instead, in a stable order: the sample of 30 is the beginning of that of 100, and a
    question keeps its rank when others are added. Raises BadFileError for any bad row, even beyond ``limit``, and for a file
    without questions.
    """
    if sample_seed is None:
        return _read(Path(path), tuple(stamps(Path(path))), limit, form)
    every = _read(Path(path), tuple(stamps(Path(path))), None, form)
    return select(every, limit, sample_seed=sample_seed)


def select(
    examples: Sequence[Example], limit: int | None = None, *, sample_seed: int | None = None
) -> tuple[Example, ...]:
    """Return the first ``limit`` examples (all if None), or those drawn by ``sample_seed``, as ``read_questions`` does."""
    if sample_seed is not None:
        examples = sorted(examples, key=lambda e: digest([sample_seed, e.question.qid]))
    return tuple(examples[:limit])


def answerable_questions(path: Path, form: str = "") -> tuple[Example, ...]:
    """Return all examples but those where declining is right, for programs that leave such questions out. Raises as
    ``read_questions`` does.
    """
    return tuple(e for e in read_questions(path, form=form) if not e.gold.unanswerable)


@lru_cache(maxsize=2)  # every variant of a sweep, and every change of its plan, reads the same file
def _read(
    path: Path, _stamps: tuple[object, ...], limit: int | None, form: str
) -> tuple[Example, ...]:
    """Return the examples; a changed file is read again."""
    rows = read_examples(path, form=form or known_form(Source(path)))
    try:
        first = tuple(rows if limit is None else islice(rows, min(limit, sys.maxsize)))
        for _ in rows:
            pass
    except BadFileError as error:
        if dataset_form(path) != DEFAULT or form or f"{path}, line 1 is not" not in str(error):
            raise
        raise BadFileError(
            f"{error} None of the formats {', '.join(DATASETS.names())} matches the file; "
            "convert its questions to one of them."
        ) from None
    if not first and limit != 0:
        raise BadFileError(f"{path} contains no questions.")
    return first


def gold_warnings(path: Path) -> tuple[str, ...]:
    """Return warnings about missing or uninformative gold; () for most sets. Reads the file once."""
    source = Source(path, Problems(skip=True))
    for _ in read_examples(path, source=source):
        pass
    return tuple(source.problems.warnings)


def pick_up(
    dataset: Path, page_ids: Set[str], number: int | None = None
) -> tuple[list[Record], int]:
    """Return the first ``number`` records (all if None) with a provenance page in ``page_ids``, and the number of records read
    (RaLLe's ``question_pickup``).

    Records are unchanged and in the file's order; nothing is read beyond the last one kept. ``page_ids`` are
    compared as text. Raises BadFileError for a bad row, UsageError for a number below 1 and for a corpus
    without page ids, which could not match anything.
    """
    if number is not None and number < 1:
        raise UsageError(
            f"The number of questions is {number}; ask for at least 1, or leave it out for all."
        )
    if not page_ids:
        raise UsageError(
            "The corpus has no page ids, so no question matches it; give its page map, too."
        )
    records: list[Record] = []
    read = 0
    for example in read_examples(dataset):
        read += 1
        if not example.gold.pages.isdisjoint(page_ids):
            records.append(dict(example.record))
            if len(records) == number:
                break
    return records, read
