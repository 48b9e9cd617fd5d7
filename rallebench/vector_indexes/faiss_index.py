"""Common part of the Faiss kinds: import, file errors as sentences, explicit number of threads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rallebench.core.settings import Setting
from rallebench.core.versions import optional
from rallebench.vector_indexes import Vectors
from rallebench.vector_indexes.stored_vectors import damaged_file, write_error

THREADS = Setting(
    int, 0, 0, 1024, about="threads while building; 0 = one per core, 1 = reproducible graph"
)
PACKAGES = ("faiss-cpu", "numpy")


def faiss() -> Any:
    """Return the package, imported on first use."""
    return optional("faiss", "faiss-cpu", "and this index needs it")


class FaissIndex:
    """An index in ``file`` that Faiss holds in memory."""

    file: str

    def __init__(self, index: Any) -> None:
        self._index = index

    @classmethod
    def load(cls, folder: Path) -> Any:
        return cls(read(folder / cls.file))

    def close(self) -> None:
        self._index = None


def cores(threads: int) -> int:
    """Return ``threads``; if 0, the number of processors that this process may use."""
    if threads:
        return threads
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Let Faiss use ``count`` threads (0 = one per core) in this thread, until the end of the block."""
    package = faiss()
    before = package.omp_get_max_threads()
    package.omp_set_num_threads(cores(count))
    try:
        yield
    finally:
        package.omp_set_num_threads(before)


def adding(index: Any, count: int) -> Callable[[int, Vectors], None]:
    """Return the function that adds a piece to a Faiss index with ``count`` threads; see ``stored_vectors.add_in_pieces``."""

    def add(_: int, piece: Vectors) -> None:
        with threads(count):
            index.add(piece)

    return add


def write(index: Any, path: Path) -> None:
    """Write an index file. Raises BackendError if that fails, as on a full disk."""
    try:
        faiss().write_index(index, str(path))
    except RuntimeError as error:
        raise write_error(path, " ".join(str(error).split())[-120:]) from error


def read(path: Path) -> Any:
    """Read an index file. Raises BadFileError if it is missing, truncated or damaged."""
    try:
        return faiss().read_index(str(path))
    except (RuntimeError, MemoryError) as error:
        raise damaged_file(path, error) from None
