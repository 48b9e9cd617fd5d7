"""Building ``indexes/<name>`` from a recipe: built in a temporary folder, checked, then moved into place."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rallebench.core.entries import Manifest, seal_manifest
from rallebench.core.errors import BackendError, BadFileError, UsageError
from rallebench.core.events import Progress, map_events
from rallebench.core.experiments import IndexRecipe
from rallebench.core.files import DiskError, disk_error, is_full, sha256_file, write_json
from rallebench.core.parts import beside, check_name, move_in, with_final_names
from rallebench.core.types import digest
from rallebench.core.versions import versions
from rallebench.corpora.cards import PASSAGES, is_imported, read_card
from rallebench.corpora.imported import store_corpus
from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.reading import PageMap
from rallebench.corpora.store import PassageStore, link_store
from rallebench.encoders import Encoder, Vectors
from rallebench.encoders.references import open_encoder
from rallebench.retrievers import INDEX_KINDS
from rallebench.vector_indexes import VECTOR_INDEXES
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.cache import storing_progress
from rallebench.workspace.indexes.checks import check_index, is_made_by, search_known
from rallebench.workspace.indexes.encoding import encode_passages
from rallebench.workspace.indexes.importing import ForeignIndex, check_fits, recognise, take_over
from rallebench.workspace.indexes.reading import LongPassages, long_passages


def build_index(
    indexes: Path,
    name: str,
    recipe: IndexRecipe,
    *,
    encoder: Encoder | None = None,
    source: Path | None = None,
    ids: Path | None = None,
    passages: Path | None = None,
) -> Generator[Progress, None, Manifest]:
    """Yield progress, return the manifest. Nothing appears under ``indexes/name`` before the build is complete.

    Raises UsageError for an invalid name or file, before anything is written, or if an index of that name exists with other
    contents; an equal one is kept.

    Encoded passages are kept in ``cache/vectors`` beside ``indexes``, so that an interrupted build resumes, and other
    indexes over the same passages share them.

    ``encoder``: the recipe's, if it is loaded. ``source``: vectors or a finished index of another program over this corpus,
    used instead of encoding; ``ids``: a file with the passage id of each of these vectors. ``passages``: a folder with the store of the recipe's passages, used instead of chunking again.
    """
    check_name("index", name)
    foreign = recognise(source, ids) if source else None
    if ids is not None and foreign is None:
        raise UsageError(f"{ids} names the passages of foreign vectors; give these, too.")
    if foreign and not recipe.encoder:
        raise UsageError(
            f"An index of the kind {recipe.kind!r} is built from the corpus alone; only vectors are taken from elsewhere."
        )
    target = Path(indexes) / name
    if target.exists() and not (target / "manifest.json").exists():
        raise UsageError(
            f"{target} exists and is not an index; choose another name or move it away."
        )
    pages = read_page_map(recipe.page_map) if recipe.page_map else None
    build = _Build(target, recipe, pages, foreign, passages, encoder)
    try:
        with beside(Path(indexes), name) as half:
            yield from build.run(half)
    except (OSError, RuntimeError, BackendError) as error:
        raise build.failure(error) from error
    return read_manifest(target)


@dataclass(slots=True)
class _Build:
    """A checked build. ``needed``: minimum number of bytes, known once the passages are; ``warnings``: about skipped parts
    of the corpus; ``vectors``: the encoded passages."""

    target: Path
    recipe: IndexRecipe
    pages: PageMap | None
    foreign: ForeignIndex | None
    passages: Path | None
    encoder: Encoder | None = None
    started: float = field(default_factory=time.perf_counter)
    needed: int = 0
    vectors: Vectors | None = None
    long: LongPassages | None = None
    warnings: list[str] = field(default_factory=list)

    def run(self, half: Path) -> Generator[Progress, None, None]:
        """Build the index in ``half`` and move it into place, unless it exists already."""
        recipe = self.recipe
        yield self._progress("reading the corpus")
        count, corpus_sha = yield from self._store(half)
        yield self._progress("reading the corpus", count, count)
        for sentence in self.warnings:
            yield self._progress(sentence)
        if not recipe.encoder:
            self.encoder = None
        elif self.encoder is None:
            self.encoder = open_encoder(recipe.encoder)
        if self.foreign is None and self._is_there(corpus_sha):
            return
        with contextlib.closing(PassageStore(half)) as store:
            self.needed = _own_bytes(half) + self._least_bytes(count)
            self.long = self._long_passages(store)
            if self.long and self.long.longer:
                yield self._progress(self.long.sentence)
            about = yield from self._index(half, store, corpus_sha)
            imported = is_imported(recipe.corpus)
            has_pages = self.pages is not None or (imported and read_card(recipe.corpus).has_pages)
            without_page = sum(not passage.page_id for passage in store) if has_pages else 0
        manifest = self._manifest(half, corpus_sha, count, about, without_page)
        yield self._progress("searching for known passages")
        missed = search_known(half, manifest, self.encoder, self.vectors)
        seconds = round(time.perf_counter() - self.started, 3)
        manifest = manifest.model_copy(
            update={"seconds": seconds, "warnings": [*self.warnings, *missed]}
        )
        write_json(half / "manifest.json", seal_manifest(manifest.model_dump()))
        self._move_in(half, manifest)

    def _long_passages(self, store: PassageStore) -> LongPassages | None:
        """Return the long passages of an index whose vectors are encoded here."""
        encoder = "" if self.foreign else self.recipe.encoder
        return long_passages(encoder, len(store), store.__getitem__)

    def _progress(self, stage: str, done: int = 0, total: int | None = None) -> Progress:
        return Progress("", done, total, stage, seconds=time.perf_counter() - self.started)

    def _least_bytes(self, count: int) -> int:
        """Return the minimum bytes of the kind's own files; 0 if they are on a server, or unknown before building."""
        traits = INDEX_KINDS.entry(self.recipe.kind).traits
        remote = traits.get("remote", lambda settings: False)(self.recipe.settings)
        linked = self.foreign is not None and self.recipe.kind in self.foreign.kinds
        dim = self.encoder.dim if self.encoder else 0
        return 0 if remote or linked else int(traits.get("vector_bytes", 4) * dim * count)

    def failure(self, error: OSError | RuntimeError | BackendError) -> BackendError:
        """Return the sentence for a failed build; Faiss raises RuntimeError, also for a full disk."""
        if isinstance(error, DiskError):
            return error
        if isinstance(error, OSError) or is_full(error):
            return disk_error(self.target, error, "the index", self.needed)
        if isinstance(error, BackendError):
            return error.saying(with_final_names(str(error)))
        reason = with_final_names(" ".join(str(error).split())[-200:])
        return BackendError(
            f"The index {self.target} could not be built ({reason}). Nothing was left of it."
        )

    def _store(self, half: Path) -> Generator[Progress, None, tuple[int, str]]:
        """Write the passages into the index's folder; return their number and the SHA-256 of the corpus."""
        recipe = self.recipe
        if self.passages is None:
            storing = store_corpus(
                *(half, recipe.corpus, self.pages, recipe.chunking),
                form=recipe.form,
                warnings=self.warnings,
            )
            return (yield from storing_progress("reading the corpus", storing))
        with contextlib.closing(PassageStore(self.passages)) as store:
            count = len(store)
        link_store(self.passages, half)
        return count, sha256_file(half / PASSAGES)

    def _index(
        self, half: Path, store: PassageStore, corpus_sha: str
    ) -> Generator[Progress, None, dict[str, Any]]:
        """Build the kind's own files; return their facts for the manifest."""
        kind, settings, encoder = self.recipe.kind, self.recipe.settings, self.encoder
        index = INDEX_KINDS[kind]
        about: dict[str, Any] = {"retriever": "dense" if kind in VECTOR_INDEXES else kind}
        if encoder is None:
            stage, steps = "indexing passages", index.build(half, store, None, settings)
        else:
            about |= {"encoder": encoder.fingerprint, "encoder_name": encoder.name}
            about["dim"] = encoder.dim
            if self.foreign:
                check_fits(self.foreign, kind, len(store), encoder.dim, encoder.name)
                stage = "taking over vectors"
                steps = take_over(self.foreign, kind, half, store, settings)
            else:
                cache = self.target.parents[1] / "cache" / "vectors"
                encoded = yield from encode_passages(cache, store, corpus_sha, encoder)
                self.vectors = encoded.vectors
                about |= {"passage_dtype": encoded.dtype, "encoding": dict(encoded.encoding)}
                stage = "indexing vectors"
                steps = index.build(half, store, encoded.vectors, settings)
        # Libraries are loaded now, and the first piece of a graph takes a while.
        yield self._progress(stage, 0, len(store))
        used = yield from map_events(steps, lambda step: self._progress(stage, *step))
        return {**about, "parameters": used}

    def _manifest(
        self, half: Path, corpus_sha: str, count: int, about: dict[str, Any], without_page: int
    ) -> Manifest:
        """Return the manifest of the files in ``half``, without the duration of the build."""
        kind, chunking = self.recipe.kind, self.recipe.chunking
        files = [path for path in sorted(half.rglob("*")) if path.is_file()]
        sizes = {str(path.relative_to(half)): path.stat().st_size for path in files}
        hashes = {name: sha256_file(half / name) for name in sizes}
        # Speeds vary; imported vectors are identified by their bytes alone.
        lasting = {key: value for key, value in about.items() if key != "encoding"}
        known_by = [hashes] if "imported" in about["parameters"] else []
        return Manifest(
            name=self.target.name,
            kind=kind,
            corpus=self.recipe.corpus.name,
            corpus_sha256=corpus_sha,
            chunking=chunking.to_json() if chunking else None,
            passages=count,
            passages_without_page=without_page,
            fingerprint=digest([corpus_sha, kind, lasting, *known_by])[:12],
            files=sizes,
            bytes=sum(sizes.values()),
            sha256=hashes,
            warnings=self.warnings,
            versions=versions(*INDEX_KINDS.entry(kind).traits.get("packages", ())),
            window=self.long.window if self.long else 0,
            longer=self.long.longer if self.long else 0,
            longer_counted=self.long.counted if self.long else 0,
            **about,
        )

    def _is_there(self, corpus_sha: str) -> bool:
        """Return whether an equal index exists already. Raises UsageError if a different one has its name."""
        target = self.target
        if not (target / "manifest.json").exists():
            return False
        made_by = self.encoder.fingerprint if self.encoder else ""
        try:
            manifest = read_manifest(target)
            same = (manifest.corpus_sha256, manifest.kind, manifest.encoder)
            if same != (corpus_sha, self.recipe.kind, made_by):
                raise self._other(manifest)
            if manifest.words_note and not is_made_by(manifest, self.recipe, corpus_sha, made_by):
                raise self._other(manifest)
            check_index(target, manifest)
        except (BadFileError, BackendError) as error:
            raise error.saying(f"{error} Remove the folder {target} before.") from None
        return is_made_by(manifest, self.recipe, corpus_sha, made_by)

    def _other(self, manifest: Manifest) -> UsageError:
        note = f"; {manifest.words_note}" if manifest.words_note else ""
        return UsageError(
            f"An index {self.target.name!r} exists already and holds something else ({manifest.kind} over "
            f"{manifest.corpus}, {manifest.passages} passages{note}); choose another name or remove {self.target}."
        )

    def _move_in(self, half: Path, manifest: Manifest) -> None:
        """Move the finished folder into place; an equal index is kept."""
        if not move_in(half, self.target):
            existing = read_manifest(self.target)
            if existing.fingerprint != manifest.fingerprint:
                raise self._other(existing)


def _own_bytes(folder: Path) -> int:
    """Return the bytes of the files in a folder that have no other hard link."""
    stats = (path.stat() for path in folder.rglob("*") if path.is_file())
    return sum(stat.st_size for stat in stats if stat.st_nlink == 1)
