"""Questions with gold. A dataset format is a reader ``(source) -> Iterator[Example]``, one file each.

A reader streams and hands every row that it cannot use to ``source.bad`` or ``source.problems``. The ``record`` of its
examples is in KILT's form; ``kilt.examples`` makes checked examples of such records. A file of any format can be run
and imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rallebench.core.registry import Registry
from rallebench.core.sources import Source
from rallebench.core.types import Example

Read = Callable[[Source], Iterator[Example]]

DATASETS: Registry[Read] = Registry(
    "dataset format",
    "rallebench.datasets",
    traits={
        "recognises": "(path) → whether it looks like this format; without it, the format must be named",
        "sample": "a small valid file, name → text; names with a common folder make a folder",
    },
)

Record = dict[str, Any]
"""One row of a file as JSON gives it."""
