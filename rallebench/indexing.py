"""Corpus × kind (× encoder) → ``indexes/<name>``: built beside, checked, then moved into place."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import time
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.catalog import Manifest, read_manifest
from rallebench.corpora.chunking import Chunking, chunk
from rallebench.corpora.store import PassageStore, write_store
from rallebench.corpora.tables import read_corpus, read_page_map
from rallebench.encoders import ENCODERS, Encoder
from rallebench.errors import BackendError, UsageError
from rallebench.files import disk_error, write_json
from rallebench.retrievers import RETRIEVERS, bm25
from rallebench.types import digest
from rallebench.vector_index import VECTOR_INDEXES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENCODE_PIECE = 64
KNOWN_ITEMS, KNOWN_DEPTH = 20, 10
MAX_NAME_BYTES = 200
"""File systems take 255 for a folder's name; a build in progress adds its own marks."""


@dataclass(frozen=True, slots=True)
class Building:
    """Progress of a build: what is done now, and how far (``total`` 0 = not known)."""

    stage: str
    done: int
    total: int
    seconds: float


def kinds() -> tuple[str, ...]:
    """The index kinds that can be built."""
    return ("bm25", *VECTOR_INDEXES.names())


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
    parameters: Mapping[str, Any] | None = None,
) -> Generator[Building | Manifest, None, None]:
    """Yield progress, the Manifest last. Nothing appears under ``indexes/name`` before the build is whole.

    Raises UsageError for a wrong name, kind or file, before anything is written, or if an index of
    that name exists with other contents; an equal one is left as it is.
    """
    forbidden = name.startswith(".") or any(c in name for c in '/\\:*?"<>|') or not name.isprintable()
    if not name.strip() or forbidden or len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        raise UsageError(
            f"The index name {name!r} cannot be a folder name; use letters, digits, '-' and '_'."
        )
    if kind not in kinds():
        raise UsageError(f"There is no index kind {kind!r}; known: {', '.join(kinds())}.")
    settings = _checked(kind, dict(parameters or {}))
    if kind != "bm25" and encoder is None:
        ENCODERS.entry(encoder_name)
    target = Path(indexes) / name
    if target.exists() and not (target / "manifest.json").exists():
        raise UsageError(f"{target} exists and is no index; choose another name or move it away.")
    pages = read_page_map(page_map) if page_map else None
    _forget_dead_builds(Path(indexes), name)
    half = Path(indexes) / f".{name}.{os.getpid()}.{time.monotonic_ns()}.part"
    started = time.perf_counter()
    try:
        half.mkdir(parents=True)
        yield Building("reading the corpus", 0, 0, 0.0)
        count, corpus_sha = write_store(half, chunk(read_corpus(corpus, pages), chunking))
        yield Building("reading the corpus", count, count, time.perf_counter() - started)
        store = PassageStore(half)
        try:
            encoder = None if kind == "bm25" else encoder or ENCODERS[encoder_name]()
            built = yield from _build_kind(half, store, kind, encoder, settings, started)
            without_page = sum(not passage.page_id for passage in store) if pages is not None else 0
        finally:
            store.close()
        manifest = _manifest(half, name, corpus, corpus_sha, count, kind, built, chunking, without_page)
        yield Building("searching for known passages", 0, 0, time.perf_counter() - started)
        _search_known(half, manifest, encoder)
        manifest = manifest.model_copy(update={"seconds": round(time.perf_counter() - started, 3)})
        write_json(half / "manifest.json", manifest.model_dump())
        _move_in(half, target, manifest)
    except OSError as error:
        raise disk_error(target, error) from error
    except RuntimeError as error:  # what Faiss raises, also where a full disk cut its file
        reason = " ".join(str(error).split())[-200:]
        raise BackendError(
            f"The index {target} could not be built ({reason}). Nothing was left of it; "
            "if the disk is full, free space or choose another --workspace."
        ) from error
    finally:
        if half.exists():
            shutil.rmtree(half, ignore_errors=True)
    yield read_manifest(target)


def _build_kind(
    half: Path,
    store: PassageStore,
    kind: str,
    encoder: Encoder | None,
    parameters: dict[str, Any],
    started: float,
) -> Generator[Building, None, dict[str, Any]]:
    if kind == "bm25":
        yield Building("indexing words", 0, len(store), time.perf_counter() - started)
        return {"retriever": "bm25", "parameters": bm25.build(half, store, **parameters)}
    assert encoder is not None
    vectors = yield from _encode(store, encoder, started)
    settings = VECTOR_INDEXES[kind]().build(half, vectors, **parameters)
    return {
        "retriever": "dense",
        "parameters": settings,
        "encoder": encoder.fingerprint,
        "encoder_name": encoder.name,
        "dim": encoder.dim,
    }


