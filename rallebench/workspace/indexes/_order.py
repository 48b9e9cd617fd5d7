"""A build that was asked for."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rallebench.corpora.chunking import Chunking
from rallebench.corpora.reading import PageMap
from rallebench.workspace.indexes.importing import Foreign


@dataclass(slots=True)
class Order:
    """A build that was asked for and checked. ``needed``: bytes that it takes at least, known once the passages are."""

    target: Path
    corpus: Path
    kind: str
    form: str
    chunking: Chunking | None
    pages: PageMap | None
    settings: dict[str, Any]
    foreign: Foreign | None
    vectors: Path
    cut: Path | None = None
    started: float = field(default_factory=time.perf_counter)
    needed: int = 0

    @property
    def seconds(self) -> float:
        """Since the build began."""
        return time.perf_counter() - self.started
