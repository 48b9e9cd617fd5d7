"""Corpus × kind (× encoder) → ``indexes/<name>``: built beside, checked, then moved into place."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rallebench.core.entries import Manifest, sealed
from rallebench.core.errors import BackendError, BadFileError, UsageError
from rallebench.core.events import mapped
from rallebench.core.files import DiskError, disk_error, is_full, sha256_file, write_json
from rallebench.core.parts import beside, check_name, with_final_names
from rallebench.core.settings import checked
from rallebench.core.types import digest
from rallebench.core.versions import versions
from rallebench.corpora import CORPORA
from rallebench.corpora.chunking import Chunking
from rallebench.corpora.imported import is_imported, read_card, store_corpus
from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.reading import PageMap
from rallebench.corpora.store import PASSAGES, PassageStore, link_store
from rallebench.encoders import Encoder
from rallebench.encoders.references import check_encoder, open_encoder
from rallebench.retrievers import INDEX_KINDS, needs_encoder
from rallebench.vector_indexes import VECTOR_INDEXES
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.cache import storing_progress
from rallebench.workspace.indexes.checks import check_index, search_known
from rallebench.workspace.indexes.importing import Foreign, check_fits, look, taken
from rallebench.workspace.indexes.vectors import Building, encode_passages


def kinds() -> tuple[str, ...]:
    """The index kinds that can be built; those that need no thought come first."""
    return tuple(
        sorted(INDEX_KINDS.names(), key=lambda name: (needs_encoder(name), name != "flat", name))
    )


def build_index(
    indexes: Path,
    name: str,
    corpus: Path,
    kind: str,
    *,
    encoder_name: str = "minilm",
    encoder: Encoder | None = None,
    page_map: Path | None = None,
    chunking: Chunking | None = None,
    form: str = "",
    parameters: Mapping[str, Any] | None = None,
    vectors: Path | None = None,
    source: Path | None = None,
    cut: Path | None = None,
) -> Generator[Building | Manifest, None, None]:
    """Yield progress, the Manifest last. Nothing appears under ``indexes/name`` before the build is whole.

    ``corpus``: a file, a folder, or the folder of an imported corpus; ``form``: its format, '' recognises it.

    Raises UsageError for a wrong name, kind or file, before anything is written, or if an index of
    that name exists with other contents; an equal one is left as it is.

    Encoded passages are kept in ``vectors`` (default: ``cache/vectors`` beside ``indexes``), so that a build
    that was interrupted goes on where it was, and other indexes over the same passages share them.

    ``source``: vectors or a finished index of another program over this corpus, taken instead of encoding.
    ``cut``: a folder with the store of the passages that this corpus and chunking give, taken instead of cutting again.
    """
    check_name("index", name)
    settings = check_settings(kind, dict(parameters or {}))
    if form:
        CORPORA.entry(form)
    foreign = look(source) if source else None
    if foreign and not needs_encoder(kind):
        raise UsageError(
            f"An index of the kind {kind!r} is built from the corpus alone; only vectors are taken from elsewhere."
        )
    if needs_encoder(kind) and encoder is None:
        check_encoder(encoder_name)
    target = Path(indexes) / name
    if target.exists() and not (target / "manifest.json").exists():
        raise UsageError(f"{target} exists and is no index; choose another name or move it away.")
    pages = read_page_map(page_map) if page_map else None
    cache = vectors or Path(indexes).parent / "cache" / "vectors"
    build = _Build(
        target, Path(corpus), kind, form, chunking, pages, settings, foreign, cache, cut, encoder
    )
    try:
        with beside(Path(indexes), name) as half:
            yield from build.run(half, encoder_name)
    except (OSError, RuntimeError, BackendError) as error:
        raise build.failure(error) from error
    yield read_manifest(target)


@dataclass(slots=True)
class _Build:
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
    cut: Path | None
    encoder: Encoder | None = None
    started: float = field(default_factory=time.perf_counter)
    needed: int = 0

    def run(self, half: Path, encoder_name: str) -> Generator[Building, None, None]:
        """Make the index in ``half`` and put it in place, unless it is there already."""
        yield Building("reading the corpus", 0, 0, 0.0)
        count, corpus_sha = yield from self._store(half)
        yield Building("reading the corpus", count, count, self._seconds)
        if not needs_encoder(self.kind):
            self.encoder = None
        elif self.encoder is None:
            self.encoder = open_encoder(encoder_name)
        if self.foreign is None and self._is_there(corpus_sha):
            return
        with contextlib.closing(PassageStore(half)) as store:
            self.needed = _own_bytes(half) + self._least_bytes(count)
            about = yield from self._index(half, store, corpus_sha)
            imported = is_imported(self.corpus)
            has_pages = self.pages is not None or (imported and read_card(self.corpus).has_pages)
            without_page = sum(not passage.page_id for passage in store) if has_pages else 0
        manifest = self._manifest(half, corpus_sha, count, about, without_page)
        yield Building("searching for known passages", 0, 0, self._seconds)
        search_known(half, manifest, self.encoder)
        manifest = manifest.model_copy(update={"seconds": round(self._seconds, 3)})
        write_json(half / "manifest.json", sealed(manifest.model_dump()))
        self._move_in(half, manifest)

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self.started

    def _least_bytes(self, count: int) -> int:
        """What the kind's own files take at least; 0 where that is another's disk, or only counting tells it."""
        traits = INDEX_KINDS.entry(self.kind).traits
        remote = traits.get("remote", lambda settings: False)(self.settings)
        linked = self.foreign is not None and bool(self.foreign.kind)
        dim = self.encoder.dim if self.encoder else 0
        return 0 if remote or linked else int(traits.get("vector_bytes", 4) * dim * count)

    def failure(self, error: OSError | RuntimeError | BackendError) -> BackendError:
        """The sentence for a build that failed; RuntimeError is what Faiss raises, also where a full disk cut its file."""
        if isinstance(error, DiskError):
            return error
        if isinstance(error, OSError) or is_full(error):
            return disk_error(self.target, error, "the index", self.needed)
        if isinstance(error, BackendError):
            return type(error)(with_final_names(str(error)))
        reason = with_final_names(" ".join(str(error).split())[-200:])
        return BackendError(
            f"The index {self.target} could not be built ({reason}). Nothing was left of it."
        )

    def _store(self, half: Path) -> Generator[Building, None, tuple[int, str]]:
        """Put the passages into the index's folder; returns their number and the corpus's sha256."""
        if self.cut is None:
            storing = store_corpus(half, self.corpus, self.pages, self.chunking, form=self.form)
            return (yield from storing_progress("reading the corpus", storing, self.started))
        with contextlib.closing(PassageStore(self.cut)) as passages:
            count = len(passages)
        link_store(self.cut, half)
        return count, sha256_file(half / PASSAGES)

    def _index(
        self, half: Path, store: PassageStore, corpus_sha: str
    ) -> Generator[Building, None, dict[str, Any]]:
        """Build the kind's own files; returns what the manifest says of them."""
        kind, foreign, encoder, settings = self.kind, self.foreign, self.encoder, self.settings
        index = INDEX_KINDS[kind]
        about: dict[str, Any] = {"retriever": "dense" if kind in VECTOR_INDEXES else kind}
        if encoder is None:
            stage, steps = "indexing passages", index.build(half, store, None, settings)
        else:
            about |= {"encoder": encoder.fingerprint, "encoder_name": encoder.name}
            about["dim"] = encoder.dim
            if foreign:
                check_fits(foreign, kind, len(store), encoder.dim, encoder.name)
                stage, steps = "taking over vectors", taken(foreign, index, half, store, settings)
            else:
                stored = yield from encode_passages(self.vectors, store, corpus_sha, encoder)
                about |= {"passage_dtype": stored.dtype, "encoding": dict(stored.encoding)}
                stage, steps = (
                    "indexing vectors",
                    index.build(half, store, stored.vectors, settings),
                )
        used = yield from mapped(steps, lambda step: Building(stage, *step, self._seconds))
        return {**about, "parameters": used}

    def _manifest(
        self, half: Path, corpus_sha: str, count: int, about: dict[str, Any], without_page: int
    ) -> Manifest:
        """The manifest of the files in ``half``, still without the seconds it took."""
        files = [path for path in sorted(half.rglob("*")) if path.is_file()]
        sizes = {str(path.relative_to(half)): path.stat().st_size for path in files}
        hashes = {name: sha256_file(half / name) for name in sizes}
        # Speeds differ each time; imported vectors are identified by their bytes alone.
        lasting = {key: value for key, value in about.items() if key != "encoding"}
        known_by = [hashes] if "imported" in about["parameters"] else []
        return Manifest(
            name=self.target.name,
            kind=self.kind,
            corpus=self.corpus.name,
            corpus_sha256=corpus_sha,
            chunking=self.chunking.as_json() if self.chunking else None,
            passages=count,
            passages_without_page=without_page,
            fingerprint=digest([corpus_sha, self.kind, lasting, *known_by])[:12],
            files=sizes,
            bytes=sum(sizes.values()),
            sha256=hashes,
            versions=versions(*INDEX_KINDS.entry(self.kind).traits.get("packages", ())),
            **about,
        )

    def _is_there(self, corpus_sha: str) -> bool:
        """Whether the index exists already, as it would be built. Raises UsageError if another one has its name."""
        target = self.target
        if not (target / "manifest.json").exists():
            return False
        made_by = self.encoder.fingerprint if self.encoder else ""
        try:
            manifest = read_manifest(target)
            same = (manifest.corpus_sha256, manifest.kind, manifest.encoder)
            if same != (corpus_sha, self.kind, made_by):
                raise self._other(manifest)
            check_index(target, manifest)
        except (BadFileError, BackendError) as error:
            raise type(error)(f"{error} Remove the folder {target} before.") from None
        settings = manifest.parameters
        return "imported" not in settings and self.settings.items() <= settings.items()

    def _other(self, manifest: Manifest) -> UsageError:
        return UsageError(
            f"An index {self.target.name!r} exists already and holds something else ({manifest.kind} over "
            f"{manifest.corpus}, {manifest.passages} passages); choose another name or remove {self.target}."
        )

    def _move_in(self, half: Path, manifest: Manifest) -> None:
        """Put the finished folder in place; an equal index that is there already stays."""
        try:
            os.rename(half, self.target)
        except OSError as error:
            if not (self.target / "manifest.json").exists():
                raise
            existing = read_manifest(self.target)
            if existing.fingerprint != manifest.fingerprint:
                raise self._other(existing) from error


def _own_bytes(folder: Path) -> int:
    """What the files of a folder take that no other name shares."""
    stats = (path.stat() for path in folder.rglob("*") if path.is_file())
    return sum(stat.st_size for stat in stats if stat.st_nlink == 1)


def check_settings(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """All settings of an index kind. Raises UsageError for an unknown kind, and for a setting it does not have or take."""
    if kind not in kinds():
        raise UsageError(f"There is no index kind {kind!r}; known: {', '.join(kinds())}.")
    entry = INDEX_KINDS.entry(kind)
    settings = checked(f"index kind {kind!r}", entry.form, parameters)
    if "check" in entry.traits:
        entry.traits["check"](settings)
    return settings
