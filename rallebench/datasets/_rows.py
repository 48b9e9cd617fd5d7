"""JSON-lines rows with line numbers, from a plain or a gzipped file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rallebench.core.sources import Source


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) of a JSON-lines file; gzip is recognised by its first bytes.

    Blank lines are skipped. Raises BadFileError for a file or line that cannot be read.
    """
    yield from Source(path).objects()
