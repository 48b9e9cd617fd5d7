"""Vector indexes. Each file registers one class that builds and opens them.

The class is registered with a form (the settings of ``build``) and the traits below, and becomes an
index kind (``retrievers.INDEX_KINDS``) that needs an encoder.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rallebench.core.registry import Registry
from rallebench.core.settings import Setting
from rallebench.core.types import Json

if TYPE_CHECKING:  # a list of names imports no numpy
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Neighbours = tuple[NDArray[np.float32], NDArray[np.int64]]
else:
    Vectors = Neighbours = Any
Progress = tuple[int, int]
"""Number of vectors added, and number of all vectors."""

Build = Generator[Progress, None, dict[str, Any]]
"""A build: yields progress, returns the settings used."""


class VectorIndex(Protocol):
    """An open index. ``exact``: True if a smaller k is always a prefix of a larger one. Thread-safe."""

    exact: bool

    def search(self, vectors: Vectors, k: int, *_: Any, **knobs: Any) -> Neighbours:
        """Search by inner product: (q, dim) → scores (q, k) best first, rows (q, k), −1 = none.

        ``knobs``: search settings of the kind, checked by the caller; missing ones have their default.
        """
        ...

    def close(self) -> None:
        """Release files and memory."""
        ...


class VectorIndexKind(Protocol):
    """A class that builds and opens indexes; usually the class of the index itself."""

    def build(self, folder: Path, vectors: Any, *_: Any, **settings: Any) -> Build:
        """Write the index of float32 (n, dim), n ≥ 1, into ``folder``; return the settings used.

        ``vectors`` may be memory-mapped and is read in pieces. Closing the generator stops the build
        and leaves ``folder`` incomplete. Raises BackendError for vectors with a value that is not a
        number.
        """
        ...

    def load(self, folder: Path) -> VectorIndex:
        """Open the index in ``folder``. Raises BadFileError if its files are damaged."""
        ...


INDEX_TRAITS = {
    "search_form": "form of the search settings",
    "packages": "packages whose version affects the index",
    "check": "(settings) → None: raises early the errors that a build would raise after hours of encoding",
    "memory_bound": "function of the settings and the number of passages: the most bytes of memory while building",
    "memory_factors": "memory (while building, while searching) as multiples of the size of the index's own files",
    "memory_file": "the one file held in memory while searching, if the others stay on disk",
    "fixed_files": "files whose size does not depend on the number of passages",
    "vector_bytes": "bytes written per dimension of a vector; default 4",
    "remote": "(settings) → True if a server holds the index, so that nothing is measured here",
}

VECTOR_INDEXES: Registry[VectorIndexKind] = Registry(
    "vector index",
    "rallebench.vector_indexes",
    expects="a VectorIndexKind: build(folder, vectors, **settings) and load(folder)",
    has=("build", "load"),
    traits=INDEX_TRAITS,
    required={"packages": ()},
)


def complete_settings(form: Mapping[str, Setting], settings: Json) -> dict[str, Any]:
    """Return all settings of a form, including defaults."""
    return {name: settings.get(name, setting.default) for name, setting in form.items()}
