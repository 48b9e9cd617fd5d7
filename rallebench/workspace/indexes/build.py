"""Corpus × kind (× encoder) → ``indexes/<name>``: built beside, checked, then moved into place."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from rallebench.core.disk import DiskError, disk_error, is_full
from rallebench.core.entries import Manifest, sealed
from rallebench.core.errors import BackendError, UsageError
from rallebench.core.events import mapped
from rallebench.core.files import sha256_file, write_json
from rallebench.core.folders import beside, check_name
from rallebench.core.parts import with_final_names
from rallebench.core.settings import checked
from rallebench.corpora import CORPORA
from rallebench.corpora.chunking import Chunking
from rallebench.corpora.imported import is_imported, read_card, store_corpus
from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.store import PASSAGES, PassageStore, link_store
from rallebench.encoders import Encoder
from rallebench.encoders.references import check_encoder, open_encoder
from rallebench.retrievers import INDEX_KINDS, needs_encoder
from rallebench.vector_indexes import VECTOR_INDEXES
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.cache import storing_progress
from rallebench.workspace.indexes.checks import search_known
from rallebench.workspace.indexes.importing import check_fits, look, taken
from rallebench.workspace.indexes.manifests import Order, is_there, manifest_of, move_in
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
    order = Order(target, Path(corpus), kind, form, chunking, pages, settings, foreign, cache, cut)
    try:
        with beside(Path(indexes), name) as half:
            yield from _build(half, order, encoder, encoder_name)
    except (OSError, RuntimeError, BackendError) as error:
        raise _unbuilt(order, error) from error
    yield read_manifest(target)


def _build(
    half: Path, order: Order, encoder: Encoder | None, encoder_name: str
) -> Generator[Building, None, None]:
    """Make the index in ``half`` and put it in place, unless it is there already."""
    yield Building("reading the corpus", 0, 0, 0.0)
    count, corpus_sha = yield from _stored(half, order)
    yield Building("reading the corpus", count, count, order.seconds)
    encoder = (encoder or open_encoder(encoder_name)) if needs_encoder(order.kind) else None
    if order.foreign is None and is_there(
        order.target, order.kind, corpus_sha, encoder, order.settings
    ):
        return
    with contextlib.closing(PassageStore(half)) as store:
        order.needed = _own_bytes(half) + _least_bytes(order, count, encoder.dim if encoder else 0)
        built = yield from _build_kind(half, store, order, encoder, corpus_sha)
        imported = is_imported(order.corpus)
        has_pages = order.pages is not None or (imported and read_card(order.corpus).has_pages)
        without_page = sum(not passage.page_id for passage in store) if has_pages else 0
    manifest = manifest_of(half, order, corpus_sha, count, built, without_page)
    yield Building("searching for known passages", 0, 0, order.seconds)
    search_known(half, manifest, encoder)
    manifest = manifest.model_copy(update={"seconds": round(order.seconds, 3)})
    write_json(half / "manifest.json", sealed(manifest.model_dump()))
    move_in(half, order.target, manifest)


def _least_bytes(order: Order, count: int, dim: int) -> int:
    """What the kind's own files take at least; 0 where that is another's disk, or only counting tells it."""
    traits = INDEX_KINDS.entry(order.kind).traits
    remote = traits.get("remote", lambda settings: False)(order.settings)
    linked = order.foreign is not None and bool(order.foreign.kind)
    return 0 if remote or linked else int(traits.get("vector_bytes", 4) * dim * count)


def _own_bytes(folder: Path) -> int:
    """What the files of a folder take that no other name shares."""
    stats = (path.stat() for path in folder.rglob("*") if path.is_file())
    return sum(stat.st_size for stat in stats if stat.st_nlink == 1)


def _unbuilt(order: Order, error: OSError | RuntimeError | BackendError) -> BackendError:
    """The sentence for a build that failed; RuntimeError is what Faiss raises, also where a full disk cut its file."""
    if isinstance(error, DiskError):
        return error
    if isinstance(error, OSError) or is_full(error):
        return disk_error(order.target, error, "the index", order.needed)
    if isinstance(error, BackendError):
        return type(error)(with_final_names(str(error)))
    reason = with_final_names(" ".join(str(error).split())[-200:])
    return BackendError(
        f"The index {order.target} could not be built ({reason}). Nothing was left of it."
    )


def _stored(half: Path, order: Order) -> Generator[Building, None, tuple[int, str]]:
    """Put the passages into the index's folder; returns their number and the corpus's sha256."""
    if order.cut is not None:
        with contextlib.closing(PassageStore(order.cut)) as passages:
            count = len(passages)
        link_store(order.cut, half)
        return count, sha256_file(half / PASSAGES)
    storing = store_corpus(half, order.corpus, order.pages, order.chunking, form=order.form)
    return (yield from storing_progress("reading the corpus", storing, order.started))


def _build_kind(
    half: Path, store: PassageStore, order: Order, encoder: Encoder | None, corpus_sha: str
) -> Generator[Building, None, dict[str, Any]]:
    kind, foreign = order.kind, order.foreign
    index = INDEX_KINDS[kind]
    about: dict[str, Any] = {"retriever": "dense" if kind in VECTOR_INDEXES else kind}
    if encoder is not None:
        about |= {"encoder": encoder.fingerprint, "encoder_name": encoder.name, "dim": encoder.dim}
    if encoder is None:
        stage, steps = "indexing passages", index.build(half, store, None, order.settings)
    elif foreign:
        check_fits(foreign, kind, len(store), encoder.dim, encoder.name)
        stage, steps = "taking over vectors", taken(foreign, index, half, store, order.settings)
    else:
        stored = yield from encode_passages(order.vectors, store, corpus_sha, encoder)
        about |= {"passage_dtype": stored.dtype, "encoding": dict(stored.encoding)}
        stage, steps = "indexing vectors", index.build(half, store, stored.vectors, order.settings)
    parameters = yield from mapped(steps, lambda step: Building(stage, *step, order.seconds))
    return {**about, "parameters": parameters}


def check_settings(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """All settings of an index kind. Raises UsageError for an unknown kind, and for a setting it does not have or take."""
    if kind not in kinds():
        raise UsageError(f"There is no index kind {kind!r}; known: {', '.join(kinds())}.")
    entry = INDEX_KINDS.entry(kind)
    settings = checked(f"index kind {kind!r}", entry.form, parameters)
    if "check" in entry.traits:
        entry.traits["check"](settings)
    return settings
