"""What the Faiss kinds share: the import, files whose damage is said in a sentence, threads set on purpose."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rallebench.core.settings import Setting
from rallebench.core.versions import optional
from rallebench.vector_indexes import Vectors
from rallebench.vector_indexes.stored_vectors import damaged, unwritten

THREADS = Setting(
    int, 0, 0, 1024, about="threads while building; 0 = one a core, 1 = the same graph every time"
)
PACKAGES = ("faiss-cpu", "numpy")


def faiss() -> Any:
    """The package, imported when it is first needed."""
    return optional("faiss", "faiss-cpu", "and this index needs it")


class FaissIndex:
    """An index that Faiss holds in memory, from ``file``."""

    file: str

    def __init__(self, index: Any) -> None:
        self._index = index

    @classmethod
    def load(cls, folder: Path) -> Any:
        return cls(read(folder / cls.file))

    def close(self) -> None:
        self._index = None


def cores(threads: int) -> int:
    """``threads``, or as many as this process may use if that is 0."""
    if threads:
        return threads
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Let Faiss use ``count`` threads (0 = one a core) in this thread of ours, and as many as before after."""
    package = faiss()
    before = package.omp_get_max_threads()
    package.omp_set_num_threads(cores(count))
    try:
        yield
    finally:
        package.omp_set_num_threads(before)


def adding(index: Any, count: int) -> Callable[[int, Vectors], None]:
    """What adds a piece of vectors to a Faiss index with ``count`` threads; see ``_vectors.fed``."""

    def add(_: int, piece: Vectors) -> None:
        with threads(count):
            index.add(piece)

    return add


def write(index: Any, path: Path) -> None:
    """Write an index file; BackendError if the disk does not take it."""
    try:
        faiss().write_index(index, str(path))
    except RuntimeError as error:
        raise unwritten(path, " ".join(str(error).split())[-120:]) from error


def read(path: Path) -> Any:
    """The index of a file; BadFileError if it is missing, cut short or damaged."""
    try:
        return faiss().read_index(str(path))
    except (RuntimeError, MemoryError) as error:
        raise damaged(path, error) from None
