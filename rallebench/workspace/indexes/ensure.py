"""Indexes by what they are, not by their name: found if one is there already, built once under a derived name if not.

For sets of indexes that differ in one setting (sweeps over chunk sizes, a grid over encoders). Three things
are shared: the passages of one corpus in one chunking are cut once (``<workspace>/cache/passages/``), a text is
encoded once by one encoder whatever it is cut out of (``rallebench.workspace.indexes.by_text``), and an index that is there
under any name is taken as it is.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.entries import Manifest
from rallebench.core.errors import BadFileError, NotFoundError, RalleError
from rallebench.core.experiments import IndexResult
from rallebench.core.files import disk_error
from rallebench.core.types import digest
from rallebench.corpora.chunking import Chunking
from rallebench.corpora.reading import IMPORTED
from rallebench.corpora.store import PassageStore
from rallebench.encoders import Encoder
from rallebench.encoders.references import check_encoder
from rallebench.retrievers import needs_encoder
from rallebench.workspace.indexes._shards import passage_text
from rallebench.workspace.indexes.build import build_index, check_settings
from rallebench.workspace.indexes.by_text import Remembering, hashes, known, write_table
from rallebench.workspace.indexes.cache import (
    TEXTS,
    Cut,
    cut,
    cut_folder,
    is_index,
    read_cut,
    using,
)
from rallebench.workspace.indexes.checks import check_index
from rallebench.workspace.indexes.vectors import Building, turn, vectors_of
from rallebench.workspace.paths import STARTER, STARTER_INDEXES, Workspace

MOST_PASSAGES = 1_000_000
"""Of an index with more passages the texts are not read only to spare another index their encoding."""


@dataclass(frozen=True, slots=True)
class Described:
    """An index by what it is. Make one with ``described``, which checks it.

    ``corpus``: a file or folder of documents, an imported corpus, or an index, whose passages are then the documents.
    ``encoder``: '' for a kind that has none. ``settings``: all of the kind's.
    """

    corpus: Path
    kind: str
    encoder: str = ""
    chunking: Chunking | None = None
    form: str = ""
    page_map: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Costs:
    """What preparing several indexes takes. ``existing``: names of those that need no work; ``builds``: indexes to build;
    ``passages``: what these hold together; ``encodings``: encoder → (texts to encode, different texts in all)."""

    existing: tuple[str, ...]
    builds: int
    passages: int
    encodings: Mapping[str, tuple[int, int]]

    @property
    def sentence(self) -> str:
        """The same in words."""
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


def described(
    workspace: Workspace,
    corpus: str | Path,
    kind: str,
    *,
    encoder: str = "minilm",
    chunking: Chunking | None = None,
    form: str = "",
    page_map: Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Described:
    """An index description with all its settings, checked; nothing is read or loaded. Raises UsageError."""
    full = check_settings(kind, dict(settings or {}))
    path = workspace.corpus(str(corpus))
    if not path.exists():
        raise NotFoundError(f"{path} does not exist.")
    if needs_encoder(kind):
        check_encoder(encoder)
    form = form or (IMPORTED if is_index(path) else "")
    encoder = encoder if needs_encoder(kind) else ""
    return Described(path, kind, encoder, chunking, form, page_map, full)


def prepare(
    workspace: Workspace, recipe: Described, encoders: Callable[[str], Encoder]
) -> Generator[Building, None, IndexResult]:
    """Yield progress, return the index of the workspace that is exactly this, built if there is none.

    Interrupted, it goes on where it was: what is cut and encoded is kept. Two that ask for the same index build it
    once; the second waits. Raises UsageError and BackendError as ``build_index`` does.
    """
    stage = "waiting for another build of the same index"
    with using(workspace.cache):
        passages = yield from passages_of(workspace, recipe)
        encoder = encoders(recipe.encoder) if recipe.encoder else None
        fingerprint = encoder.fingerprint if encoder else ""
        name = name_of(recipe, passages)
        lock = workspace.cache / f".{name}.lock"
        with turn(lock, lambda seconds: Building(stage, 0, 0, seconds)) as waiting:
            yield from waiting
            if existing := existing_index(workspace, recipe, passages, fingerprint):
                return IndexResult(existing)
            return (yield from _built(workspace, name, recipe, passages, encoder))


def _built(
    workspace: Workspace, name: str, recipe: Described, passages: Cut, encoder: Encoder | None
) -> Generator[Building, None, IndexResult]:
    remembering = None
    if encoder is not None:
        _write_tables(workspace, recipe.encoder, passages)
        remembering = Remembering(encoder, workspace.vectors, workspace.cache / TEXTS)
    building = build_index(
        workspace.indexes,
        name,
        recipe.corpus,
        recipe.kind,
        encoder_name=recipe.encoder,
        encoder=remembering,
        page_map=recipe.page_map,
        chunking=recipe.chunking,
        form=recipe.form,
        parameters=dict(recipe.settings),
        vectors=workspace.vectors,
        cut=passages.folder,
    )
    with contextlib.closing(building):
        for piece in building:
            if not isinstance(piece, Manifest):
                yield piece
    return IndexResult(name, True, remembering.encoded if remembering else 0)


def planned(workspace: Workspace, recipes: Sequence[Described]) -> Generator[Building, None, Costs]:
    """Yield progress, return what preparing all of these takes. Their corpora are cut for it, which is kept; no
    encoder is loaded. Raises as ``passages_of`` does."""
    built: list[str] = []
    builds: dict[str, tuple[Described, Cut]] = {}
    texts: dict[str, list[Any]] = {}
    encodings = {}
    with using(workspace.cache):
        for recipe in recipes:
            passages = yield from passages_of(workspace, recipe)
            if name := existing_index(workspace, recipe, passages):
                built.append(name)
            else:
                builds[name_of(recipe, passages)] = (recipe, passages)
        for recipe, passages in builds.values():
            if recipe.encoder:
                yield Building("counting texts", 0, passages.passages, 0.0)
                _write_tables(workspace, recipe.encoder, passages)
                with contextlib.closing(PassageStore(passages.folder)) as store:
                    keys = hashes(map(passage_text, store))
                texts.setdefault(recipe.encoder, []).append(keys)
        for encoder, parts in texts.items():
            unlike = np.unique(np.concatenate(parts), axis=0)
            have = known(workspace.vectors, workspace.cache / TEXTS, encoder, unlike)
            encodings[encoder] = (int((~have).sum()), len(unlike))
    held = sum(passages.passages for _, passages in builds.values())
    return Costs(tuple(dict.fromkeys(built)), len(builds), held, encodings)


# which index


def passages_of(workspace: Workspace, recipe: Described) -> Generator[Building, None, Cut]:
    """Yield progress, return the passages of an index. Raises BadFileError for a corpus that cannot be read."""
    folder = _cut_folder(workspace, recipe)
    return cut(folder, recipe.corpus, recipe.chunking, recipe.form, recipe.page_map)


def _cut_folder(workspace: Workspace, recipe: Described) -> Path:
    return cut_folder(workspace.cache, recipe.corpus, recipe.chunking, recipe.form, recipe.page_map)


def foreseen(workspace: Workspace, recipe: Described) -> tuple[str, bool]:
    """(the name that ``prepare`` will end with, whether that index is there); '' where its corpus was never cut so.

    Reads no documents and writes nothing.
    """
    passages = read_cut(_cut_folder(workspace, recipe))
    if passages is None:
        return "", False
    existing = existing_index(workspace, recipe, passages)
    return existing or name_of(recipe, passages), bool(existing)


def name_of(recipe: Described, passages: Cut) -> str:
    """The name that an index gets if none is there: corpus, chunking, kind, and 8 digits over all that it is."""
    if recipe.corpus == STARTER / "corpus.tsv" and recipe.chunking is None:
        for name, kind in STARTER_INDEXES.items():
            encoder = "minilm" if needs_encoder(kind) else ""
            if (kind, encoder) == (recipe.kind, recipe.encoder):
                return name  # what is built when it is first asked for
    stem = re.sub(r"[^\w\-]+", "-", recipe.corpus.name.split(".")[0]).strip("-")[:40] or "corpus"
    size = f"-{recipe.chunking.size}{recipe.chunking.unit[0]}" if recipe.chunking else ""
    mark = digest([passages.sha256, recipe.kind, recipe.encoder, dict(recipe.settings)])[:8]
    return f"{stem}{size}-{recipe.kind}-{mark}"


def existing_index(
    workspace: Workspace, recipe: Described, passages: Cut, fingerprint: str = ""
) -> str:
    """The name of a whole index that is exactly this; '' if there is none.

    ``fingerprint``: the encoder's, where it is loaded; without it the manifest's name of the encoder is believed.
    """
    for name, manifest in workspace.manifests().items():
        made_by = (manifest.encoder, fingerprint)
        if not fingerprint:
            made_by = (manifest.encoder_name, recipe.encoder)
        if (
            (manifest.corpus_sha256, manifest.kind) == (passages.sha256, recipe.kind)
            and made_by[0] == made_by[1]
            and recipe.settings.items() <= manifest.parameters.items()
            and "imported" not in manifest.parameters
        ):
            with contextlib.suppress(RalleError):
                check_index(workspace.indexes / name, manifest)
                return name
    return ""


def _write_tables(workspace: Workspace, encoder: str, passages: Cut) -> None:
    """The tables of texts of these passages, and of the indexes whose vectors by the encoder of this name are kept."""
    texts = workspace.cache / TEXTS
    folders = [(passages.folder, passages.sha256)]
    for name, manifest in workspace.manifests().items():
        fits = manifest.encoder_name == encoder and manifest.passages <= MOST_PASSAGES
        if fits and vectors_of(workspace.vectors, manifest.corpus_sha256, manifest.encoder):
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
