"""Whether a finished index is whole: its files are those of its manifest, and it finds its own passages."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from rallebench.core.entries import Manifest
from rallebench.core.errors import BackendError, MismatchError
from rallebench.core.events import Progress
from rallebench.core.files import sha256_file
from rallebench.core.runs import close
from rallebench.corpora.store import PassageStore
from rallebench.encoders import Encoder
from rallebench.retrievers import INDEX_KINDS
from rallebench.workspace.indexes.recipes import IndexRecipe

KNOWN_ITEMS, KNOWN_DEPTH = 20, 10


def search_known(half: Path, manifest: Manifest, encoder: Encoder | None) -> None:
    """BackendError unless passages of the corpus are found by their own text: a broken index never appears."""
    opened = INDEX_KINDS[manifest.kind].open(manifest.name, half, manifest, encoder)
    with closing(PassageStore(half)) as store:
        rows = range(0, len(store), max(1, len(store) // KNOWN_ITEMS))
        known = [p for p in (store[row] for row in rows) if p.text.strip()][:KNOWN_ITEMS]
        try:
            results = opened.search([f"{p.title}, {p.text}" for p in known], KNOWN_DEPTH)
        finally:
            close(opened)
    # A passage of the same words is as good: one paragraph repeated all over crowds its copies out.
    texts = [{(hit.passage.title, hit.passage.text) for hit in hits} for hits in results]
    missed = [p.doc_id for p, seen in zip(known, texts) if seen and (p.title, p.text) not in seen]
    # Texts that are nearly equal may crowd each other out; an index that misses most is broken.
    if len(missed) <= len(known) / 2:
        return
    of = (
        f"find {len(missed)} of {len(known)} passages by their own text (for example {missed[0]!r})"
    )
    if "imported" in manifest.parameters:
        raise MismatchError(
            f"The imported vectors did not {of}; they were made with another encoder than {manifest.encoder_name!r} "
            "or of another corpus."
        )
    raise BackendError(
        f"The finished index {manifest.name!r} did not {of}, so it was thrown away; please report this message."
    )


def check_index(folder: Path, manifest: Manifest) -> None:
    """MismatchError-free quick check that the files are those of the manifest; sizes, not hashes."""
    for name, size in manifest.files.items():
        path = folder / name
        if not path.exists() or path.stat().st_size != size:
            raise BackendError(
                f"{path} is missing or was changed after the index was built; build {manifest.name!r} again."
            )


def is_made_by(
    manifest: Manifest, recipe: IndexRecipe, corpus_sha256: str, fingerprint: str = ""
) -> bool:
    """Whether an index is exactly that of a recipe over the passages of this sha256.

    ``fingerprint``: the encoder's, where it is loaded; without it the manifest's name of the encoder is believed.
    """
    encoder = manifest.encoder if fingerprint else manifest.encoder_name
    return (
        (manifest.corpus_sha256, manifest.kind) == (corpus_sha256, recipe.kind)
        and encoder == (fingerprint or recipe.encoder)
        and recipe.settings.items() <= manifest.parameters.items()
        and "imported" not in manifest.parameters
    )


def verify_index(folder: Path, manifest: Manifest) -> Generator[Progress, None, None]:
    """Read every file of an index and compare it with the sha256 of its manifest, yielding progress in bytes.

    Raises BackendError, naming the file, for the first that is missing or not what was built.
    """
    check_index(folder, manifest)
    started, done = time.perf_counter(), 0
    for name, size in manifest.files.items():
        seconds = time.perf_counter() - started
        yield Progress("", done, manifest.bytes, f"reading {name}", seconds=seconds)
        if name in manifest.sha256 and sha256_file(folder / name) != manifest.sha256[name]:
            raise BackendError(
                f"{folder / name} was changed after the index was built; build {manifest.name!r} again."
            )
        done += size
    seconds = time.perf_counter() - started
    yield Progress("", done, manifest.bytes, "verified", seconds=seconds)
