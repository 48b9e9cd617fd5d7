"""A corpus in one chunking, cut once and kept in ``<workspace>/cache/passages/``."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.disk import unwritten
from rallebench.core.events import mapped
from rallebench.core.files import read_json, write_json
from rallebench.core.folders import beside
from rallebench.core.sources import files_in
from rallebench.core.types import digest
from rallebench.corpora.chunking import Chunking
from rallebench.corpora.imported import is_imported, read_card, store_corpus
from rallebench.corpora.page_maps import read_page_map
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.vectors import Building

CUT = "cut.json"


@dataclass(frozen=True, slots=True)
class Cut:
    """A corpus in one chunking: ``folder`` is a passage store of ``passages``, ``sha256`` the corpus's, as in a
    manifest of an index over it."""

    folder: Path
    passages: int
    sha256: str


def cut(
    place: Path,
    corpus: Path,
    chunking: Chunking | None,
    form: str = "",
    page_map: Path | None = None,
) -> Generator[Building, None, Cut]:
    """Yield progress, return the passages, kept in a folder of ``place``.

    ``corpus``: a file or folder of documents, an imported corpus, or an index. Raises BadFileError for one that
    cannot be read, DiskError.
    """
    started = time.perf_counter()
    key = _key(corpus, chunking, form, page_map)
    if not (place / key / CUT).exists():
        pages = read_page_map(page_map) if page_map else None
        try:
            with beside(place, key) as half:
                storing = store_corpus(half, corpus, pages, chunking, form=form)
                count, sha = yield from storing_progress("cutting the corpus", storing, started)
                told = {"corpus": corpus.name, "chunking": chunking and chunking.as_json()}
                write_json(half / CUT, {"passages": count, "sha256": sha, **told})
                with contextlib.suppress(OSError):  # another process was faster; both are the same
                    os.rename(half, place / key)
        except OSError as error:
            raise unwritten("the passages", place / key, error) from error
    return _read(place / key)


def kept(
    place: Path,
    corpus: Path,
    chunking: Chunking | None,
    form: str = "",
    page_map: Path | None = None,
) -> Cut | None:
    """The same if it is there already; None if not, and nothing is read for it."""
    folder = place / _key(corpus, chunking, form, page_map)
    return _read(folder) if (folder / CUT).exists() else None


def _key(corpus: Path, chunking: Chunking | None, form: str, page_map: Path | None) -> str:
    return digest([_identity(corpus, page_map), form, chunking and chunking.as_json()])[:24]


def _read(folder: Path) -> Cut:
    value = read_json(folder / CUT)
    return Cut(folder, int(value["passages"]), str(value["sha256"]))


def storing_progress(
    stage: str, storing: Generator[tuple[int, float], None, tuple[int, str]], started: float
) -> Generator[Building, None, tuple[int, str]]:
    """The steps of ``store_corpus`` as progress of a stage that began at ``started`` (``time.perf_counter``).

    The share of the bytes that are read tells about how many passages there will be.
    """

    def progress(step: tuple[int, float]) -> Building:
        count, share = step
        total = round(count / share) if share else 0
        return Building(stage, count, total, time.perf_counter() - started)

    return mapped(storing, progress)


def _identity(corpus: Path, page_map: Path | None) -> list[Any]:
    """What changes when a corpus does: the sha256 where it has one, else its files' sizes and times."""
    pages = _stamps(page_map) if page_map else []
    if is_imported(corpus):
        return [read_card(corpus).sha256, pages]
    if is_index(corpus):
        return [read_manifest(corpus).corpus_sha256, pages]
    return [_stamps(corpus), pages]


def _stamps(path: Path) -> list[Any]:
    return [
        (str(file.absolute()), file.stat().st_size, file.stat().st_mtime_ns)
        for file in files_in(path)
    ]


def is_index(path: Path) -> bool:
    """Whether ``path`` is the folder of an index."""
    return (path / "manifest.json").is_file()
