"""Vectors → neighbours. One file each registers a class that builds and opens vector indexes.

It is registered with a form (what ``build`` takes) and the traits below, and is an index kind
(``retrievers.INDEX_KINDS``) that needs an encoder.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rallebench.core.registry import Registry
from rallebench.core.settings import Setting

Vectors = NDArray[np.float32]
Neighbours = tuple[NDArray[np.float32], NDArray[np.int64]]
Progress = tuple[int, int]
"""Vectors that are in, and all of them."""

Build = Generator[Progress, None, dict[str, Any]]
"""A build: its progress, then the settings used."""


class VectorIndex(Protocol):
    """``exact``: whether a smaller k is always a prefix of a larger one. Safe for several threads."""

    exact: bool

    def search(self, vectors: Vectors, k: int, *_: Any, **knobs: Any) -> Neighbours:
        """Inner-product search: (q, dim) → scores (q, k) best first, rows (q, k), −1 = none.

        ``knobs`` are those of the kind, by name, checked by the caller; what is not given has its default.
        """
        ...

    def close(self) -> None:
        """Let go of files and memory."""
        ...


class VectorIndexKind(Protocol):
    """A class that builds and opens indexes; most are the class of the index itself."""

    def build(self, folder: Path, vectors: Any, *_: Any, **settings: Any) -> Build:
        """Write the index of float32 (n, dim), n ≥ 1, into ``folder``; return the settings used.

        ``vectors`` may be memory-mapped: it is read piece by piece. Closing the generator stops the
        build; what it wrote into ``folder`` is then worthless. Raises BackendError for vectors
        that hold a value that is not a number.
        """
        ...

    def load(self, folder: Path) -> VectorIndex:
        """Open the index in ``folder``. Raises BadFileError if its files are damaged."""
        ...


INDEX_TRAITS = {
    "search_form": "the form of what a search takes, beside the query and k",
    "packages": "the packages whose version matters",
    "check": "(settings) → None: raises what the build would raise after hours of encoding",
    "memory_factors": "memory (while building, while searching) as multiples of the index's own files",
    "memory_file": "the one file that is in memory while searching, where the others stay on disk",
    "fixed_files": "files whose size does not depend on the number of passages",
    "vector_bytes": "bytes that the index writes for each dimension of a vector; default 4",
    "remote": "(settings) → whether a server holds the index, so that nothing is measured here",
}

VECTOR_INDEXES: Registry[VectorIndexKind] = Registry(
    "vector index", "rallebench.vector_indexes", traits=INDEX_TRAITS
)


def complete_settings(form: Mapping[str, Setting], settings: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a form, the defaults included."""
    return {name: settings.get(name, setting.default) for name, setting in form.items()}
