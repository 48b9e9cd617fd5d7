"""From the records of a file to checked examples: ids are distinct, every record is in KILT's form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source
from rallebench.core.types import Example, Question
from rallebench.datasets.kilt import read_gold, record_id, record_input


def examples(source: Source, records: Iterable[tuple[int, dict[str, Any]]]) -> Iterator[Example]:
    """The examples of (line, record in KILT's form); a record that is wrong is a bad row of ``source``."""
    seen: dict[str, int] = {}
    for line, record in records:
        where = source.where(line)
        try:
            qid = record_id(record, where)
            if qid in seen:
                raise BadFileError(
                    f"{where} repeats the id {qid!r} of line {seen[qid]}; every question needs its own."
                )
            example = Example(
                Question(qid, record_input(record, where)), read_gold(record, where), record
            )
        except BadFileError as error:
            source.problems.add(line, str(error))
            continue
        seen[qid] = line
        yield example
