"""Questions with gold. A dataset format is a reader ``(source) -> Iterator[(line, record)]``, one per file.

A reader streams, and reports every unusable row to ``source.bad`` or ``source.problems``. It yields records in KILT's
format, which ``kilt.examples`` checks and converts to examples. A file of any format can be run and imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rallebench.core.registry import Registry
from rallebench.core.sources import Source
from rallebench.core.types import Json

Record = Json
"""One row of a file as parsed JSON."""
Read = Callable[[Source], Iterator[tuple[int, Record]]]

DATASETS: Registry[Read] = Registry(
    "dataset format",
    "rallebench.datasets",
    expects="a reader (source) → (line, record in KILT's format) of each question",
    traits={
        "recognises": "(path) → True if the file looks like this format; without it, the format must be named",
        "rows": "(source) → (line, number, row) as stored, for a format without fixed field names",
        "fields": "(row, number) → RowOfFields, for such a format",
        "columns": "True if the columns of a file may be given roles, because they have names and an order of their own",
        "sample": "a small valid file, name → text, or a function that makes the bytes; names with a common folder make a folder",
    },
)