def _checked(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The settings of an index kind. Raises UsageError for one it does not have or cannot take."""
    known = {"k1": 1000.0, "b": 1.0} if kind == "bm25" else {}
    for name, value in parameters.items():
        if name not in known:
            has = f"it has {' and '.join(known)}" if known else "it has none"
            raise UsageError(f"The index kind {kind!r} has no setting {name!r}; {has}.")
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 <= value <= known[name]:
            raise UsageError(f"--set {name}={value}: {name} must be a number from 0 to {known[name]:g}.")
    return {name: float(value) for name, value in parameters.items()}


def _forget_dead_builds(indexes: Path, name: str) -> None:
    """Remove what a build of ``name`` left when its process was killed."""
    import psutil

    for path in indexes.glob(f".{glob.escape(name)}.*.part"):
        pid = path.name[len(name) + 2 :].split(".")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(path, ignore_errors=True)


def _search_known(half: Path, manifest: Manifest, encoder: Encoder | None) -> None:
    """BackendError unless passages of the corpus are found by their own text: a broken index never appears."""
    retriever = RETRIEVERS[manifest.retriever](manifest.name, half, manifest, encoder)
    store = PassageStore(half)
    try:
        rows = range(0, len(store), max(1, len(store) // KNOWN_ITEMS))
        known = [p for p in (store[row] for row in rows) if p.text.strip()][:KNOWN_ITEMS]
        found = retriever.search([f"{p.title}, {p.text}" for p in known], KNOWN_DEPTH)
        missed = [
            p.doc_id for p, hits in zip(known, found) if hits and p not in [hit.passage for hit in hits]
        ]
        # Copies of one text may crowd each other out; an index that misses most is broken.
        if len(missed) > len(known) / 2:
            raise BackendError(
                f"The finished index {manifest.name!r} did not find {len(missed)} of {len(known)} passages by their "
                f"own text (for example {missed[0]!r}), so it was thrown away; please report this message."
            )
    finally:
        retriever.close()
        store.close()


def _encode(
    store: PassageStore, encoder: Encoder, started: float
) -> Generator[Building, None, NDArray[np.float32]]:
    import numpy as np

    vectors = np.zeros((len(store), encoder.dim), dtype=np.float32)
    for start in range(0, len(store), ENCODE_PIECE):
        yield Building("encoding passages", start, len(store), time.perf_counter() - started)
        piece = [store[row] for row in range(start, min(start + ENCODE_PIECE, len(store)))]
        vectors[start : start + len(piece)] = encoder.encode(
            [f"{p.title}, {p.text}" for p in piece], role="passage"
        )
    yield Building("encoding passages", len(store), len(store), time.perf_counter() - started)
    return vectors


def _manifest(
    half: Path,
    name: str,
    corpus: Path,
    corpus_sha: str,
    count: int,
    kind: str,
    settings: dict[str, Any],
    chunking: Chunking | None,
    without_page: int,
) -> Manifest:
    sizes = {str(p.relative_to(half)): p.stat().st_size for p in sorted(half.rglob("*")) if p.is_file()}
    fingerprint = digest([corpus_sha, kind, settings])[:12]
    return Manifest(
        name=name,
        kind=kind,
        corpus=Path(corpus).name,
        corpus_sha256=corpus_sha,
        chunking=asdict(chunking) if chunking else None,
        passages=count,
        passages_without_page=without_page,
        fingerprint=fingerprint,
        files=sizes,
        bytes=sum(sizes.values()),
        versions=versions("bm25s" if kind == "bm25" else "faiss-cpu", "numpy"),
        **settings,
    )


def versions(*packages: str) -> dict[str, str]:
    """Installed versions of ``packages``; one that is absent is left out."""
    found = {}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _move_in(half: Path, target: Path, manifest: Manifest) -> None:
    """Put the finished folder in place; an equal index that is there already stays."""
    try:
        os.rename(half, target)
    except OSError as error:
        if not (target / "manifest.json").exists():
            raise
        there = read_manifest(target)
        if there.fingerprint != manifest.fingerprint:
            raise UsageError(
                f"An index {target.name!r} exists already and holds something else ({there.kind} over {there.corpus}, "
                f"{there.passages} passages); choose another name or remove {target}."
            ) from error


def check_index(folder: Path, manifest: Manifest) -> None:
    """MismatchError-free quick check that the files are those of the manifest; sizes, not hashes."""
    for name, size in manifest.files.items():
        path = folder / name
        if not path.exists() or path.stat().st_size != size:
            raise BackendError(
                f"{path} is missing or was changed after the index was built; build {manifest.name!r} again."
            )
