"""Questions with gold. A dataset format is a reader ``(source) -> Iterator[(line, record)]``, one per file.

A reader streams and reports every row that it cannot use to ``source.bad`` or ``source.problems``. It yields records in
KILT's format, which ``kilt.examples`` checks and converts to examples. A file of any format can be run and imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rallebench.core.registry import Registry
from rallebench.core.sources import Source

Record = dict[str, Any]
"""One row of a file as JSON gives it."""
Read = Callable[[Source], Iterator[tuple[int, Record]]]

DATASETS: Registry[Read] = Registry(
    "dataset format",
    "rallebench.datasets",
    traits={
        "recognises": "(path) → whether it looks like this format; without it, the format must be named",
        "rows": "(source) → (line, number, row) as they stand, of a format whose fields have no fixed names",
        "fields": "(row, number) → RowOfFields, of such a format",
        "sample": "a small valid file, name → text; names with a common folder make a folder",
    },
)
