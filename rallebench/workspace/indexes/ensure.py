"""Indexes by their recipe, not by their name: an existing one is found, a missing one is built under a derived name.

For sets of indexes that differ in one setting (sweeps over chunk sizes, a grid over encoders). Three things are shared. A
corpus is chunked once per chunking (``<workspace>/cache/passages/``). A text is encoded once per encoder, from any corpus
(``rallebench.workspace.indexes.by_text``). An equal index under any name is reused.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rallebench.core.arrays import load_array
from rallebench.core.errors import BadFileError, RalleError
from rallebench.core.events import Progress
from rallebench.core.experiments import IndexRecipe, IndexResult
from rallebench.core.files import disk_error
from rallebench.core.locks import turn
from rallebench.core.starter import STARTER_CORPUS, STARTER_INDEXES
from rallebench.core.types import digest
from rallebench.corpora.store import PassageStore
from rallebench.encoders import Encoder
from rallebench.retrievers import needs_encoder
from rallebench.workspace.indexes.build import build_index
from rallebench.workspace.indexes.by_text import CachingEncoder, is_encoded, table_path, write_table
from rallebench.workspace.indexes.cache import (
    TEXTS,
    ChunkedCorpus,
    chunk_corpus,
    chunks_folder,
    read_chunks,
    using,
)
from rallebench.workspace.indexes.checks import check_index, is_made_by
from rallebench.workspace.indexes.recipes import lasting_settings
from rallebench.workspace.indexes.vectors import complete_vectors
from rallebench.workspace.paths import WorkspaceFolder

MOST_PASSAGES = 1_000_000
"""Passages above which the texts of an index are not read just to save another index from encoding them."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Cost of several indexes. ``existing``: names of indexes that need no work; ``builds``: number to build; ``passages``: their
    total; ``encodings``: encoder → (texts to encode, distinct texts in all)."""

    existing: tuple[str, ...] = ()
    builds: int = 0
    passages: int = 0
    encodings: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        parts = [
            f"{_count(self.builds, 'index', 'indexes')} to build"
            + (f" ({self.passages:,} passages)" if self.builds else "")
        ]
        parts += [f"{len(self.existing)} there already"] if self.existing else []
        for name, (new, total) in self.encodings.items():
            parts.append(
                f"{_count(new, 'text', 'texts')} to encode with {name}"
                + (f" of {total:,}" if new != total else "")
            )
        return f"{', '.join(parts)}."


def _count(number: int, singular: str, plural: str) -> str:
    return f"{number:,} {singular if number == 1 else plural}"


def ensure_index(
    workspace: WorkspaceFolder, recipe: IndexRecipe, encoders: Callable[[str], Encoder]
) -> Generator[Progress, None, IndexResult]:
    """Yield progress, return the workspace's index of this recipe, building it if there is none.

    An interrupted build resumes, because chunks and vectors are kept. Concurrent calls for the same index build it once;
    the second waits. Raises UsageError and BackendError as ``build_index`` does.
    """
    stage = "waiting for another build of the same index"
    with using(workspace.cache):
        passages = yield from chunk_corpus(workspace.cache, recipe)
        encoder = encoders(recipe.encoder) if recipe.encoder else None
        name = derived_name(recipe, passages)
        lock = workspace.cache / f".{name}.lock"
        with turn(lock, lambda seconds: Progress("", message=stage, seconds=seconds)) as waiting:
            yield from waiting
            fingerprint = encoder.fingerprint if encoder else ""
            if existing := existing_index(workspace, recipe, passages, fingerprint):
                return IndexResult(existing)
            caching = None
            if encoder is not None:
                _write_tables(workspace, recipe.encoder, passages)
                caching = CachingEncoder(encoder, workspace.vectors, workspace.cache / TEXTS)
            yield from build_index(
                workspace.indexes, name, recipe, encoder=caching, passages=passages.folder
            )
            return IndexResult(name, True, caching.encoded if caching else 0)


def index_costs(
    workspace: WorkspaceFolder, recipes: Sequence[IndexRecipe]
) -> Generator[Progress, None, Costs]:
    """Yield progress, return the cost of all these recipes. Chunks their corpora (and keeps the chunks); loads no encoder.
    Raises BadFileError for an unreadable corpus."""
    if not recipes:
        return Costs()
    built: list[str] = []
    builds: dict[str, tuple[IndexRecipe, ChunkedCorpus]] = {}
    texts: dict[str, list[Any]] = {}
    encodings = {}
    folder = workspace.cache / TEXTS
    with using(workspace.cache):
        for recipe in recipes:
            passages = yield from chunk_corpus(workspace.cache, recipe)
            if name := existing_index(workspace, recipe, passages):
                built.append(name)
            else:
                builds[derived_name(recipe, passages)] = (recipe, passages)
        for recipe, passages in builds.values():
            if recipe.encoder:
                yield Progress("", 0, passages.passages, "counting texts")
                _write_tables(workspace, recipe.encoder, passages)
                table = np.asarray(load_array(table_path(folder, passages.sha256)))
                texts.setdefault(recipe.encoder, []).append(table[:2].T)
        for encoder, parts in texts.items():
            distinct = np.unique(np.concatenate(parts), axis=0)
            have = is_encoded(workspace.vectors, folder, encoder, distinct)
            encodings[encoder] = (int((~have).sum()), len(distinct))
    held = sum(passages.passages for _, passages in builds.values())
    return Costs(tuple(dict.fromkeys(built)), len(builds), held, encodings)


# choosing the index


def expected_name(workspace: WorkspaceFolder, recipe: IndexRecipe) -> tuple[str, bool]:
    """Return the index name for ``ensure_index``, and True if it exists; '' if its corpus was never chunked this way.

    Reads no documents and writes nothing.
    """
    passages = read_chunks(chunks_folder(workspace.cache, recipe))
    if passages is None:
        return "", False
    existing = existing_index(workspace, recipe, passages)
    return existing or derived_name(recipe, passages), bool(existing)


def derived_name(recipe: IndexRecipe, passages: ChunkedCorpus) -> str:
    """Return the name of a new index: corpus, chunking, kind, and 8 digits over the whole recipe."""
    if recipe.corpus == STARTER_CORPUS and recipe.chunking is None:
        for name, kind in STARTER_INDEXES.items():
            encoder = "minilm" if needs_encoder(kind) else ""
            if (kind, encoder) == (recipe.kind, recipe.encoder):
                return name  # a starter index, built on first use
    stem = re.sub(r"[^\w\-]+", "-", recipe.corpus.name.split(".")[0]).strip("-")[:40] or "corpus"
    size = f"-{recipe.chunking.size}{recipe.chunking.unit[0]}" if recipe.chunking else ""
    mark = digest([passages.sha256, recipe.kind, recipe.encoder, dict(lasting_settings(recipe))])[
        :8
    ]
    return f"{stem}{size}-{recipe.kind}-{mark}"


def existing_index(
    workspace: WorkspaceFolder, recipe: IndexRecipe, passages: ChunkedCorpus, fingerprint: str = ""
) -> str:
    """Return the name of a complete index of this recipe; '' if there is none. ``fingerprint``: see ``is_made_by``."""
    for name, manifest in workspace.manifests().items():
        if is_made_by(manifest, recipe, passages.sha256, fingerprint):
            with contextlib.suppress(RalleError):
                check_index(workspace.indexes / name, manifest)
                return name
    return ""


def _write_tables(workspace: WorkspaceFolder, encoder: str, passages: ChunkedCorpus) -> None:
    """Write the tables of texts of these passages, and of the indexes whose vectors by this encoder are kept."""
    texts = workspace.cache / TEXTS
    folders = [(passages.folder, passages.sha256)]
    for name, manifest in workspace.manifests().items():
        fits = manifest.encoder_name == encoder and manifest.passages <= MOST_PASSAGES
        if fits and complete_vectors(workspace.vectors, manifest.corpus_sha256, manifest.encoder):
            folders.append((workspace.indexes / name, manifest.corpus_sha256))
    for folder, sha in folders:
        try:
            with contextlib.closing(PassageStore(folder)) as store:
                write_table(texts, sha, store)
        except BadFileError:
            if folder == passages.folder:
                raise
        except OSError as error:
            raise disk_error(texts, error, "the table of texts") from error
