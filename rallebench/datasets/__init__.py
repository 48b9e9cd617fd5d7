"""Questions with gold. A dataset format is a reader ``(path) -> Iterator[Example]``, one file each.

A reader streams, checks every row, and raises BadFileError with the file and the line number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rallebench.core.registry import Registry
from rallebench.core.types import Example

DATASETS: Registry[Callable[..., Iterator[Example]]] = Registry(
    "dataset format",
    "rallebench.datasets",
    traits={
        "records": "(source) → (line, record in KILT's form)",
        "recognises": "(path) → whether it looks like this format",
        "suffixes": "how its files' names end",
    },
)

Record = dict[str, Any]
"""One row of a file as JSON gives it."""
