"""Intermediate results of index builds in ``<workspace>/cache/``; all of them can be rebuilt.

``passages/KEY/``: a corpus in one chunking. ``texts/SHA256.npy``: the tables of texts (see ``by_text``).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.chunking import Chunking
from rallebench.core.errors import NotFoundError, RalleError, UsageError
from rallebench.core.events import Progress, map_events
from rallebench.core.experiments import IndexRecipe
from rallebench.core.files import disk_error, read_json, write_json
from rallebench.core.json_values import JsonValue
from rallebench.core.locks import alone, held
from rallebench.core.own_files import parse
from rallebench.core.parts import beside, delete, move_in
from rallebench.core.sources import stamps
from rallebench.core.strict_numbers import Count
from rallebench.core.types import Json, digest
from rallebench.corpora.cards import is_imported, read_card
from rallebench.corpora.imported import store_corpus
from rallebench.corpora.page_maps import read_page_map
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.recipes import is_index
from rallebench.workspace.paths import WorkspaceFolder

PASSAGES, TEXTS, CUT = "passages", "texts", "cut.json"
CUT_MEND = "delete its folder, and it is made again"
_GATE, _MARK = ".prepared.lock", ".prepared.{}.use"
_numbers = itertools.count()


# a corpus in one chunking


@dataclass(frozen=True, slots=True)
class ChunkedCorpus:
    """A corpus in one chunking. ``folder``: a store of ``passages`` passages; ``sha256``: the corpus's, as in the
    manifest of an index over it."""

    folder: Path
    passages: int
    sha256: str


def chunks_folder(cache: Path, recipe: IndexRecipe) -> Path:
    """Return the folder of an index's chunked passages."""
    chunking = None if recipe.chunking is None else recipe.chunking.to_json()
    key = digest([_identity(recipe.corpus, recipe.page_map), recipe.form, chunking])[:24]
    return cache / PASSAGES / key


def read_chunks(folder: Path) -> ChunkedCorpus | None:
    """Return the passages in ``folder``; None if there are none."""
    if not (folder / CUT).exists():
        return None
    stored = _read_cut(folder)
    return ChunkedCorpus(folder, stored.passages, stored.sha256)


@dataclass(frozen=True, slots=True)
class _Cut:
    """The file of a folder of chunked passages."""

    passages: Count
    sha256: str
    corpus: str = ""
    chunking: Json | None = None


def _read_cut(folder: Path) -> _Cut:
    path = folder / CUT
    return parse(read_json(path), _Cut, path, CUT_MEND)


def chunk_corpus(cache: Path, recipe: IndexRecipe) -> Generator[Progress, None, ChunkedCorpus]:
    """Yield progress, return the passages of an index, which are kept. Raises BadFileError for an unreadable corpus,
    DiskError.
    """
    folder = chunks_folder(cache, recipe)
    if existing := read_chunks(folder):
        return existing
    chunking = recipe.chunking
    pages = read_page_map(recipe.page_map) if recipe.page_map else None
    try:
        with beside(folder.parent, folder.name) as half:
            storing = store_corpus(half, recipe.corpus, pages, chunking, form=recipe.form)
            count, sha = yield from storing_progress("cutting the corpus", storing)
            source: dict[str, JsonValue] = {
                "passages": count,
                "sha256": sha,
                "corpus": recipe.corpus.name,
            }
            form = None if chunking is None else chunking.to_json()
            write_json(half / CUT, {**source, "chunking": form})
            move_in(half, folder)  # if another process was faster, both are the same
    except OSError as error:
        raise disk_error(folder, error, "the passages") from error
    return ChunkedCorpus(folder, count, sha)


def storing_progress(
    stage: str, storing: Generator[tuple[int, float], None, tuple[int, str]]
) -> Generator[Progress, None, tuple[int, str]]:
    """Yield the steps of ``store_corpus`` as progress of a stage.

    The expected number of passages is extrapolated from the share of bytes read.
    """
    started = time.perf_counter()

    def progress(step: tuple[int, float]) -> Progress:
        count, share = step
        total = round(count / share) if share else None
        return Progress("", count, total, stage, seconds=time.perf_counter() - started)

    return map_events(storing, progress)


