"""The rows of one JSON object of columns, ``{"query": {"0": "Who?"}, "answers": {"0": ["Ada"]}}``, of any size.

One column follows the other in such a file, so each is first written to a temporary file of its own, and then all are read side by
side: of a file of a gigabyte, one row is in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import zip_longest
from tempfile import TemporaryFile
from typing import IO

from rallebench.core.errors import BadFileError
from rallebench.core.json_lists import Broken, columns
from rallebench.core.sources import Source
from rallebench.core.streams import open_text
from rallebench.core.types import Json

MOST_COLUMNS = 100
"""Maximum number of columns, each of which is an open file."""


def column_rows(source: Source) -> Iterator[tuple[int, Json]]:
    """Yield (number from 1, row) of a source that is one object of columns. A row that cannot be read is a bad row.

    Raises BadFileError for a file that is cut off and for columns with different rows.
    """
    source.unit = "record"
    with ExitStack() as stack:
        files = _write_columns(source, stack)
        for file in files.values():
            file.seek(0)
        for number, lines in enumerate(zip_longest(*files.values()), 1):
            cells = [json.loads(line) if line else [None, None, ""] for line in lines]
            if len({key for key, _, _ in cells}) != 1:
                raise BadFileError(
                    f"{source.path}, {source.unit} {number}: the columns {', '.join(files)} have different rows; download or "
                    "copy the file again."
                )
            fault = next((fault for _, _, fault in cells if fault), "")
            if fault:
                source.bad(number, fault)
            else:
                yield number, {name: value for name, (_, value, _) in zip(files, cells)}
    source.done = source.total


def _write_columns(source: Source, stack: ExitStack) -> dict[str, IO[str]]:
    """Write each column to a temporary file, as lines of key, value and fault."""
    files: dict[str, IO[str]] = {}
    with open_text(source.path, source.encoding) as (handle, stream):
        for column, key, value in columns(handle):
            source.done = stream.taken // 2  # the other half of the work is to read the rows
            fault = value.fault if isinstance(value, Broken) else ""
            if not column:
                raise BadFileError(f"{source.path}{fault}")
            if column not in files:
                if len(files) == MOST_COLUMNS:
                    raise BadFileError(f"{source.path} has more than {MOST_COLUMNS} columns.")
                file = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - the stack closes it
                files[column] = stack.enter_context(file)
            cell = [key, None if fault else value, fault]
            files[column].write(json.dumps(cell) + "\n")
    return files
