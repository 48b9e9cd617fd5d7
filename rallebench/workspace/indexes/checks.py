"""Checks of a finished index: its files match its manifest, and it finds its own passages."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.backends import close
from rallebench.core.entries import Manifest
from rallebench.core.errors import BackendError, MismatchError
from rallebench.core.events import Progress
from rallebench.core.experiments import IndexRecipe
from rallebench.core.files import sha256_file
from rallebench.core.types import Passage
from rallebench.corpora.store import PassageStore
from rallebench.encoders import Encoder, Vectors
from rallebench.retrievers import INDEX_KINDS
from rallebench.retrievers.dense import Dense
from rallebench.workspace.indexes.recipes import lasting_settings
from rallebench.workspace.indexes.vectors import passage_text

CANDIDATES, KNOWN_ITEMS, KNOWN_DEPTH = 2000, 20, 10
"""Passages read, distinct passages searched for, and number of hits among which each must be."""
AS_NEAR = 2e-3
"""Relative score difference up to which other hits count as equally near and may crowd a passage out."""


def search_known(
    half: Path, manifest: Manifest, encoder: Encoder | None, vectors: Vectors | None = None
) -> list[str]:
    """Search an index for its own passages; return a warning if it misses a few.

    ``vectors``: of all its passages; without them the encoder encodes a few again. Raises BackendError if most passages
    are missed, so that a broken index never appears.
    """
    opened = INDEX_KINDS[manifest.kind].open(manifest.name, half, manifest, encoder)
    try:
        with closing(PassageStore(half)) as store:
            known = _sample(store)
        missed = _find_missed(opened, known, encoder, vectors)
    finally:
        close(opened)
    if not missed:
        return []
    of = f"find {len(missed)} of {len(known)} passages by their own text (for example {missed[0].doc_id!r})"
    if len(missed) <= len(known) / 2:
        if encoder is None:  # longer passages with the same words score higher
            return []
        return [
            f"The index did not {of}: its graph or its lists do not lead to them, and no query finds them. Build it with "
            "larger settings, or choose the kind flat."
        ]
    if "imported" in manifest.parameters:
        raise MismatchError(
            f"The imported vectors did not {of}; they were made with another encoder than {manifest.encoder_name!r} "
            "or of another corpus."
        )
    raise BackendError(
        f"The finished index {manifest.name!r} did not {of}, so it was thrown away; please report this message."
    )


def _sample(store: PassageStore) -> list[tuple[int, Passage]]:
    """Return (row, passage): distinct non-empty passages from the whole corpus; of copies only one, to leave room for others."""
    rows = range(0, len(store), max(1, len(store) // CANDIDATES))
    pairs = ((row, store[row]) for row in rows)
    distinct = list({(p.title, p.text): (row, p) for row, p in pairs if p.text.strip()}.values())
    # Both ends, too: a passage next to many copies may be at either.
    places = np.linspace(0, len(distinct) - 1, min(KNOWN_ITEMS, len(distinct)))
    return [distinct[place] for place in places.round().astype(int)]


def _find_missed(
    opened: Any,
    known: Sequence[tuple[int, Passage]],
    encoder: Encoder | None,
    vectors: Vectors | None,
) -> list[Passage]:
    """Return the passages that are not among the first hits, unless these hits have the same text or are equally near."""
    queries = [passage_text(passage) for _, passage in known]
    if encoder is None or not isinstance(opened, Dense):
        results = opened.search(queries, KNOWN_DEPTH)
        excused = [not hits for hits in results]  # the corpus contains no word of such a query
    else:
        if vectors is None:
            own = encoder.encode(queries, role="passage")
        else:
            own = np.ascontiguousarray(vectors[[row for row, _ in known]], dtype=np.float32)
        results = opened.nearest(own, KNOWN_DEPTH)
        full = min(KNOWN_DEPTH, len(opened.passages))
        excused = [
            len(hits) == full and hits[-1].score >= (1 - AS_NEAR) * score
            for hits, score in zip(results, np.einsum("nd,nd->n", own, own))
        ]
    texts = [{(hit.passage.title, hit.passage.text) for hit in hits} for hits in results]
    triples = zip((passage for _, passage in known), texts, excused)
    return [p for p, seen, skip in triples if not skip and (p.title, p.text) not in seen]


def check_index(folder: Path, manifest: Manifest) -> None:
    """Check quickly, by sizes rather than hashes, that the files match the manifest."""
    for name, size in manifest.files.items():
        path = folder / name
        if not path.exists() or path.stat().st_size != size:
            raise BackendError(
                f"{path} is missing or was changed after the index was built; build {manifest.name!r} again."
            )


def is_made_by(
    manifest: Manifest, recipe: IndexRecipe, corpus_sha256: str, fingerprint: str = ""
) -> bool:
    """Return whether an index is exactly the one of a recipe over the passages with this sha256.

    ``fingerprint``: the encoder's, if it is loaded; without it the encoder's name in the manifest is trusted.
    """
    encoder = manifest.encoder if fingerprint else manifest.encoder_name
    return (
        (manifest.corpus_sha256, manifest.kind) == (corpus_sha256, recipe.kind)
        and encoder == (fingerprint or recipe.encoder)
        and lasting_settings(recipe).items() <= manifest.parameters.items()
        and "imported" not in manifest.parameters
    )


def verify_index(folder: Path, manifest: Manifest) -> Generator[Progress, None, None]:
    """Read every file of an index and compare it with the sha256 of its manifest, yielding progress in bytes.

    Raises BackendError, naming the file, for the first that is missing or was changed.
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