def _identity(corpus: Path, page_map: Path | None) -> list[Any]:
    """Return the identity of a corpus: its sha256 if it has one, else the sizes and times of its files."""
    pages = stamps(page_map) if page_map else []
    if is_imported(corpus):
        return [read_card(corpus).sha256, pages]
    if is_index(corpus):
        return [read_manifest(corpus).corpus_sha256, pages]
    return [stamps(corpus), pages]


# users of the cache


@contextlib.contextmanager
def using(cache: Path) -> Iterator[None]:
    """Mark the cached passages and texts as in use, so that no process deletes them; several users are allowed."""
    from filelock import FileLock

    cache.mkdir(parents=True, exist_ok=True)
    mark = cache / _MARK.format(f"{os.getpid()}-{next(_numbers)}")
    with contextlib.ExitStack() as stack:
        with FileLock(cache / _GATE, thread_local=False):
            stack.enter_context(alone(mark, f"{mark} is in use."))
        yield


@contextlib.contextmanager
def _reserve_unused(cache: Path) -> Iterator[bool]:
    """Yield True if no process uses the cache; then none can start using it before the end of the block."""
    from filelock import FileLock

    with FileLock(cache / _GATE, thread_local=False):
        marks = {path: held(path) for path in cache.glob(_MARK.format("*"))}
        for path, in_use in marks.items():
            if not in_use:  # left by a process that died
                with contextlib.suppress(OSError):
                    path.unlink()
        yield not any(marks.values())


# the list of it


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A cache entry. ``key``: path below ``cache/``; ``corpus``: '' if unknown; ``chunking``: None for whole documents or if
    unknown; ``passages``: their number."""

    key: str
    corpus: str
    chunking: Chunking | None
    passages: int
    bytes: int

    @property
    def kind(self) -> str:
        return self.key.partition("/")[0]


def cache_entries(workspace: WorkspaceFolder) -> list[CacheEntry]:
    """Return all entries, the largest first; damaged ones with the facts that are known."""
    cache = workspace.cache
    sources: dict[str, tuple[str, Chunking | None]] = {}
    rows = []
    texts = list((cache / TEXTS).glob("[!.]*.npy"))
    for manifest in workspace.manifests().values() if texts else ():
        sources[manifest.corpus_sha256] = (manifest.corpus, _chunking(manifest.chunking))
    for folder in {path.parent for path in (cache / PASSAGES).glob(f"[!.]*/{CUT}")}:
        corpus, chunking, passages = "", None, 0
        with contextlib.suppress(RalleError, LookupError, TypeError, ValueError, AttributeError):
            stored = _read_cut(folder)
            corpus, chunking = stored.corpus, _chunking(stored.chunking)
            passages = stored.passages
            sources[stored.sha256] = (corpus, chunking)
        size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
        rows.append(CacheEntry(f"{PASSAGES}/{folder.name}", corpus, chunking, passages, size))
    for path in texts:
        size = path.stat().st_size
        source = sources.get(path.stem, ("", None))
        rows.append(CacheEntry(f"{TEXTS}/{path.name}", *source, max(size - 128, 0) // 24, size))
    return sorted(rows, key=lambda row: (-row.bytes, row.key))


def _chunking(value: Any) -> Chunking | None:
    return Chunking(**value) if value else None


def delete_stored(workspace: WorkspaceFolder, key: str) -> str:
    """Delete an entry; return a sentence about it. Raises NotFoundError for an unknown key, UsageError while an index is being
    prepared."""
    cache = workspace.cache
    row = next((row for row in cache_entries(workspace) if row.key == key), None)
    if row is None:
        raise NotFoundError(f"There is nothing {key!r} in {cache}.")
    path = cache / key
    with _reserve_unused(cache) as free:
        if not free:
            raise UsageError(
                f"{key} is in use: an index is being prepared from kept passages and texts; wait for its end or stop it."
            )
        delete(path)
    again = "cut" if row.kind == PASSAGES else "hashed"
    return f"Deleted {key}, {row.bytes / 1e6:,.1f} MB. Indexes keep what they hold; the corpus is {again} anew when it is next asked for."
