"""A build that was asked for, and what its index says of itself: written, compared with one that is there, moved into place."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rallebench.core.entries import Manifest
from rallebench.core.errors import BackendError, BadFileError, UsageError
from rallebench.core.files import sha256_file
from rallebench.core.types import digest
from rallebench.core.versions import versions
from rallebench.corpora.chunking import Chunking
from rallebench.corpora.reading import PageMap
from rallebench.encoders import Encoder
from rallebench.retrievers import INDEX_KINDS
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.checks import check_index
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


def manifest_of(
    half: Path,
    order: Order,
    corpus_sha: str,
    count: int,
    settings: dict[str, Any],
    without_page: int,
) -> Manifest:
    """The manifest of the files in ``half``, still without the seconds it took."""
    sizes = {
        str(p.relative_to(half)): p.stat().st_size for p in sorted(half.rglob("*")) if p.is_file()
    }
    lasting = {
        key: value for key, value in settings.items() if key != "encoding"
    }  # speeds differ each time
    hashes = {name: sha256_file(half / name) for name in sizes}
    # Imported vectors are identified by their bytes alone.
    known_by = [hashes] if "imported" in settings["parameters"] else []
    fingerprint = digest([corpus_sha, order.kind, lasting, *known_by])[:12]
    return Manifest(
        name=order.target.name,
        kind=order.kind,
        corpus=order.corpus.name,
        corpus_sha256=corpus_sha,
        chunking=order.chunking.as_json() if order.chunking else None,
        passages=count,
        passages_without_page=without_page,
        fingerprint=fingerprint,
        files=sizes,
        bytes=sum(sizes.values()),
        sha256=hashes,
        versions=versions(*INDEX_KINDS.entry(order.kind).traits.get("packages", ())),
        **settings,
    )


def is_there(
    target: Path, kind: str, corpus_sha: str, encoder: Encoder | None, settings: Mapping[str, Any]
) -> bool:
    """Whether the index exists already, as it would be built. Raises UsageError if another one has its name."""
    if not (target / "manifest.json").exists():
        return False
    try:
        manifest = read_manifest(target)
    except BadFileError as error:
        raise BadFileError(f"{error} Remove the folder {target} before.") from None
    made_by = encoder.fingerprint if encoder else ""
    if (manifest.corpus_sha256, manifest.kind, manifest.encoder) != (corpus_sha, kind, made_by):
        raise _taken(target, manifest)
    try:
        check_index(target, manifest)
    except BackendError as error:
        raise BackendError(f"{error} Remove the folder {target} before.") from None
    return "imported" not in manifest.parameters and settings.items() <= manifest.parameters.items()


def _taken(target: Path, manifest: Manifest) -> UsageError:
    return UsageError(
        f"An index {target.name!r} exists already and holds something else ({manifest.kind} over {manifest.corpus}, "
        f"{manifest.passages} passages); choose another name or remove {target}."
    )


def move_in(half: Path, target: Path, manifest: Manifest) -> None:
    """Put the finished folder in place; an equal index that is there already stays."""
    try:
        os.rename(half, target)
    except OSError as error:
        if not (target / "manifest.json").exists():
            raise
        existing = read_manifest(target)
        if existing.fingerprint != manifest.fingerprint:
            raise _taken(target, existing) from error
