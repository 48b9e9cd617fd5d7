"""The questions of a dataset that a part of its corpus can answer (RaLLe's ``question_pickup``)."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from rallebench.core.errors import UsageError
from rallebench.datasets import Record
from rallebench.datasets.reading import read_examples


def pick_up(
    dataset: Path, page_ids: Set[str], number: int | None = None
) -> tuple[list[Record], int]:
    """The first ``number`` records (all if None) with at least one provenance page in ``page_ids``, and how many were read.

    Records come back unchanged, in the file's order; nothing is read beyond the last one kept.
    ``page_ids`` are compared as text. Raises BadFileError for a bad row, UsageError for a number
    below 1 and for a corpus without page ids, which could keep nothing.
    """
    if number is not None and number < 1:
        raise UsageError(
            f"The number of questions is {number}; ask for at least 1, or leave it out for all."
        )
    if not page_ids:
        raise UsageError(
            "The corpus names no pages, so no question fits it; give its page map, too."
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
