"""The labels that people gave to the answers of a dataset, read once per version of their file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from rallebench.core.labels import LabelBook
from rallebench.datasets.label_file import label_file, read_labels
from rallebench.engine.store import RunFolder


def read_book(workspace: Path, dataset: str) -> LabelBook:
    """Return the labels of a dataset; ``workspace``: the folder that holds ``labels/`` and ``runs/``."""
    path = label_file(workspace, dataset)
    try:
        version = path.stat()
    except OSError:
        return LabelBook()
    return _book(path, version.st_mtime_ns, version.st_size)


@lru_cache(maxsize=16)
def _book(path: Path, time_ns: int, size: int) -> LabelBook:
    return read_labels(path)


def book_of_run(run: RunFolder) -> LabelBook:
    """Return the labels of a run's dataset."""
    return read_book(run.path.parents[1], run.description().dataset)
